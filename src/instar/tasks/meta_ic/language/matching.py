"""Where words of a vocabulary stand in a caption, and the tags of its words."""

from __future__ import annotations

from typing import TypeAlias

from instar.spelling import unknown
from instar.tasks.meta_ic.language.splitting import Words
from instar.tasks.meta_ic.language.tagger import TAGS, Tagger
from instar.tasks.meta_ic.language.vocabulary import Entry, Vocabulary

Match: TypeAlias = tuple[int, int, tuple[Entry, ...]]
"""From which word to which (not included) what entries match: one, or the several meanings of one spelling."""


def find_matches(lower: list[str], vocabulary: Vocabulary) -> list[Match]:
    """What words in small letters match, from left to right; longer names win."""
    index = vocabulary.index
    matches: list[Match] = []
    at = 0
    while at < len(lower):
        word = lower[at]
        groups = index.get(word)
        if groups is None:
            if 5 < len(word) < 20 and word.isalpha() and (right := _misspelt(word, vocabulary)):
                matches.append((at, at + 1, index[right][-1]))
            at += 1
            continue
        for group in groups:
            end = at + len(group[0].words)
            if end == at + 1 or (_spelled(group[0].words, lower[at:end]) and not _acts(group[0], lower[end : end + 1])):
                matches.append((at, end, group))
                at = end
                break
        else:
            at += 1
    return matches


def _spelled(words: tuple[str, ...], written: list[str]) -> bool:
    """Whether these words are written; * is any word."""
    return len(words) == len(written) and all(one in ("*", other) for one, other in zip(words, written, strict=True))


def _acts(entry: Entry, after: list[str]) -> bool:
    """Whether a zebra crossing is a zebra that crosses something, and what is man made a man who made something."""
    verb = entry.kind == "not" and entry.words[-1].endswith(("ing", "made"))
    return verb and after in (["a"], ["an"], ["the"])


def _misspelt(word: str, vocabulary: Vocabulary) -> str:
    """The long name that this is one slip away from, if it is no word of its own."""
    if not vocabulary.tagger.guesses_noun(word):
        return ""
    for part in (word, *(word[:at] + word[at + 1 :] for at in range(1, len(word)))):
        for right in vocabulary.misspelt.get(part, ()):
            if right[0] == word[0] and _one_slip(word, right):
                return right
    return ""


def tags_of(
    text: str, words: Words, matches: list[Match], vocabulary: Vocabulary, tagger: Tagger | None = None
) -> list[str]:
    """The tag of each word of a text: by a tagger of the user's, else by the embedded one."""
    if tagger is None:
        return vocabulary.tagger.tag(_unmistakable(words.lower, matches, vocabulary))
    tags = list(tagger(list(words.raw)))
    if len(tags) != len(words.raw):
        raise ValueError(f"the tagger gave {len(tags)} tags for the {len(words.raw)} words of {text[:80]!r}")
    for tag in tags:
        if tag not in TAGS:
            raise ValueError(f"the tagger's answer for {text[:80]!r}: {unknown('tag', str(tag), TAGS)}")
    return tags


def _unmistakable(lower: list[str], matches: list[Match], vocabulary: Vocabulary) -> list[str]:
    """The words for the embedded tagger, to which the dog of a hot dog must not look alive."""
    words = list(lower)
    for first, end, (entry, *_) in matches:
        last = words[end - 1]
        if end - first > 1 and last.isalpha() and not last.endswith("ing") and not vocabulary.lives(entry.label):
            words[end - 1] = "objects" if entry.form == "plural" else "object"
    return words


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
