"""What the words of a page mean: of every word that the page uses, and of no other."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from instar.report.words import ONE_SIDED

WORDS: Mapping[str, str] = {
    "case": "one source input of the dataset",
    "rule": "a transformation of the input, and the relation that must then hold between the two answers",
    "relation": "what must hold between the answer to the source and the answer to the follow-up",
    "family": "rules that make the same kind of change, with other numbers",
    "zone": "the part of an image that a rule changes, such as skin or clothes; the rest of the image stays as it was",
    "suite": "the list of rules that the run was made with",
    "source": "the unchanged input",
    "follow-up": "the transformed input; with its source it makes a pair",
    "pair": "a source and one follow-up of it",
    "target": "what in an image a verdict is about: the whole image, a person, a hand, an object",
    "part": "a landmark, or another piece of what a verdict is about",
    "landmark": "a named point of a body or a hand, such as the left elbow",
    "verdict": "the severity of one rule on one target of one case",
    "severity": f"how far the answer to the follow-up strays from what is expected: 0 is perfect; ∞: {ONE_SIDED}",
    "unit": "what a severity is counted in; each relation has its own",
    "body length": "of a person the longest of the shoulders, the hips and the sides of the trunk, in the source; of a "
    "hand the longest way across its palm",
    "shoulder width": "the distance between the shoulders of a person, in the source",
    "threshold": "the least severity that counts as a violation. It is chosen after the run, with the slider",
    "violated": "the severity is at least the threshold, and above 0",
    "kept": "not violated",
    "fails": "a case fails if it violates at least one rule of the relation",
    "judged": "it has a severity. Rates are over what was judged",
    "rate": "the share of the judged cases that violate a rule",
    "95 % interval": "the range in which the true share lies with a confidence of 95 %. A narrow one rests on many "
    "cases. Those of rates are Wilson's",
    "median": "half of the values are at or below it",
    "worst": "the highest severity, or what strayed furthest",
    "kind": "the way in which a pair is violated, where the relation tells several apart",
    "identity": "the rule that changes nothing; its severities are the system's own noise",
    "noise floor": "the severity that 95 % of the cases stay within when nothing is changed (the rule identity); rates "
    "at thresholds that are not above it say little",
    "deterministic": "the system gives the same answer to the same input",
    "nothing found in either": "the system found nothing in the source and nothing in the follow-up: there is nothing "
    "to compare, so that the pair is not judged, and is no success",
    "not applicable": "the rule has no meaning for this case; it counts in no rate",
    "failed": "the system did not answer, or its answer cannot be read; it counts in no rate",
    "score": "how sure the system says it is, from 0 to 1",
    "corrected p": "the probability of so large a difference by chance alone; it is made larger because many questions "
    "were asked at once (Holm)",
    "p": "the probability of so large a difference by chance alone; a small one speaks against chance",
    "effect": "how large a difference is",
    "slice": "the cases that have something in common, such as a brightness above the median",
    "elsewhere": "in all other cases",
    "covers": "a rule covers another one if the cases that violate the other violate it too",
    "rejects": "a statistical test says that the difference is not chance",
    "cannot reject": "tests with so few samples that no result could be called certain",
    "accuracy": "the share of the answers that are right",
    "precision": "of what was found, the share that is right; of violations that people marked, the share that is real",
    "recall": "of what there is to find, the share that was found",
    "F1": "the harmonic mean of precision and recall",
    "PCK": "the share of the landmarks that are nearer to the truth than a distance",
    "IoU": "how far two areas overlap: what both cover, divided by what either covers",
    "ADE": "the mean distance between the forecast path and the path that was walked",
    "FDE": "the distance between the end of the forecast path and where the walk ended",
    "Hellinger": "a distance between two distributions: 0 where they are the same, 1 where they have nothing in common",
    "confirmed": "the answer changed as the change of the input demands, by more than chance explains",
    "unclear": "the answer did not change enough to tell whether it went the right way",
    "expected": "what follows from the answer to the source and from what was changed",
    "median fall": "how much of the class's score half of the pairs lose at most",
    "test case": "one kind of damage to the images of hands: what is covered, too dark, too bright or blurred",
    "baseline": "what is measured on the unchanged images",
    "hand P": "precision of whole hands",
    "hand R": "recall of whole hands",
    "hand F1": "F1 of whole hands",
    "mark P": "precision of landmarks",
    "mark R": "recall of landmarks",
    "mark F1": "F1 of landmarks",
    "unmatched": "the system knows most of the cells in one of the two images alone: there is no overlap to measure",
    "ground truth": "what people annotated as the right answer",
}
_FORMS: Mapping[str, str] = {
    "family": r"famil(y|ies)",
    "zone": r"zones?|filtered",
    "threshold": r"thresholds?",
    "violated": r"violat\w+",
    "fails": r"fail(s|ing)? (cases?|in|more|less)|failing|cases? fails?",
    "severity": r"severit(y|ies)",
    "noise floor": r"noise",
    "covers": r"(?:rule|family) covers",
    "effect": r"(?<!change, )effects?",
    "rejects": r"reject(s|ed)?",
    "95 % interval": r"intervals?",
    "nothing found in either": r"nothing (was )?found",
    "not applicable": r"not applicable|n/a",
    "p": r"p(?= [=<≥])|level of p|p is|by the level",
    "kind": r"kinds?",
    "unit": r"units?",
    "part": r"parts",
}


def glossary(page: str, own: Mapping[str, str], heads: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """The words that a page uses and what they mean, `own` of them in this page only; alphabetically.

    `heads` are explained where they stand over a column. A meaning uses words as well, and these are explained too.

    >>> [word for word, _ in glossary("<th>recall</th><i title='suite'></i>", {"lost": "no slice is there"})]
    ['case', 'lost', 'median', 'recall', 'slice', 'source']
    """
    text = html.unescape(re.sub(r"<[^>]*>", " ", page)).replace("\u00a0", " ")
    meanings = {**WORDS, **own}
    explained = {word: meaning for word, meaning in (heads or {}).items() if f">{word}</th>" in page} | dict(own)
    unread = [text, *explained.values()]
    while unread:
        passage = unread.pop()
        for word, meaning in meanings.items():
            if word not in explained and _used(word, passage):
                explained[word] = meaning
                unread.append(meaning)
    return sorted(explained.items(), key=lambda entry: entry[0].lower())


def _used(word: str, text: str) -> bool:
    form = _FORMS.get(word, re.escape(word) + r"s?")
    return re.search(rf"(?<![\w-])(?:{form})(?!\w)", text, re.I) is not None
