"""How many objects a mention is of: one, many, or left open."""

from __future__ import annotations

from instar.tasks.meta_ic.language.mentions import Number
from instar.tasks.meta_ic.language.sentence import NOUN_TAGS, REACH, Occurrence, Phrase, Sentence


def number_of(sentence: Sentence, occurrence: Occurrence) -> tuple[Number, str]:
    """One, many or open, and what decided it where the noun itself does not."""
    entry, _, first, end, _, phrase = occurrence
    kind, form, determiner = entry.kind, entry.form, phrase.determiner
    after, of = sentence.word(end), sentence.word(phrase.first - 1) == "of"
    measure = sentence.word(phrase.first - 2) if of else ""  # a herd of zebra
    if kind == "many":
        return "many", ""
    if after in sentence.lists.groups and entry.label != "person" and sentence.vocabulary.lives(entry.label):
        return "many", f"and {after!r} makes it many"
    if after in sentence.lists.depictions and sentence.tag(end) == "plural":  # horse statues
        return "many", f"and {after!r} makes it many"
    counted, by = _counted(sentence, phrase, form)
    if counted == "many":
        return "many", "" if form == "plural" else f"and {by!r} makes it many"
    if form == "plural" and kind != "pair":
        if determiner in ("a", "an") and phrase.first == first - 1:  # a women
            return "one", f"and {determiner!r} makes it one"
        return "many", ""
    if kind == "pair":
        if measure in sentence.lists.measures - sentence.lists.paired:
            return "many", f"and {measure!r} makes it many"
        return "any", "and the number is left open"
    if kind == "implied":
        return "any", "and the number is left open"
    if sentence.piece(entry.label, after):
        return "any", f"and {after!r} leaves the number open"
    if determiner in sentence.lists.open:
        return "any", f"and {determiner!r} leaves the number open"
    if not determiner and measure in sentence.lists.portions:
        return "any", f"and {measure!r} leaves the number open"
    if counted == "one" or determiner in sentence.lists.one:
        return "one", ""
    if kind == "either" and (determiner or {"whole", "entire"} & set(sentence.lower[phrase.first : first])):
        return "one", ""
    if kind in ("mass", "either"):
        return "any", "and the number is left open"
    if not determiner and measure in sentence.lists.measures:
        return "many", f"and {measure!r} makes it many"
    if not determiner and after == "'s" and sentence.tag(end + 1) not in (*NOUN_TAGS, "adjective", "verb", "number"):
        if _paired(sentence, entry.label):  # with ski's and poles
            return "any", "and the number is left open"
        return "many", "and 's makes it many"
    return _agreed(sentence, phrase, end) if form == "both" else ("one", "")


def _paired(sentence: Sentence, label: str) -> bool:
    groups = sentence.vocabulary.index.get(label)
    return groups is not None and groups[-1][0].kind == "pair"


def _counted(sentence: Sentence, phrase: Phrase, form: str) -> tuple[str, str]:
    """What the numerals before a noun say: one, many or nothing (a 747 jet, the number 9 bus); and which one."""
    if phrase.many:
        return "many", phrase.many
    if phrase.determiner in ("a", "an") and sentence.word(phrase.first - 1) == "many":  # many a tourist
        return "many", "many"
    number = ""
    one_named = form == "singular" and phrase.determiner in ("a", "an", "the", "this")
    for word in phrase.counts:
        if word.isdecimal():
            value = int(word[:6])
            numbered = "number" in sentence.lower[max(phrase.first - 1, 0) : phrase.first + 4]
            if value >= 100 or (form == "singular" and (one_named or numbered)):
                continue
            if value > 1:
                return "many", word
            number = "one"
        elif word == "one":
            if sentence.lower[max(phrase.first - 2, 0) : phrase.first] == ["more", "than"]:
                return "many", "more than one"
            number = "one"
        elif (
            word[0].isalpha()
            and word not in ("more", "most", "less", "fewer", "zero")
            and (not one_named or word in ("few", "dozen", "several", "many"))
        ):
            return "many", word
    if phrase.determiner in sentence.lists.many and form != "singular":
        return "many", phrase.determiner
    return number, ""


def _agreed(sentence: Sentence, phrase: Phrase, end: int) -> tuple[Number, str]:
    """A noun that is its own plural: the verb decides; without one, bare is many. The verb of several things (a dog and
    the sheep are), and a list without articles (dog, sheep) decide nothing."""
    determiner, before = phrase.determiner, phrase.first - 2
    linked = sentence.word(phrase.first - 1) in ("and", ",", ";", "&") and sentence.tag(before) in NOUN_TAGS
    if linked and (determiner or not sentence.before(before).determiner):
        return "any", "and the number is left open"
    for word in sentence.lower[end : end + REACH]:
        if word in sentence.lists.breaks:
            break
        if word in sentence.lists.one_owns:
            return "one", f"and {word!r} makes it one"
    for at in range(end, min(end + REACH, sentence.size)):
        word, tag = sentence.lower[at], sentence.tags[at]
        if word in sentence.lists.one_acts or (tag == "verb" and sentence.vocabulary.tagger.is_third(word)):
            return "one", f"and {word!r} makes it one"
        if word in sentence.lists.many_act or (tag == "verb" and sentence.vocabulary.tagger.is_plain(word)):
            return "many", f"and {word!r} makes it many"
        if tag in ("verb", "conjunction") or (tag == "pronoun" and at > end) or word in sentence.lists.breaks:
            break
    return ("any", "and the number is left open") if determiner else ("many", "and without an article it is many")
