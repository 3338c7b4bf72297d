"""Why words of a caption that name a class do not count: names, colours, games, what is not there."""

from __future__ import annotations

from collections.abc import Collection

from instar.tasks.meta_ic.language.lexicon import tagger_lists
from instar.tasks.meta_ic.language.sentence import NOUN_TAGS, REACH, Occurrence, Phrase, Sentence
from instar.tasks.meta_ic.language.vocabulary import Entry


def reason_against(sentence: Sentence, occurrence: Occurrence, named: Collection[str]) -> str:
    """Why an occurrence does not count; empty if it does. `named` are the classes named before it."""
    wording, phrase = occurrence.wording, occurrence.phrase
    if predicate := _other_meaning(sentence, occurrence, named):
        return f"{wording!r} {predicate}"
    if word := _absent(sentence, phrase, occurrence.end):
        return f"{word!r} takes {wording!r} away"
    predicate = _not_there(sentence, occurrence.label, phrase)
    return f"{wording!r} {predicate}" if predicate else ""


def _other_meaning(sentence: Sentence, occurrence: Occurrence, named: Collection[str]) -> str:
    """What the words are or do here, where that is not to name the class."""
    entry, label, first, end, _, phrase = occurrence
    if entry.kind == "not":
        return f"is no {entry.label}"
    if entry.name and _is_name(sentence, first):
        return "is a name here"
    if _is_text(sentence, first):
        return "is written there"
    after = sentence.word(end)
    if end - first == 1 and not sentence.piece(label, after) and (predicate := _other_kind(sentence, first)):
        return predicate
    if entry.kind != "implied" and after:
        if sentence.words.joined[end]:
            return f"describes {_hyphened(sentence, end)!r}"
        if entry.form != "plural" and (predicate := _describes(sentence, entry, label, end)):
            return predicate
    if entry.kind == "many" and (predicate := _counts(sentence, occurrence, named)):
        return predicate
    if entry.form == "singular" and _played(sentence, entry, first, phrase):
        return "is a game here"
    young = label == entry.label and entry.lemma in sentence.vocabulary.young
    if young and phrase.determiner in ("his", "her", "my", "your") and "person" in named:
        return "is a part of the body here"
    return ""


def _is_name(sentence: Sentence, first: int) -> bool:
    """Written like a name, inside a sentence that has small letters."""
    raw = sentence.words.raw
    return bool(
        first
        and raw[first][0].isupper()
        and raw[first - 1] not in sentence.lists.breaks
        and any(word[0].islower() and len(word) > 3 for word in raw[max(first - REACH, 0) : first + REACH])
    )


def _is_text(sentence: Sentence, first: int) -> bool:
    """Whether quotation marks hold what is written somewhere, not a word of the caption's own."""
    start = sentence.words.quoted[first]
    return start > 0 and sentence.tags[start - 1] not in ("determiner", "adjective", "number", "conjunction")


def _other_kind(sentence: Sentence, first: int) -> str:
    """Whether the word is a verb, an adjective or an adverb here."""
    tag = sentence.tags[first]
    if tag == "verb":
        return "is what somebody does here"
    if tag in ("adjective", "adverb"):
        what = "is a colour" if sentence.lower[first] in tagger_lists().colours else "describes something"
        return f"{what} here"
    return ""


def _hyphened(sentence: Sentence, at: int) -> str:
    """What a word with hyphens describes: the noun after it, or else itself."""
    last = min(at + REACH, sentence.size - 1)
    while at < last and sentence.words.joined[at + 1]:
        at += 1
    return sentence.lower[at + 1] if sentence.tag(at + 1) in NOUN_TAGS else sentence.lower[at]


def _describes(sentence: Sentence, entry: Entry, label: str, end: int) -> str:
    """Whether the noun is a part of a longer one, which another noun heads."""
    after, tag = sentence.lower[end], sentence.tags[end]
    if tag == "adjective" and after in tagger_lists().colours and sentence.tag(end + 1) in NOUN_TAGS:
        return "is a colour here"
    if after in sentence.lists.shaped and sentence.tag(end + 1) in (*NOUN_TAGS, "adjective"):
        return f"describes {sentence.lower[end + 1]!r}"
    if after == "and" and entry.lemma in sentence.lists.sexes:  # a mother and a baby giraffe
        other = end + 2 if sentence.tag(end + 1) == "determiner" else end + 1
        animal = sentence.word(other + 1)
        named = sentence.tag(other + 1) in NOUN_TAGS and animal in sentence.vocabulary.index
        if named and sentence.word(other) in sentence.lists.sexes:
            return f"describes {animal!r}"
    if tag == "verb" and after in sentence.lists.activities and label != "person":  # people bike riding
        doer = sentence.word(end - 2)
        return "tells what is done here" if doer in sentence.lists.goes or sentence.living(doer) else ""
    side_by_side = after in sentence.lists.side_by_side and sentence.word(end + 1) in ("by", "to")
    if tag not in NOUN_TAGS or side_by_side or sentence.piece(label, after) or _is_called(sentence, end):
        return ""
    if after in sentence.lists.depictions and sentence.tag(end + 1) not in NOUN_TAGS:  # a horse statue
        return ""
    group = label != "person" and after in sentence.lists.groups
    if sentence.vocabulary.lives(label) and (group or _activity(sentence, end)):
        return ""
    return f"describes {after!r}"


def _is_called(sentence: Sentence, at: int) -> bool:
    """My dog Max: a name, with a capital where the noun has none."""
    raw, tagger = sentence.words.raw, sentence.vocabulary.tagger
    return raw[at][0].isupper() and raw[at - 1][0].islower() and tagger.guesses_noun(sentence.lower[at])


def _activity(sentence: Sentence, at: int) -> bool:
    """Cross country skiing, wind surfing, horse riding: nouns that tell what somebody does."""
    activities, sports = sentence.lists.activities, sentence.lists.sports
    for place in range(at, min(at + REACH, sentence.size)):
        word = sentence.lower[place]
        if place > at and (word in activities or (word.endswith("ing") and sentence.lower[place - 1] in sports)):
            return sentence.tags[place] == "verb" or sentence.tag(place + 1) not in NOUN_TAGS
        if sentence.tags[place] != "noun" or (sentence.living(word) and sentence.word(place + 1) not in activities):
            return False
    return False


def _counts(sentence: Sentence, occurrence: Occurrence, named: Collection[str]) -> str:
    """Whether a group is of something else: a family of bears, the elephant family, zebras in a group."""
    lemma, end = occurrence.entry.lemma, occurrence.end
    before, after = sentence.word(occurrence.first - 1), sentence.word(end)
    group = lemma in sentence.lists.groups
    if group and sentence.living(before):
        return f"counts {before!r}"
    if after == "of":
        for at in range(end + 1, min(end + 5, sentence.size)):
            word, tag = sentence.lower[at], sentence.tags[at]
            if word in ("a", "an", "the"):
                break
            if tag == "plural" or (tag == "noun" and word in sentence.vocabulary.index):
                return f"counts {word!r}"
    if lemma == "couple" and sentence.tag(end) == "number":
        return "counts what follows"
    if group and named and sentence.word(occurrence.phrase.first - 1) in ("in", "as", "into"):
        return "counts what is named before"
    return ""


def _played(sentence: Sentence, entry: Entry, first: int, phrase: Phrase) -> bool:
    """Playing ball, a game of frisbee; baseball is a game wherever nothing makes it the ball."""
    if phrase.determiner or phrase.counts:
        return False
    at = phrase.first - 1
    for _ in range(REACH):  # playing duck, duck, goose
        if sentence.word(at) not in (",", "and") or sentence.tag(at - 1) != "noun":
            break
        at -= 2
    word, earlier = sentence.word(at), sentence.word(at - 1)
    if word in sentence.lists.plays or (word == "of" and earlier in sentence.lists.games):
        return True
    return entry.game and phrase.first == first and sentence.word(first - 1) not in sentence.lists.handled


def _absent(sentence: Sentence, phrase: Phrase, end: int) -> str:
    """The word that takes away what is named; empty if none does."""
    if sentence.lower[end : end + 2] == ["used", "to"]:
        return "used to"
    chained = False
    for _ in range(REACH):
        first, determiner = phrase.first, phrase.determiner
        if determiner in ("no", "any", "neither"):
            return determiner
        if "zero" in phrase.counts or "0" in phrase.counts:
            return "zero"
        before, earlier = sentence.word(first - 1), sentence.word(first - 2)
        if before in sentence.lists.without:
            return before
        if (before == "of" and earlier in sentence.lists.free) or (before == "than" and earlier == "rather"):
            return f"{earlier} {before}"
        if before == "even" and earlier == "not":
            return "not even"
        chained = chained or before in ("or", "nor") or not {"or", "nor"}.isdisjoint(sentence.lower[end : end + 6])
        listed = before in ("or", "nor") or (before == "and" and not determiner) or (before == "," and chained)
        if not listed or sentence.tag(first - 2) not in NOUN_TAGS:
            return _denied(sentence, first - 1)
        phrase = sentence.before(first - 2)  # no cars or trucks
    return ""


def _denied(sentence: Sentence, at: int) -> str:
    """The word that denies the verb before a noun: not wearing a tie. Not on a couch denies the place alone."""
    for place in range(at, max(at - REACH, -1), -1):
        word = sentence.lower[place]
        if word in sentence.lists.never:
            return word
        if word == "longer" and sentence.word(place - 1) == "no":
            return "no longer"
        if word in sentence.lists.not_only or sentence.tags[place] not in ("verb", "adverb"):
            break
    return ""


def _not_there(sentence: Sentence, label: str, phrase: Phrase) -> str:
    """What something is meant for, or only looks like."""
    first, determiner = phrase.first, phrase.determiner
    if determiner not in ("", "a", "an"):
        return ""
    before, earlier = sentence.word(first - 1), sentence.word(first - 2)
    meant = sentence.lists.meant
    if before == "for" and sentence.vocabulary.supers.get(label) != "food":
        bare = not determiner and sentence.tag(first - 2) in NOUN_TAGS
        if bare or earlier in meant or (earlier == "out" and sentence.word(first - 3) in meant):
            return "is what something is meant for"
    if before in ("like", "as") and earlier in sentence.lists.looks:
        return "is what something looks like"
    return ""
