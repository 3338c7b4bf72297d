"""Two captions side by side: what each names, and where that breaks the relations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from instar.pool import plain_label
from instar.relations import Mark
from instar.tasks.meta_ic.language import (
    Mention,
    Reading,
    Vocabulary,
    coco,
    counted,
    is_english,
    paper_classes,
    read_caption,
    read_paper,
    read_vocabulary,
)

PAPER_READERS = {"paper": 60, "paper65": 65}
"""How the code of MetaIC reads captions, by the number of classes that it knows."""

BOTH = "misclassification with omission"
"""The kind of a pair that shows both."""

Marks = tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two captions side by side.

    `missing` and `extra` are classes that break the first relation, `numbers` those that break the second, `vague`
    those that should be named and that only a wider word may stand for ("an animal"): of them nothing can be judged.
    `kind` is what the first relation calls it. `nothing`: neither caption names anything, and nothing is expected.
    `sentences` say what breaks each of the two relations, `marks` have the words of both captions that it looks at.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    numbers: tuple[str, ...]
    vague: tuple[str, ...]
    shared: int
    kind: str | None
    nothing: bool
    foreign: bool
    """Neither caption is English."""
    marks: Mapping[str, tuple[Marks, Marks]]
    sentences: Mapping[str, tuple[str, ...]]
    expected: tuple[str, ...] = ()
    """The classes that the follow-up's caption should name."""


def compared(
    source: str,
    follow_up: str,
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
    *,
    reader: str = "words",
    vocabulary: str = "coco",
) -> Compared:
    """What two captions name, and where that breaks the relations.

    >>> compared("a man on a bench", "a man on a bench and a cat", ["dog"]).sentences["objects"]
    ('dog was inserted and is not named', 'cat is named and was not there before')
    """
    words = vocabulary_of(vocabulary)
    new = {class_of(label, words) or plain_label(label) for label in added}
    gone = {class_of(label, words) or plain_label(label) for label in removed}
    if reader in PAPER_READERS:
        readings = (_read_paper(source, reader), _read_paper(follow_up, reader))
    else:
        readings = _read_pair(source, follow_up, new, gone, words)
    return _Comparison(*readings, new, gone).result(reader)


@lru_cache(maxsize=16)
def vocabulary_of(name: str) -> Vocabulary:
    """COCO's classes, or those of a TOML file."""
    return coco() if name == "coco" else read_vocabulary(name)


@lru_cache(maxsize=4096)
def class_of(label: str, vocabulary: Vocabulary) -> str | None:
    """The class that a label of a pool, a dataset or a table means: itself, or the one that it is a word for.

    >>> [class_of(label, coco()) for label in ("wine_glass", "hot_dog", "TrafficLight", "pottedplant", "unicorn")]
    ['wine glass', 'hot dog', 'traffic light', 'potted plant', None]
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", label)
    for text in (plain_label(label), plain_label(label).lower(), plain_label(apart).lower()):
        if text in vocabulary.classes:
            return text
    named = read_caption(f"a {plain_label(apart).lower()}", vocabulary).objects
    return next(iter(named)) if len(named) == 1 else None


def unknown_label(labels: Iterable[str], reader: str, vocabulary: Vocabulary) -> str | None:
    """Why a pair with such labels added or removed cannot be judged; None where it can."""
    for label in labels:
        name = class_of(label, vocabulary)
        if reader in PAPER_READERS and name not in paper_classes(PAPER_READERS[reader]):
            return f"the code of MetaIC knows {PAPER_READERS[reader]} classes, and {label!r} is none of them"
        if name is None:
            return f"the vocabulary {vocabulary.name} has no word for {label!r}"
    return None


# --- reading two captions --------------------------------------------------------------------------


def _read_paper(text: str, reader: str) -> Reading:
    named = read_paper(text, PAPER_READERS[reader])
    return Reading(text, tuple(Mention(label, number, 0, 0, "") for label, number in named.items()), (), ())


def _read_pair(
    source: str, follow_up: str, new: set[str], gone: set[str], words: Vocabulary
) -> tuple[Reading, Reading]:
    """Both captions, with words of several senses in that sense in which they agree, if there is one.

    A word of the follow-up that stands in the source as well means the same. Another one ("bike") means what is
    expected and not named otherwise, and nothing unexpected where it need not.
    """
    before, after = read_caption(source, words), read_caption(follow_up, words, inserted=frozenset(new))
    senses = {each.word: each.label for each in before.mentions if each.word}
    senses |= {each.word: "" for each in before.dismissed if each.senses and each.word not in senses}
    after = _in_senses(after, {each: senses[each.word] for each in _open(after) if each.word in senses})
    fixed = set(senses)
    for each in [one for one in _open(after) if one.word not in fixed]:
        others = replace(after, mentions=tuple(one for one in after.mentions if one is not each)).objects
        expected = (before.objects.keys() | new) - gone
        fewer = {label for label in new & before.objects.keys() if others.get(label) == "one"}
        lacking = [sense for sense in each.senses if sense in (expected - others.keys()) | fewer]
        wanted = [sense for sense in each.senses if sense in expected or not sense]
        sense = each.senses[0]
        if lacking and (sense not in lacking):
            sense = lacking[0]
        elif sense not in expected and wanted:
            sense = wanted[0]
        after = _in_senses(after, {each: sense})
    for each in _open(before):  # a bike of the source may be the motorcycle of the follow-up
        surplus, sense = after.objects.keys() - before.objects.keys() - new, each.senses[0]
        if sense not in after.objects or (sense in new and after.objects[sense] != "many"):
            before = _in_senses(before, {each: next((one for one in each.senses if one in surplus), sense)})
    return before, after


def _open(reading: Reading) -> list[Mention]:
    """The words that may mean something else."""
    return [each for each in (*reading.mentions, *reading.dismissed) if len(each.senses) > 1]


def _in_senses(reading: Reading, senses: Mapping[Mention, str]) -> Reading:
    """A reading with some words in another sense."""
    mentions, dismissed = list(reading.mentions), list(reading.dismissed)
    for each, label in senses.items():
        if label == each.senses[0]:
            continue
        ordered = tuple(dict.fromkeys((label, *each.senses)))
        moved = replace(each, senses=ordered, label=label or each.label, again=False)
        (mentions if each in mentions else dismissed).remove(each)
        if label:
            mentions.append(replace(moved, why=f"{each.word!r} may be a word for {label}"))
        else:
            dismissed.append(replace(moved, why=f"{each.word!r} may be something else"))
    mentions.sort(key=lambda each: each.start)
    return replace(reading, mentions=tuple(mentions), dismissed=tuple(dismissed))


# --- comparing them --------------------------------------------------------------------------------


class _Comparison:
    """The readings of a pair, with the classes that were inserted and that were removed."""

    def __init__(self, before: Reading, after: Reading, new: set[str], gone: set[str]) -> None:
        self.before, self.after, self.new, self.gone = before, after, new, gone
        self.named, self.actual = before.objects, after.objects
        self.expected = (self.named.keys() | new) - gone

    def result(self, reader: str) -> Compared:
        absent, surplus = sorted(self.expected - self.actual.keys()), sorted(self.actual.keys() - self.expected)
        vague = _stood_for(absent, _new_words(self.before.wider, self.after.wider)) | self._under_one_word(absent)
        detailed = _stood_for(surplus, self.before.wider)
        missing = [label for label in absent if label not in vague]
        extra = [label for label in surplus if label not in detailed]
        wrong = self._wrong_numbers(vague)
        shared = sorted(self.expected & self.actual.keys() - self.gone)
        kind = BOTH if extra and missing else "misclassification" if extra else "omission" if missing else None
        odd = None
        foreign = False
        if reader not in PAPER_READERS:
            odd, foreign = self._unreadable()
            if odd:
                kind, wrong, extra = odd[0], {}, []
        named = dict.fromkeys(shared, "kept") | dict.fromkeys(self.new & self.actual.keys(), "added")
        wider = vague | detailed
        faults = dict.fromkeys(extra, "extra") | dict.fromkeys(missing, "missing") | dict.fromkeys(wider, "wider")
        roles = {"objects": named | faults, "numbers": named | dict.fromkeys(wrong, "number")}
        return Compared(
            tuple(missing),
            tuple(extra),
            tuple(wrong),
            tuple(sorted(vague)),
            len(shared),
            kind,
            not (self.named or self.actual or self.expected or kind),
            foreign,
            {name: (_marks(self.before, of, wider), _marks(self.after, of, wider)) for name, of in roles.items()},
            {
                "objects": (*([odd[1]] if odd else []), *self._object_sentences(missing, extra, vague)),
                "numbers": tuple(self._number_sentences(wrong)),
            },
            tuple(sorted(self.expected)),
        )

    def _unreadable(self) -> tuple[tuple[str, str] | None, bool]:
        """What is wrong with the follow-up's words as a whole, kind and sentence; and whether neither is English."""
        before, after = self.before.text, self.after.text
        if not after.strip():
            return (("silent", "the caption of the follow-up is empty") if before.strip() else None), False
        english = tuple(not is_foreign(reading) for reading in (self.before, self.after))
        if english == (True, False):
            return ("language", "the caption of the follow-up is not English, that of the source is"), False
        if english == (False, True) and before.strip():
            return ("language", "the caption of the source is not English, that of the follow-up is"), False
        return None, english == (False, False)

    def _under_one_word(self, absent: list[str]) -> set[str]:
        """Two bikes where there was one: the second may be the inserted motorcycle."""
        ones = {each.word for each in (*self.before.mentions, *self.before.dismissed) if each.number == "one"}
        return {
            label
            for label in absent
            for each in (*self.after.mentions, *self.after.dismissed)
            if label in each.senses and each.number == "many" and each.word in ones
        }

    def _wrong_numbers(self, vague: set[str]) -> dict[str, str]:
        """The classes that both captions name in another number, with the one that is expected."""
        shared = {each.label for each in self.after.mentions if vague & set(each.senses)}
        wrong: dict[str, str] = {}
        for label in sorted(self.expected & self.actual.keys() - self.gone - shared):
            number = "many" if label in self.named and label in self.new else self.named.get(label, "one")
            if {number, self.actual[label]} == {"one", "many"}:
                wrong[label] = number
        return wrong

    def _object_sentences(self, missing: Sequence[str], extra: Sequence[str], vague: set[str]) -> Iterator[str]:
        for label in missing:
            be, been = _to_be(label)
            new = label in self.new
            yield f"{label} {been} inserted and {be} not named" if new else f"{label} {be} not named any more"
        for label in extra:
            be, been = _to_be(label)
            yield f"{label} {be} named and {been} not there before"
        for label in sorted(vague):
            yield f"{label} {_to_be(label)[0]} named by a wider word at the most"

    def _number_sentences(self, wrong: Mapping[str, str]) -> Iterator[str]:
        for label, number in wrong.items():
            yield f"{label} {_to_be(label)[0]} named as {self.actual[label]} instead of {number}"


def is_foreign(reading: Reading) -> bool:
    """Whether a caption is not English, and no vocabulary of another language reads it."""
    own = bool(reading.mentions) and not all(label in coco().classes for label in reading.objects)
    return not (own or is_english(reading.text))


def _to_be(label: str) -> tuple[str, str]:
    """The verb after the name of a class, today and before."""
    return ("is", "was") if verb_of(label) == "is" else ("are", "were")


def verb_of(label: str) -> str:
    """The verb after the name of a class: scissors are, a bus is."""
    return "are" if counted(1, label).startswith("a pair of ") else "is"


def _new_words(before: Sequence[Mention], after: Sequence[Mention]) -> list[Mention]:
    """The wider words of a follow-up that the source does not have, in this number; one that covers the same is no new
    one. A plate of food was there already, and is not the inserted pizza."""
    left = list(before)
    fresh: list[Mention] = []
    for same in (
        lambda one, other: one.label == other.label,
        lambda one, other: bool({*one.classes} & {*other.classes}),
    ):
        fresh = []
        for each in after:
            match = next((one for one in left if same(one, each)), None)
            if match is None or (each.number == "many" and match.number == "one"):
                fresh.append(each)
            if match is not None:
                left.remove(match)
        after = fresh
    return fresh


def _stood_for(labels: Sequence[str], wider: Sequence[Mention]) -> set[str]:
    """Which of some classes wider words may stand for: one animal stands for one of them, animals for all."""
    covered: set[str] = set()
    for word in wider:
        fitting = [label for label in labels if label in word.classes and label not in covered]
        covered.update(fitting[:1] if word.number == "one" else fitting)
    return covered


def _marks(reading: Reading, roles: Mapping[str, str], hinted: set[str]) -> Marks:
    """The words for classes that have a role, and the wider ones that may stand for one with the role *wider*."""
    marks = [
        Mark(each.start, each.end, roles[each.label], each.why)
        for each in reading.mentions
        if each.end > each.start and each.label in roles
    ]
    if "wider" in roles.values():
        marks += [Mark(each.start, each.end, "wider", each.why) for each in reading.wider if hinted & set(each.classes)]
    return tuple(sorted(marks, key=lambda mark: mark.start))
