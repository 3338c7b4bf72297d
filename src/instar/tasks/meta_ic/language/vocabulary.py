"""A vocabulary: classes, and the words that name them. COCO's is built in; `docs/captions.md` describes the file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from instar.reading import file_text
from instar.spelling import unknown
from instar.tasks.meta_ic.language.nouns import plural
from instar.tasks.meta_ic.language.splitting import split
from instar.tasks.meta_ic.language.tagger import EmbeddedTagger
from instar.tasks.meta_ic.language.word_lists import read_table

Kind = Literal["word", "many", "mass", "either", "pair", "implied", "not", "wider"]
Form = Literal["singular", "plural", "both"]

# fmt: off
_LISTS: dict[str, Kind] = {
    "not": "not", "pairs": "pair", "mass": "mass", "either": "either", "many": "many", "implied": "implied",
    "words": "word",
}
# fmt: on
"""Keys of a class that hold words. A word in two of them is what the earlier says."""
_KEYS = (*_LISTS, "games", "names", "only", "super", "unless")
_TOP = ("class", "classes", "wider", "young")


@dataclass(frozen=True, slots=True)
class Entry:
    """One spelling of a word: what it names, as which kind of word, in the singular or the plural.

    `lemma` is the word as a lexicon lists it. Where `only` holds words, one of them must stand in the caption as well;
    none of `unless` may. `classes` are those that a wider word covers; its label is the word itself.
    """

    label: str
    lemma: str
    kind: Kind
    form: Form = "singular"
    words: tuple[str, ...] = ()
    game: bool = False
    name: bool = False
    only: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Classes and the words that name them.

    >>> coco().classes[:3], coco().supers["dog"], coco().within("food")[:3]
    (('person', 'bicycle', 'car'), 'animal', ('banana', 'apple', 'sandwich'))
    """

    name: str
    classes: tuple[str, ...]
    supers: Mapping[str, str]
    """The super-category of each class that has one."""
    entries: tuple[Entry, ...] = field(repr=False)
    young: Mapping[str, tuple[str, ...]] = field(repr=False)
    """Words for the young of several animals, with the classes they may be of."""

    def within(self, super_category: str) -> tuple[str, ...]:
        """The classes of a super-category, in order."""
        return tuple(label for label in self.classes if self.supers.get(label) == super_category)

    @cached_property
    def index(self) -> Mapping[str, tuple[tuple[Entry, ...], ...]]:
        """Entries by their first word, the longest first; those of the same spelling together."""
        spelled: dict[tuple[str, ...], list[Entry]] = {}
        for entry in self.entries:
            spelled.setdefault(entry.words, []).append(entry)
        index: dict[str, list[tuple[Entry, ...]]] = {}
        for words in sorted(spelled, key=len, reverse=True):
            group = [entry for entry in spelled[words] if entry.kind != "not"] or spelled[words]
            index.setdefault(words[0], []).append(tuple(group))
        return {word: tuple(groups) for word, groups in index.items()}

    @cached_property
    def tagger(self) -> EmbeddedTagger:
        """The embedded tagger, which knows the nouns of this vocabulary and of COCO's."""
        known = coco()
        single = [entry for entry in (*self.entries, *known.entries) if len(entry.words) == 1]
        ones = [entry for entry in single if entry.form != "plural"]
        return EmbeddedTagger(
            nouns=frozenset(entry.words[0] for entry in ones),
            plurals=frozenset(entry.words[0] for entry in single if entry.form != "singular"),
            animate=frozenset(entry.words[0] for entry in ones if self.lives(entry.label) or known.lives(entry.label)),
            people=frozenset(entry.words[0] for entry in ones if entry.label == "person"),
        )

    @cached_property
    def misspelt(self) -> Mapping[str, tuple[str, ...]]:
        """The long names of classes by what is left of them without one letter."""
        left: dict[str, list[str]] = {}
        for entry in self.entries:
            word = entry.words[0]
            if len(entry.words) == 1 and len(entry.lemma) > 6 and entry.lemma == entry.label:
                for part in {word, *(word[:at] + word[at + 1 :] for at in range(1, len(word)))}:
                    left.setdefault(part, []).append(word)
        return {part: tuple(words) for part, words in left.items()}

    def lives(self, label: str) -> bool:
        """Whether a class is of people or animals."""
        return label in ("person", "animal") or self.supers.get(label) in ("person", "animal")


def read_vocabulary(path: Path | str) -> Vocabulary:
    """A vocabulary from a TOML file; `classes = ["dog", "fire engine"]` alone is one.

    Raises ValueError, saying what in the file is wrong.
    """
    path = Path(path)
    try:
        content = tomllib.loads(file_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    try:
        return _vocabulary(path.stem, content, coco().supers)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


@cache
def coco() -> Vocabulary:
    """The 80 classes of COCO."""
    return _vocabulary("coco", read_table("coco"), {})


def _vocabulary(name: str, content: Mapping[str, object], known: Mapping[str, str]) -> Vocabulary:
    """From a file's content; a class that says nothing of its super-category has the one it is known for."""
    for key in content:
        if key not in _TOP:
            raise ValueError(str(unknown("key", key, _TOP)))
    plain = _strings(content.get("classes", []), "classes")
    tables = _table(content.get("class", {}), "class")
    classes = tuple(dict.fromkeys((*plain, *tables)))
    if not classes:
        raise ValueError('it names no class; classes = ["dog", "fire engine"] is enough')
    supers: dict[str, str] = {}
    entries: list[Entry] = []
    for label in classes:
        table = _table(tables.get(label, {}), f"class.{label}")
        for key in table:
            if key not in _KEYS:
                raise ValueError(f"class.{label}: {unknown('key', key, _KEYS)}")
        if "super" in table or label in known:
            supers[label] = _string(table.get("super", known.get(label)), f"class.{label}.super")
        entries += _of_class(label, table)
    for word, covered in _table(content.get("wider", {}), "wider").items():
        over = _covered(_strings(covered, f"wider.{word}"), classes, supers, f"wider.{word}")
        entries += _spellings(Entry(word, word, "wider", classes=over))
    young = {
        word: _covered(_strings(of, f"young.{word}"), classes, supers, f"young.{word}")
        for word, of in _table(content.get("young", {}), "young").items()
    }
    _check(entries)
    return Vocabulary(name, classes, MappingProxyType(supers), tuple(entries), MappingProxyType(young))


def _of_class(label: str, table: Mapping[str, object]) -> list[Entry]:
    where = f"class.{label}"
    games = set(_strings(table.get("games", []), f"{where}.games"))
    names = set(_strings(table.get("names", []), f"{where}.names"))
    only, unless = (
        {
            word: _around(around, f"{where}.{key}.{word}")
            for word, around in _table(table.get(key, {}), f"{where}.{key}").items()
        }
        for key in ("only", "unless")
    )
    lists = {key: _strings(table.get(key, []), f"{where}.{key}") for key in _LISTS}
    lists["words"] = (label, *lists["words"])
    listed = {word for words in lists.values() for word in words}
    for key, words in (("games", games), ("only", set(only)), ("unless", set(unless))):
        for word in sorted(words - listed):
            raise ValueError(f"{where}.{key}: {word!r} is no word of {label}; add it to `words`")
    spelled: dict[tuple[str, ...], Entry] = {}
    for key, kind in _LISTS.items():
        for word in lists[key]:
            with_words, without_words = (words.get(word, frozenset()) for words in (only, unless))
            lemma = Entry(label, word, kind, game=word in games, only=with_words, unless=without_words)
            for entry in _spellings(lemma):
                name = word in names or " ".join(entry.words) in names
                spelled.setdefault(entry.words, replace(entry, name=True) if name else entry)
    for entry in tuple(spelled.values()):  # hotdog, cellphone
        if len(entry.words) == 2 and entry.kind == "word" and "".join(entry.words).isalpha():
            spelled.setdefault(("".join(entry.words),), replace(entry, words=("".join(entry.words),)))
    return list(spelled.values())


def _spellings(entry: Entry) -> Iterator[Entry]:
    """A word in the singular and the plural."""
    word, kind, many = entry.lemma, entry.kind, plural(entry.lemma)
    forms: list[tuple[str, Form]] = [(word, "singular"), (many, "plural")]
    if kind == "pair":
        forms = [(word, "plural")]
    elif many == word:
        forms = [(word, "singular" if kind == "mass" else "both")]
    if not many.endswith("s"):  # persons, sheeps
        forms.append((f"{word}s", "plural"))
    for spelling, form in forms:
        words = tuple(split(spelling).lower)
        if not words:
            raise ValueError(f"{word!r} has no letter or digit; a word needs one")
        yield replace(entry, form=form, words=words)


def _check(entries: list[Entry]) -> None:
    """A word of two classes must be told apart by the words around it."""
    seen: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        other = seen.setdefault(entry.words, entry)
        if (
            entry.label != other.label
            and "not" not in (entry.kind, other.kind)
            and not (entry.only or other.only or entry.unless or other.unless)
        ):
            raise ValueError(
                f"{' '.join(entry.words)!r} names {other.label} and {entry.label}; say by `only` or "
                "`unless` when it is which"
            )


def _covered(
    names: tuple[str, ...], classes: tuple[str, ...], supers: Mapping[str, str], where: str
) -> tuple[str, ...]:
    """The classes that some names of classes and super-categories stand for; * is all."""
    labels: list[str] = []
    for name in names:
        within = list(classes) if name == "*" else [name] if name in classes else []
        within += [label for label in classes if supers.get(label) == name]
        if not within:
            raise ValueError(f"{where}: {unknown('class or super-category', name, [*classes, *supers.values()])}")
        labels += within
    return tuple(dict.fromkeys(labels))


def _around(value: object, where: str) -> frozenset[str]:
    words = _strings(value, where)
    return frozenset((*words, *map(plural, words)))


def _strings(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise ValueError(f"{where} is {value!r}; it must be a list of words")
    return tuple(value)


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} is {value!r}; it must be text")
    return value


def _table(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {value!r}; it must be a table")
    return value
