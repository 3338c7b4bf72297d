"""Which objects a caption names, and how many: with a reason for every word that counts and every one that does not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from instar.spelling import unknown
from instar.tasks.meta_ic.language.lexicon import tagger_lists
from instar.tasks.meta_ic.language.nouns import plural
from instar.tasks.meta_ic.language.splitting import split
from instar.tasks.meta_ic.language.tagger import TAGS, Tagger
from instar.tasks.meta_ic.language.vocabulary import Entry, Vocabulary, coco

__all__ = ["Mention", "Number", "Reading", "read_caption"]

Number = Literal["one", "many", "any"]
"""`any` where the words leave the number open: broccoli, a pair of scissors, every bed."""


@dataclass(frozen=True, slots=True)
class Mention:
    """Words of a caption that name a class; `start` and `end` are their place in the text.

    `again` says that they name what was named before: "a man …, the man …". A wider word ("animal") has `classes`,
    those it may stand for, and itself as label.
    """

    label: str
    number: Number
    start: int
    end: int
    why: str
    again: bool = False
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a caption says: the mentions that count, those that do not, and the wider words. Each in order."""

    text: str
    mentions: tuple[Mention, ...]
    dismissed: tuple[Mention, ...]
    wider: tuple[Mention, ...]

    @property
    def objects(self) -> dict[str, Number]:
        """The classes named, each with its number over all its mentions.

        Two different ones are many. A number that is left open says nothing against one that is not.
        """
        numbers: dict[str, list[Number]] = {}
        for mention in self.mentions:
            if not mention.again:
                numbers.setdefault(mention.label, []).append(mention.number)
        return {label: _together(of) for label, of in numbers.items()}


def read_caption(text: str, vocabulary: Vocabulary | None = None, tagger: Tagger | None = None) -> Reading:
    """The objects that a caption names: COCO's classes unless another vocabulary is given.

    A tagger of your own takes the place of the embedded one; see `Tagger`.

    >>> reading = read_caption("two puppies on a zebra crossing")
    >>> reading.objects, reading.mentions[0].why, reading.dismissed[0].why
    ({'dog': 'many'}, "'puppies' is the plural of puppy, a word for dog", "'zebra crossing' is no zebra")
    """
    if tagger is None:
        return _read(text, vocabulary or coco())
    return _Reader(text, vocabulary or coco(), tagger).read()


@lru_cache(maxsize=4096)
def _read(text: str, vocabulary: Vocabulary) -> Reading:
    return _Reader(text, vocabulary, None).read()


def _together(numbers: list[Number]) -> Number:
    if "many" in numbers or numbers.count("one") > 1:
        return "many"
    return "one" if "one" in numbers else "any"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_REACH = 12
"""How many words back anything looks, so that no text takes long."""

_MEASURES = _set("""arrangement array assortment band bank basket baskets bin bowl bowls box boxes bucket bunch
    bunches bundle cage cart chain class cluster collection colony column convoy couple couples crate crates crowd
    display dozen dozens drove family field fleet flight flock flocks forest full gaggle gang group groups handful
    heap herd herds hundred hundreds jar kind kinds line lines litter load lot lots mass mess mix mob mound number
    pack pair pairs parade pen pile piles plate plates platter plenty pride procession quartet rack range row rows
    school scores selection series set sets shelf shelves sort sorts squadron stack stacks string swarm team
    thousands ton tons tower tray trays trio troop truckload type types variety wall""")
"""What they hold is many, also in the singular: a herd of zebra."""
_PAIRED = _set("pair set")
_PORTIONS = _set("""bed bit bite bites bits chunk chunks crumbs dish floret florets half halves helping leftovers
    part parts piece pieces portion portions quarter remains scrap scraps section sections segment segments serving
    servings side slice slices sliver sprig sprigs strip strips wedge wedges""")
"""What they are of is open: a slice of pizza."""
_PIECES = _set("""chunk chunks crown crowns floret florets half halves head heads piece pieces quarters ring rings
    section sections segment segments slice slices spear spears stalk stalks stick sticks wedge wedges""")
"""After a food, a part of it: a pizza slice."""
_GROUPS = _set("families family flock flocks group groups herd herds pair pairs trio")
"""After an animal, many of it: the elephant family."""
_SIDED = _set("""bedroom burner decker door doored engine engined eyed foot headed inch lane layer layered legged
    level man part person piece seat seated seater sided storied story tier tiered toed tone toned way wheel wheeled
    year""")
"""After a numeral, what says that it does not count the noun: a four sided clock."""
_SHAPED = _set("flavored flavoured patterned shaped sized style styled themed")
_SIDE_BY_SIDE = _set("back face head nose side")
_ACTIVITIES = _set("""biking boarding boating climbing diving fishing gliding racing rafting riding sailing skating
    skiing sledding surfing tubing""")
_GOES = _set("enjoy enjoying go goes going")
_PLAYS = _set("play played playing plays")
_GAMES = _set("game games match matches round")
_HANDLED = _set("""and bounce bounces bouncing carries carry carrying catch catches catching chase chases chasing
    dribble dribbles dribbling dunk dunking hit hits hitting hold holding holds kick kicking kicks pitch pitching
    shoot shooting spin spinning swat swing swinging throw throwing thrown throws toss tosses tossing with""")
_LOOKS = _set("""costumed decorated designed disguised dressed look looked looking looks made painted seem seeming
    seems shaped styled""")
_MEANT = _set("built designed enough intended laid made meant prepared ready reserved set suitable")
_WITHOUT = _set("excluding hardly lack lacked lacking lacks minus missing nor not without")
_FREE = _set("absence devoid free instead void")
_NEVER = _set("""ain't aren't can't cannot couldn't didn't doesn't don't hadn't hasn't haven't isn't never not
    shouldn't wasn't weren't won't wouldn't""")
_NOT_ONLY = _set("just merely only")
_KIN = _set("adult baby child dad daddy elder father kid mama mom mommy mother parent")
_PETS = _set("cat dog")
"""A dog and a baby: the baby is a person. An elephant and a baby: it is an elephant."""
_SEXES = _KIN | _set("big female large little male small young")
_OTHER = _set("different other second third")
_DEFINITE = _set("that the this")
_ONE = _set("a an another lone one single solitary that this")
_MANY = _set("all both these those")
_OPEN = _set("each either every")
_STAND_INS = _set("another four one ones other three two")
_BREAKS = _set("! ( ) , . / : ; ? – — …")
_ONE_ACTS = _set("does doesn't has hasn't is isn't was wasn't")
_MANY_ACT = _set("are aren't do don't have haven't were weren't")
_ONE_OWNS = _set("herself himself his its itself")
_NOUNS = ("noun", "plural")

Match: TypeAlias = tuple[int, int, tuple[Entry, ...]]
"""From which word to which (not included) what entries match: one, or the several meanings of one spelling."""


class _Phrase(NamedTuple):
    """What stands before a noun and belongs to it: from which word, its article, its numerals, what makes it many."""

    first: int
    determiner: str
    counts: tuple[str, ...]
    many: str


class _Reader:
    """One caption being read. Places are indices of words."""

    __slots__ = (
        "around",
        "dismissed",
        "last",
        "lower",
        "mentions",
        "said",
        "seen",
        "size",
        "tagger",
        "tags",
        "text",
        "vocabulary",
        "wider",
        "words",
    )

    def __init__(self, text: str, vocabulary: Vocabulary, tagger: Tagger | None) -> None:
        self.text, self.vocabulary, self.tagger = text, vocabulary, tagger
        self.words = split(text)
        self.lower = self.words.lower
        self.size = len(self.lower)
        self.tags: list[str] = []
        self.mentions: list[Mention] = []
        self.dismissed: list[Mention] = []
        self.wider: list[Mention] = []
        self.around: set[str] | None = None
        self.last: dict[str, Mention] = {}
        """The last mention of each class."""
        self.said: dict[str, set[str]] = {}
        """The words by which each class was named."""
        self.seen: dict[str, int] = {}
        """Where each class was last named, dismissed or not."""

    def read(self) -> Reading:
        found = self.matches()
        if found:
            self.tags = self.tagged(found)
            for first, end, entries in found:
                self.judge(first, end, entries)
            self.stand_ins()
        mentions = sorted(self.mentions, key=lambda mention: mention.start)
        return Reading(self.text, tuple(mentions), tuple(self.dismissed), tuple(self.wider))

    # --- words of the vocabulary -----------------------------------------------------------------------

    def matches(self) -> list[Match]:
        """From left to right; longer names win."""
        lower, index = self.lower, self.vocabulary.index
        found: list[Match] = []
        at = 0
        while at < self.size:
            word = lower[at]
            groups = index.get(word)
            if groups is None:
                if 5 < len(word) < 20 and word.isalpha() and (right := self.misspelt(word)):
                    found.append((at, at + 1, index[right][-1]))
                at += 1
                continue
            for group in groups:
                words = group[0].words
                if len(words) == 1 or (self.spelled(words, at) and not self.acts(group[0], at + len(words))):
                    found.append((at, at + len(words), group))
                    at += len(words)
                    break
            else:
                at += 1
        return found

    def spelled(self, words: tuple[str, ...], at: int) -> bool:
        """Whether these words stand here; * is any word."""
        return at + len(words) <= self.size and all(
            said in ("*", self.lower[at + place]) for place, said in enumerate(words)
        )

    def acts(self, entry: Entry, end: int) -> bool:
        """Whether a zebra crossing is a zebra that crosses something, and what is man made a man who made something."""
        verb = entry.kind == "not" and entry.words[-1].endswith(("ing", "made"))
        return verb and self.word(end) in ("a", "an", "the")

    def misspelt(self, word: str) -> str:
        """The long name that this is one slip away from, if it is no word of its own."""
        if not self.vocabulary.tagger.guesses_noun(word):
            return ""
        for part in (word, *(word[:at] + word[at + 1 :] for at in range(1, len(word)))):
            for right in self.vocabulary.misspelt.get(part, ()):
                if right[0] == word[0] and _one_slip(word, right):
                    return right
        return ""

    def tagged(self, found: list[Match]) -> list[str]:
        if self.tagger is None:
            return self.vocabulary.tagger.tag(self.unmistakable(found))
        tags = list(self.tagger(list(self.words.raw)))
        if len(tags) != self.size:
            raise ValueError(f"the tagger gave {len(tags)} tags for the {self.size} words of {self.text[:80]!r}")
        for tag in tags:
            if tag not in TAGS:
                raise ValueError(f"the tagger's answer for {self.text[:80]!r}: {unknown('tag', str(tag), TAGS)}")
        return tags

    def unmistakable(self, found: list[Match]) -> list[str]:
        """The words for the embedded tagger, to which the dog of a hot dog must not look alive."""
        words = self.lower
        for first, end, entries in found:
            last = words[end - 1]
            if (
                end - first > 1
                and last.isalpha()
                and not last.endswith("ing")
                and not self.vocabulary.lives(entries[0].label)
            ):
                words = list(words) if words is self.lower else words
                words[end - 1] = "objects" if entries[0].form == "plural" else "object"
        return words

    # --- one match --------------------------------------------------------------------------------------

    def judge(self, first: int, end: int, entries: tuple[Entry, ...]) -> None:
        entry, elsewhere = self.meant(entries)
        label = self.animal(entry, first)
        start, stop = self.words.start[first], self.words.end[end - 1]
        said = self.text[start:stop]
        phrase = self.before(first)
        why = elsewhere or self.against(entry, label, first, end, said, phrase)
        if entry.kind == "wider":
            if not why:
                number, _ = self.number(entry, first, end, phrase)
                why = f"{said!r} may be any of {', '.join(entry.classes)}"
                self.wider.append(Mention(label, number, start, stop, why, classes=entry.classes))
            return
        self.seen[label] = first
        if why:
            self.dismissed.append(Mention(label, "any", start, stop, why))
            return
        number, because = self.number(entry, first, end, phrase)
        again = number == "one" and label in self.last and self.again(entry, label, first, end, phrase)
        why = _named(entry, label, said, self.lower[first]) + (f", {because}" if because else "")
        self.last[label] = Mention(label, number, start, stop, why, again)
        self.said.setdefault(label, set()).add(said.lower())
        self.mentions.append(self.last[label])

    def meant(self, entries: tuple[Entry, ...]) -> tuple[Entry, str]:
        """Which of several meanings the words around ask for, or why none."""
        why = ""
        for entry in entries:
            if not entry.only and not entry.unless:
                return entry, ""
            if self.around is None:
                self.around = set(self.lower)
            if entry.unless & self.around:
                why = why or f"{entry.lemma!r} is something else beside {min(entry.unless & self.around)!r}"
            elif entry.only and not entry.only & self.around:
                why = why or f"{entry.lemma!r} is something else here"
            else:
                return entry, ""
        return entries[0], why

    def animal(self, entry: Entry, first: int) -> str:
        """The class of a word for the young or the kin of an animal: that of the animal named before."""
        of = self.vocabulary.young.get(entry.lemma)
        if of:
            return max((label for label in of if label in self.seen), key=self.seen.__getitem__, default=entry.label)
        if entry.lemma in _KIN and self.mentions and entry.label not in self.last:
            animal = self.mentions[-1].label
            theirs = self.word(first - 1) in ("its", "their", "her", "his")
            if self.vocabulary.lives(animal) and (theirs or animal not in _PETS):
                return animal
        return entry.label

    def against(self, entry: Entry, label: str, first: int, end: int, said: str, phrase: _Phrase) -> str:
        """Why a match does not count; empty if it does."""
        if entry.kind == "not":
            return f"{said!r} is no {entry.label}"
        if entry.name and self.is_name(first):
            return f"{said!r} is a name here"
        if self.is_text(first):
            return f"{said!r} is written there"
        after = self.word(end)
        if end - first == 1 and not self.piece(label, after) and (why := self.other_kind(first, said)):
            return why
        if entry.kind != "implied" and after:
            if self.words.joined[end]:
                return f"{said!r} describes {self.hyphened(end)!r}"
            if entry.form != "plural" and (why := self.describes(entry, label, end, said)):
                return why
        if entry.kind == "many" and (why := self.counts(entry, first, end, said, phrase)):
            return why
        if entry.form == "singular" and self.played(entry, first, phrase):
            return f"{said!r} is a game here"
        if (
            phrase.determiner in ("his", "her", "my", "your")
            and label == entry.label
            and entry.lemma in self.vocabulary.young
            and "person" in self.last
        ):
            return f"{said!r} is a part of the body here"
        if word := self.absent(phrase, end):
            return f"{word!r} takes {said!r} away"
        return self.not_there(label, phrase, said)

    def is_name(self, first: int) -> bool:
        """Written like a name, inside a sentence that has small letters."""
        raw = self.words.raw
        return bool(
            first
            and raw[first][0].isupper()
            and raw[first - 1] not in _BREAKS
            and any(word[0].islower() and len(word) > 3 for word in raw[max(first - _REACH, 0) : first + _REACH])
        )

    def is_text(self, first: int) -> bool:
        """Whether quotation marks hold what is written somewhere, not a word of the caption's own."""
        start = self.words.quoted[first]
        return start > 0 and self.tags[start - 1] not in ("determiner", "adjective", "number", "conjunction")

    def other_kind(self, first: int, said: str) -> str:
        tag = self.tags[first]
        if tag == "verb":
            return f"{said!r} is what somebody does here"
        if tag in ("adjective", "adverb"):
            what = "is a colour" if self.lower[first] in tagger_lists().colours else "describes something"
            return f"{said!r} {what} here"
        return ""

    def hyphened(self, at: int) -> str:
        """What a word with hyphens describes: the noun after it, or else itself."""
        last = min(at + _REACH, self.size - 1)
        while at < last and self.words.joined[at + 1]:
            at += 1
        return self.lower[at + 1] if self.tag(at + 1) in _NOUNS else self.lower[at]

    def describes(self, entry: Entry, label: str, end: int, said: str) -> str:
        """Whether the noun is a part of a longer one, which another noun heads."""
        after, tag = self.lower[end], self.tags[end]
        if tag == "adjective" and after in tagger_lists().colours and self.tag(end + 1) in _NOUNS:
            return f"{said!r} is a colour here"
        if after in _SHAPED and self.tag(end + 1) in (*_NOUNS, "adjective"):
            return f"{said!r} describes {self.lower[end + 1]!r}"
        if after == "and" and entry.lemma in _SEXES:  # a mother and a baby giraffe
            other = end + 2 if self.tag(end + 1) == "determiner" else end + 1
            animal = self.word(other + 1)
            if self.word(other) in _SEXES and self.tag(other + 1) in _NOUNS and animal in self.vocabulary.index:
                return f"{said!r} describes {animal!r}"
        if tag == "verb" and after in _ACTIVITIES and label != "person":  # people bike riding
            doer = self.word(end - 2)
            return f"{said!r} tells what is done here" if doer in _GOES or self.living(doer) else ""
        side_by_side = after in _SIDE_BY_SIDE and self.word(end + 1) in ("by", "to")
        if tag not in _NOUNS or side_by_side or self.piece(label, after):
            return ""
        if self.is_called(end):
            return ""
        if self.vocabulary.lives(label) and (self.activity(end) or (label != "person" and after in _GROUPS)):
            return ""
        return f"{said!r} describes {after!r}"

    def is_called(self, at: int) -> bool:
        """My dog Max: a name, with a capital where the noun has none."""
        raw = self.words.raw
        return raw[at][0].isupper() and raw[at - 1][0].islower() and self.vocabulary.tagger.guesses_noun(self.lower[at])

    def activity(self, at: int) -> bool:
        """Cross country skiing: nouns that tell what somebody does."""
        for place in range(at, min(at + _REACH, self.size)):
            if self.tags[place] != "noun" or self.living(self.lower[place]):
                return self.tags[place] == "verb" and self.lower[place] in _ACTIVITIES
        return False

    def living(self, word: str) -> bool:
        """Whether a word names people or animals."""
        groups = self.vocabulary.index.get(word)
        return groups is not None and len(groups[-1][0].words) == 1 and self.vocabulary.lives(groups[-1][0].label)

    def piece(self, label: str, after: str) -> bool:
        """A pizza slice: the food is there, as a part."""
        return after in _PIECES and self.vocabulary.supers.get(label) == "food"

    def counts(self, entry: Entry, first: int, end: int, said: str, phrase: _Phrase) -> str:
        """Whether a group is of something else: a family of bears, the elephant family, zebras in a group."""
        before, after = self.word(first - 1), self.word(end)
        if entry.lemma in _GROUPS and self.living(before):
            return f"{said!r} counts {before!r}"
        if after == "of":
            for at in range(end + 1, min(end + 5, self.size)):
                word, tag = self.lower[at], self.tags[at]
                if word in ("a", "an", "the"):
                    break
                if tag == "plural" or (tag == "noun" and word in self.vocabulary.index):
                    return f"{said!r} counts {word!r}"
        if entry.lemma == "couple" and self.tag(end) == "number":
            return f"{said!r} counts what follows"
        if entry.lemma in _GROUPS and self.mentions and self.word(phrase.first - 1) in ("in", "as", "into"):
            return f"{said!r} counts what is named before"
        return ""

    def played(self, entry: Entry, first: int, phrase: _Phrase) -> bool:
        """Playing ball, a game of frisbee; baseball is a game wherever nothing makes it the ball."""
        if phrase.determiner or phrase.counts:
            return False
        at = phrase.first - 1
        for _ in range(_REACH):  # playing duck, duck, goose
            if self.word(at) not in (",", "and") or self.tag(at - 1) != "noun":
                break
            at -= 2
        if self.word(at) in _PLAYS or (self.word(at) == "of" and self.word(at - 1) in _GAMES):
            return True
        return entry.game and phrase.first == first and self.word(first - 1) not in _HANDLED

    # --- what stands around ------------------------------------------------------------------------------

    def word(self, at: int) -> str:
        return self.lower[at] if 0 <= at < self.size else ""

    def tag(self, at: int) -> str:
        return self.tags[at] if 0 <= at < self.size else ""

    def before(self, first: int) -> _Phrase:
        """The words before a noun that belong to it, back to its article."""
        lower, tags, joined = self.lower, self.tags, self.words.joined
        at, determiner, many = first, "", ""
        counts: list[str] = []
        while at and first - at < _REACH:
            word, tag = lower[at - 1], tags[at - 1]
            if joined[at] or joined[at - 1] or tag in ("adjective", "noun") or word == "very":
                at -= 1
            elif tag == "number":
                if lower[at] not in _SIDED:
                    counts.append(word)
                at -= 1
            elif word in ("and", ",", "or") and at < first and tags[at] == self.tag(at - 2) == "adjective":
                at -= 1
            elif word == "and" and lower[at] in _SEXES and self.word(at - 2) in _SEXES:
                many = lower[at - 2]
                at -= 2
            elif tag == "determiner" or word in ("her", "'s", "'", "that"):
                determiner = word
                at -= 1
                if word in _ONE and at + 1 < first and self.word(at - 1) == "and" and self.another(at - 2):
                    many = "and"
                break
            else:
                break
        return _Phrase(at, determiner, tuple(counts), many)

    def another(self, at: int) -> bool:
        """Whether 'a red' ends here, which shares its noun with 'and a blue bus'."""
        adjectives = 0
        while self.tag(at) == "adjective" and adjectives < _REACH:
            adjectives += 1
            at -= 1
        return adjectives > 0 and self.word(at) in _ONE

    def absent(self, phrase: _Phrase, end: int) -> str:
        """The word that takes away what is named; empty if none does."""
        if self.lower[end : end + 2] == ["used", "to"]:
            return "used to"
        for _ in range(_REACH):
            first, determiner = phrase.first, phrase.determiner
            if determiner in ("no", "any", "neither"):
                return determiner
            if "zero" in phrase.counts or "0" in phrase.counts:
                return "zero"
            before, earlier = self.word(first - 1), self.word(first - 2)
            if before in _WITHOUT:
                return before
            if (before == "of" and earlier in _FREE) or (before == "than" and earlier == "rather"):
                return f"{earlier} {before}"
            if before == "even" and earlier == "not":
                return "not even"
            listed = (
                before in ("or", "nor")
                or (before == "and" and not determiner)
                or (before == "," and "or" in self.lower[end : end + 6])
            )
            if not listed or self.tag(first - 2) not in _NOUNS:
                return self.denied(first - 1)
            phrase = self.before(first - 2)  # no cars or trucks
        return ""

    def denied(self, at: int) -> str:
        """The word that denies the verb before a noun: not wearing a tie. Not on a couch denies the place alone."""
        for place in range(at, max(at - _REACH, -1), -1):
            word = self.lower[place]
            if word in _NEVER:
                return word
            if word == "longer" and self.word(place - 1) == "no":
                return "no longer"
            if word in _NOT_ONLY or self.tags[place] not in ("verb", "adverb"):
                break
        return ""

    def not_there(self, label: str, phrase: _Phrase, said: str) -> str:
        """What something is meant for, or only looks like."""
        first, determiner = phrase.first, phrase.determiner
        if determiner not in ("", "a", "an"):
            return ""
        before, earlier = self.word(first - 1), self.word(first - 2)
        if before == "for" and self.vocabulary.supers.get(label) != "food":
            bare = not determiner and self.tag(first - 2) in _NOUNS
            if bare or earlier in _MEANT or (earlier == "out" and self.word(first - 3) in _MEANT):
                return f"{said!r} is what something is meant for"
        if before in ("like", "as") and earlier in _LOOKS:
            return f"{said!r} is what something looks like"
        return ""

    def again(self, entry: Entry, label: str, first: int, end: int, phrase: _Phrase) -> bool:
        """Whether this is one that was named before: the man; or another word for it, in brackets or between commas."""
        before = phrase.first - 1
        if before > 0 and self.words.end[before - 1] == self.last[label].end:
            follower = self.word(end + 1)
            acts = follower in _ONE_ACTS or (
                follower not in self.vocabulary.index and self.vocabulary.tagger.is_third(follower)
            )
            if self.lower[before] in ("(", "/") or (self.lower[before] == self.word(end) == "," and acts):
                return True
        if phrase.determiner not in _DEFINITE or _OTHER & set(self.lower[phrase.first : first]):
            return False
        return entry.lemma == label or entry.lemma in self.said[label]

    # --- how many ----------------------------------------------------------------------------------------

    def number(self, entry: Entry, first: int, end: int, phrase: _Phrase) -> tuple[Number, str]:
        """One, many or open, and what decided it where the noun itself does not."""
        kind, form, determiner = entry.kind, entry.form, phrase.determiner
        after, measure = self.word(end), self.measure(phrase)
        if kind == "many":
            return "many", ""
        if after in _GROUPS and entry.label != "person" and self.vocabulary.lives(entry.label):
            return "many", f"and {after!r} makes it many"
        counted, by = self.counted(phrase, form)
        if counted == "many":
            return "many", "" if form == "plural" else f"and {by!r} makes it many"
        if form == "plural" and kind != "pair":
            if determiner in ("a", "an") and phrase.first == first - 1:  # a women
                return "one", f"and {determiner!r} makes it one"
            return "many", ""
        if kind == "pair":
            if measure in _MEASURES - _PAIRED:
                return "many", f"and {measure!r} makes it many"
            return "any", "and the number is left open"
        if kind == "implied":
            return "any", "and the number is left open"
        if self.piece(entry.label, after):
            return "any", f"and {after!r} leaves the number open"
        if determiner in _OPEN:
            return "any", f"and {determiner!r} leaves the number open"
        if not determiner and measure in _PORTIONS:
            return "any", f"and {measure!r} leaves the number open"
        if counted == "one" or determiner in _ONE:
            return "one", ""
        if kind == "either" and (determiner or {"whole", "entire"} & set(self.lower[phrase.first : first])):
            return "one", ""
        if kind in ("mass", "either"):
            return "any", "and the number is left open"
        if not determiner and measure in _MEASURES:
            return "many", f"and {measure!r} makes it many"
        if not determiner and after == "'s" and self.tag(end + 1) not in (*_NOUNS, "adjective", "verb", "number"):
            if self.paired(entry.label):  # with ski's and poles
                return "any", "and the number is left open"
            return "many", "and 's makes it many"
        return self.agreed(end, determiner) if form == "both" else ("one", "")

    def paired(self, label: str) -> bool:
        groups = self.vocabulary.index.get(label)
        return groups is not None and groups[-1][0].kind == "pair"

    def counted(self, phrase: _Phrase, form: str) -> tuple[str, str]:
        """What the numerals before a noun say: one, many or nothing (a 747 jet, the number 9 bus); and which one."""
        if phrase.many:
            return "many", phrase.many
        if phrase.determiner in ("a", "an") and self.word(phrase.first - 1) == "many":  # many a tourist
            return "many", "many"
        found = ""
        one_named = form == "singular" and phrase.determiner in ("a", "an", "the", "this")
        for word in phrase.counts:
            if word.isdecimal():
                value = int(word[:6])
                numbered = "number" in self.lower[max(phrase.first - 1, 0) : phrase.first + 4]
                if value >= 100 or (form == "singular" and (one_named or numbered)):
                    continue
                if value > 1:
                    return "many", word
                found = "one"
            elif word == "one":
                if self.lower[max(phrase.first - 2, 0) : phrase.first] == ["more", "than"]:
                    return "many", "more than one"
                found = "one"
            elif (
                word[0].isalpha()
                and word not in ("more", "most", "less", "fewer", "zero")
                and (not one_named or word in ("few", "dozen", "several", "many"))
            ):
                return "many", word
        if phrase.determiner in _MANY and form != "singular":
            return "many", phrase.determiner
        return found, ""

    def measure(self, phrase: _Phrase) -> str:
        """The noun before 'of': a herd of zebra."""
        return self.word(phrase.first - 2) if self.word(phrase.first - 1) == "of" else ""

    def agreed(self, end: int, determiner: str) -> tuple[Number, str]:
        """A noun that is its own plural: the verb decides; without one, bare is many."""
        for word in self.lower[end : end + _REACH]:
            if word in _BREAKS:
                break
            if word in _ONE_OWNS:
                return "one", f"and {word!r} makes it one"
        for at in range(end, min(end + _REACH, self.size)):
            word, tag = self.lower[at], self.tags[at]
            if word in _ONE_ACTS or (tag == "verb" and self.vocabulary.tagger.is_third(word)):
                return "one", f"and {word!r} makes it one"
            if word in _MANY_ACT or (tag == "verb" and self.vocabulary.tagger.is_plain(word)):
                return "many", f"and {word!r} makes it many"
            if tag in ("verb", "conjunction") or (tag == "pronoun" and at > end) or word in _BREAKS:
                break
        return ("any", "and the number is left open") if determiner else ("many", "and without an article it is many")

    # --- words that stand for a noun ------------------------------------------------------------------------

    def stand_ins(self) -> None:
        """A red bus and a blue one; a zebra here and two that sleep; one cat sits while the other plays."""
        named = tuple(self.mentions)
        earlier = 0
        for at, word in enumerate(self.lower):
            if word not in _STAND_INS:
                continue
            place = self.words.start[at]
            while earlier < len(named) and named[earlier].end <= place:
                earlier += 1
            nearest = self.stands_for(word, at)
            if not earlier or nearest is None:
                continue
            of = named[earlier - 1 if nearest else 0].label
            number: Number = "one" if word in ("one", "another", "other") else "many"
            why = f"another {of}" if number == "one" else f"more {plural(of)}"
            self.mentions.append(Mention(of, number, place, self.words.end[at], f"{word!r} stands for {why}"))

    def stands_for(self, word: str, at: int) -> bool | None:
        """Whether a word stands for what was named last (else first); None if it stands for nothing."""
        after = self.tag(at + 1)
        if word != "ones" and (after in (*_NOUNS, "number") or self.word(at + 1) in ("of", "another", "'s")):
            return None
        phrase = self.before(at)
        before = self.word(phrase.first - 1)
        rest = at + 1
        while self.tag(rest) == "adjective" and rest - at < _REACH:
            rest += 1
        if rest > at + 1 and self.tag(rest) in (*_NOUNS, "number"):
            return None
        if word in ("another", "other"):
            if before in ("one", "each") or (word == "other" and (phrase.determiner != "the" or after != "verb")):
                return None
            return after != "verb"
        if word in ("one", "ones") and phrase.determiner and self.tag(at - 1) == "adjective":
            return True if before and before not in _BREAKS else None
        if before == "and" and phrase.first == at and word != "ones":
            return rest > at + 1
        return None


def _named(entry: Entry, label: str, said: str, written: str) -> str:
    """How a word names its class."""
    if len(entry.words) == 1 and written != entry.words[0]:
        return f"{said!r} is read as {entry.words[0]}"
    if entry.kind == "many":
        return f"{said!r} is a word for {plural(label)}"
    if entry.kind == "implied":
        return f"{said!r} has a {label}"
    of = "" if entry.lemma == label else f"a word for {label}"
    if entry.form == "plural" and entry.kind != "pair":
        return f"{said!r} is the plural of {entry.lemma}" + (f", {of}" if of else "")
    return f"{said!r} is {of}" if of else f"{said!r} names it"


def _one_slip(word: str, right: str) -> bool:
    """Whether one letter more, less or other, or two letters swapped, make the one into the other."""
    if abs(len(word) - len(right)) > 1 or word == right:
        return False
    at = 0
    while at < min(len(word), len(right)) and word[at] == right[at]:
        at += 1
    if len(word) == len(right):
        swapped = word[at : at + 2] == right[at : at + 2][::-1] and word[at + 2 :] == right[at + 2 :]
        return swapped or word[at + 1 :] == right[at + 1 :]
    return word[at + 1 :] == right[at:] if len(word) > len(right) else word[at:] == right[at + 1 :]
