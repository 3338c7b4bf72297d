"""Which objects a caption names, and how many: with a reason for every word that counts and every one that does not."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from instar.tasks.meta_ic.language.counting import number_of
from instar.tasks.meta_ic.language.dismissal import reason_against
from instar.tasks.meta_ic.language.matching import Match, find_matches, tags_of
from instar.tasks.meta_ic.language.mentions import Mention, Number, Reading
from instar.tasks.meta_ic.language.nouns import plural
from instar.tasks.meta_ic.language.sentence import NOUN_TAGS, REACH, Occurrence, Sentence
from instar.tasks.meta_ic.language.splitting import Words, split
from instar.tasks.meta_ic.language.tagger import Tagger
from instar.tasks.meta_ic.language.vocabulary import Entry, Vocabulary, coco

_STOPS = frozenset(".!?;")


def read_caption(
    text: str,
    vocabulary: Vocabulary | None = None,
    tagger: Tagger | None = None,
    *,
    inserted: frozenset[str] = frozenset(),
) -> Reading:
    """The objects that a caption names: COCO's classes unless another vocabulary is given.

    A tagger of your own takes the place of the embedded one; see `Tagger`. Words that name a class of `inserted` do not
    decide what other words mean: a bike beside an inserted motorcycle stays what it was.

    >>> reading = read_caption("two puppies on a zebra crossing")
    >>> reading.objects, reading.mentions[0].why, reading.dismissed[0].why
    ({'dog': 'many'}, "'puppies' is the plural of puppy, a word for dog", "'zebra crossing' is no zebra")
    """
    if tagger is None:
        return _read_before(text, vocabulary or coco(), None, inserted)
    return _read(text, vocabulary or coco(), tagger, inserted)


def _read(text: str, vocabulary: Vocabulary, tagger: Tagger | None, inserted: frozenset[str]) -> Reading:
    words = split(text)
    matches = find_matches(words.lower, vocabulary)
    if not matches:
        return Reading(text, (), (), ())
    sentence = Sentence(words, tags_of(text, words, matches, vocabulary, tagger), vocabulary)
    reader = _Reader(text, sentence, matches, inserted)
    for first, end, entries in matches:
        reader.judge(first, end, entries)
    reader.stand_ins()
    mentions = sorted(reader.mentions, key=lambda mention: mention.start)
    copies = _repetitions(words)
    mentions = [
        replace(one, again=True, why=f"{one.why}, in a sentence that stands there twice")
        if one.start in copies
        else one
        for one in mentions
    ]
    wider = [one for one in reader.wider if one.start not in copies]
    return Reading(text, tuple(mentions), tuple(reader.dismissed), tuple(wider))


def _repetitions(words: Words) -> frozenset[int]:
    """Where the words begin of sentences that stand there before, word for word: who says them again names nothing
    new."""
    sentences: list[list[int]] = [[]]
    for at, word in enumerate(words.lower):
        if word in _STOPS:
            sentences.append([])
        else:
            sentences[-1].append(at)
    earlier: set[tuple[str, ...]] = set()
    places: set[int] = set()
    for sentence in sentences:
        text = tuple(words.lower[at] for at in sentence)
        if text in earlier:
            places.update(words.start[at] for at in sentence)
        earlier.add(text)
    return frozenset(places)


_read_before = lru_cache(maxsize=4096)(_read)


class _Reader:
    """One caption being read. Places are indices of words."""

    # fmt: off
    __slots__ = (
        "around", "around_all", "around_things", "dismissed", "last", "last_places", "mentions", "sentence", "text",
        "wider", "wordings",
    )
    # fmt: on

    def __init__(self, text: str, sentence: Sentence, matches: list[Match], inserted: frozenset[str]) -> None:
        self.text, self.sentence = text, sentence
        classes = [
            (first, end, {entry.label for entry in entries if not entry.classes}) for first, end, entries in matches
        ]
        self.around_all = frozenset(sentence.lower)
        self.around = _without(sentence, [span for *span, labels in classes if labels and labels <= inserted])
        self.around_things = _without(sentence, [span for *span, labels in classes if labels])
        self.mentions: list[Mention] = []
        self.dismissed: list[Mention] = []
        self.wider: list[Mention] = []
        self.last: dict[str, Mention] = {}
        """The last mention of each class."""
        self.wordings: dict[str, set[str]] = {}
        """The words by which each class was named."""
        self.last_places: dict[str, int] = {}
        """Where each class was last named, dismissed or not."""

    def judge(self, first: int, end: int, entries: tuple[Entry, ...]) -> None:
        """Add what words name to the mentions, to the wider words, or to what was dismissed."""
        sentence = self.sentence
        entry, elsewhere = self.meant(entries, self.around)
        label = self.animal(entry, first)
        senses = self.senses(entries, "" if elsewhere else label)
        start, stop = sentence.words.start[first], sentence.words.end[end - 1]
        wording = self.text[start:stop]
        occurrence = Occurrence(entry, label, first, end, wording, sentence.before(first))
        why = elsewhere or reason_against(sentence, occurrence, self.last)
        if entry.kind == "wider":
            if not why:
                number, _ = number_of(sentence, occurrence)
                why = f"{wording!r} may be any of {', '.join(entry.classes)}"
                self.wider.append(Mention(label, number, start, stop, why, classes=entry.classes))
            return
        self.last_places[label] = first
        if why:
            open_sense = elsewhere and any(senses) and not reason_against(sentence, occurrence, self.last)
            meant = (number_of(sentence, occurrence)[0], entry.lemma, senses) if open_sense else ("any", "", ())
            self.dismissed.append(Mention(label, meant[0], start, stop, why, word=meant[1], senses=meant[2]))
            return
        number, because = number_of(sentence, occurrence)
        again = number == "one" and label in self.last and self.again(occurrence)
        why = _how_named(occurrence, sentence.lower[first]) + (f", {because}" if because else "")
        self.last[label] = Mention(label, number, start, stop, why, again, word=entry.lemma, senses=senses)
        self.wordings.setdefault(label, set()).add(wording.lower())
        self.mentions.append(self.last[label])

    def meant(self, entries: tuple[Entry, ...], around: frozenset[str]) -> tuple[Entry, str]:
        """Which of several meanings the words around ask for, or why none."""
        why = ""
        for entry in entries:
            if not entry.only and not entry.unless:
                return entry, ""
            if entry.unless & around:
                why = why or f"{entry.lemma!r} is something else beside {min(entry.unless & around)!r}"
            elif entry.only and not entry.only & around:
                why = why or f"{entry.lemma!r} is something else here"
            else:
                return entry, ""
        return entries[0], why

    def senses(self, entries: tuple[Entry, ...], taken: str) -> tuple[str, ...]:
        """What a word may mean that the words around decide: as it was taken, beside all words, and every class that no
        word speaks against, words that name objects aside. Nothing for a word of one meaning."""
        kin = taken and all(taken != entry.label for entry in entries)  # a bird and a baby: a bird, or a person
        if not kin and not any(entry.only or entry.unless for entry in entries):
            return ()
        entry, why = self.meant(entries, self.around_all)
        possible = [each.label for each in entries if each.kind != "not" and not each.unless & self.around_things]
        return tuple(dict.fromkeys((taken, "" if why else taken if kin else entry.label, *possible)))

    def animal(self, entry: Entry, first: int) -> str:
        """The class of a word for the young or the kin of an animal: that of the animal named before."""
        sentence, places = self.sentence, self.last_places
        young = sentence.vocabulary.young.get(entry.lemma)
        if young:
            return max((label for label in young if label in places), key=places.__getitem__, default=entry.label)
        if entry.lemma in sentence.lists.kin and self.mentions and entry.label not in self.last:
            animal = self.mentions[-1].label
            owned = sentence.word(first - 1) in ("its", "their", "her", "his")
            if sentence.vocabulary.lives(animal) and (owned or animal not in sentence.lists.pets):
                return animal
        return entry.label

    def again(self, occurrence: Occurrence) -> bool:
        """Whether this is one that was named before: the man; or another word for it, in brackets or between commas."""
        entry, label, first, end, _, phrase = occurrence
        sentence, lists = self.sentence, self.sentence.lists
        before = phrase.first - 1
        if before > 0 and sentence.words.end[before - 1] == self.last[label].end:
            follower, vocabulary = sentence.word(end + 1), sentence.vocabulary
            acts = follower in lists.one_acts or (
                follower not in vocabulary.index and vocabulary.tagger.is_third(follower)
            )
            mark = sentence.lower[before]
            if mark in ("(", "/") or (mark == sentence.word(end) == "," and acts):
                return True
        if phrase.determiner not in lists.definite or lists.other & set(sentence.lower[phrase.first : first]):
            return False
        return entry.lemma == label or entry.lemma in self.wordings[label]

    def stand_ins(self) -> None:
        """A red bus and a blue one; a zebra here and two that sleep; one cat sits while the other plays."""
        sentence, named = self.sentence, tuple(self.mentions)
        earlier = 0
        for at, word in enumerate(sentence.lower):
            if word not in sentence.lists.stand_ins:
                continue
            place = sentence.words.start[at]
            while earlier < len(named) and named[earlier].end <= place:
                earlier += 1
            nearest = _stands_for_nearest(sentence, word, at)
            if not earlier or nearest is None:
                continue
            label = named[earlier - 1 if nearest else 0].label
            number: Number = "one" if word in ("one", "another", "other") else "many"
            why = f"another {label}" if number == "one" else f"more {plural(label)}"
            self.mentions.append(Mention(label, number, place, sentence.words.end[at], f"{word!r} stands for {why}"))


def _without(sentence: Sentence, spans: list[list[int]]) -> frozenset[str]:
    """The words of a caption less those from `first` up to `end`."""
    left = set(range(sentence.size)).difference(*(range(first, end) for first, end in spans))
    return frozenset(sentence.lower[at] for at in left)


def _stands_for_nearest(sentence: Sentence, word: str, at: int) -> bool | None:
    """Whether a word stands for what was named last (else first); None if it stands for nothing."""
    after = sentence.tag(at + 1)
    if word != "ones" and (after in (*NOUN_TAGS, "number") or sentence.word(at + 1) in ("of", "another", "'s")):
        return None
    phrase = sentence.before(at)
    before = sentence.word(phrase.first - 1)
    rest = at + 1
    while sentence.tag(rest) == "adjective" and rest - at < REACH:
        rest += 1
    if rest > at + 1 and sentence.tag(rest) in (*NOUN_TAGS, "number"):
        return None
    if word in ("another", "other"):
        if before in ("one", "each") or (word == "other" and (phrase.determiner != "the" or after != "verb")):
            return None
        return after != "verb"
    if word in ("one", "ones") and phrase.determiner and sentence.tag(at - 1) == "adjective":
        return True if before and before not in sentence.lists.breaks else None
    if before == "and" and phrase.first == at and word != "ones":
        return rest > at + 1
    return None


def _how_named(occurrence: Occurrence, written: str) -> str:
    """How a word names its class."""
    entry, label, _, _, wording, _ = occurrence
    if len(entry.words) == 1 and written != entry.words[0]:
        return f"{wording!r} is read as {entry.words[0]}"
    if entry.kind == "many":
        return f"{wording!r} is a word for {plural(label)}"
    if entry.kind == "implied":
        return f"{wording!r} has a {label}"
    meaning = "" if entry.lemma == label else f"a word for {label}"
    if entry.form == "plural" and entry.kind != "pair":
        return f"{wording!r} is the plural of {entry.lemma}" + (f", {meaning}" if meaning else "")
    return f"{wording!r} is {meaning}" if meaning else f"{wording!r} names it"
