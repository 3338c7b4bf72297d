"""Advice: sentences that follow from the measures of a run, each with the numbers that it follows from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from instar.report.words import count_of, rate_text
from instar.stats import ends, wilson
from instar.tasks.hand_pose.counts import FINGERS, CountColumns
from instar.tasks.hand_pose.follow_ups import GROUPS
from instar.tasks.hand_pose.measures import MARGIN, Floats, Sums, parts_of, right_share

LEAST = 10
"""Cases below which nothing is said: intervals of fewer are too narrow to be trusted, or too wide to say anything."""
ENOUGH = 60
"""Cases below which nothing is called robust: what befalls one case in twenty may not be among fewer, and resampling
cannot know of what it has not seen."""
HIGH, LOW, FAR, NONE = 0.8, 0.5, 0.3, 0.2
"""A measure from here up is high, below here low; so much less is far less; so little is next to nothing."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence, the name of the rule that it comes from, and the numbers that it follows from."""

    ground: str
    says: str
    because: str


@dataclass(frozen=True, slots=True)
class AdviceRule:
    """When advice is given: the name of the rule, its condition in words, and what it advises.

    Surely means: with the whole 95 % interval.
    """

    name: str
    when: str
    advice: Callable[[Sums], list[Advice]]


def advice_of(sums: Sums) -> list[Advice]:
    """What all rules advise, in their order; where there are too few cases, only that."""
    few, *rules = ADVICE_RULES
    return few.advice(sums) or [advice for rule in rules for advice in rule.advice(sums)]


def advice_frame(advice: Sequence[Advice]) -> pl.DataFrame:
    rows = [(each.ground, each.says, each.because) for each in advice]
    return pl.DataFrame(rows, orient="row", schema=dict.fromkeys(("ground", "says", "because"), pl.String))


def is_unlabelled(sums: Sums) -> bool:
    """Whether answers are compared with nothing but the system's own answers to the source."""
    return set(sums.counts.cases["reference"]) == {"source"}


def looks_at_images(sums: Sums) -> bool:
    """Whether covering every landmark may cost something."""
    lost = _lost_when_all_is_covered(sums)
    return lost is None or not _is_below(lost, MARGIN)


def points_text(difference: float, low: float, high: float, unit: str) -> str:
    """A difference of shares with its interval: 12 points (3 to 20)."""
    return f"{round(100 * difference)}{unit and f' {unit}'} ({round(100 * low)} to {round(100 * high)})"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# --- numbers ---------------------------------------------------------------------------------------


def _share(values: Floats) -> str:
    """A share with its interval: 50 % (25–75)."""
    return rate_text(float(values[0]), *map(float, ends(values[1:])))


def _points(values: Floats, unit: str) -> str:
    low, high = map(float, ends(values[1:]))
    return points_text(float(values[0]), low, high, unit)


def _costs(lost: Mapping[str, Floats], measure: str = "F1") -> str:
    """What some test cases cost, strongest first."""
    (title, values), *rest = sorted(lost.items(), key=lambda each: -each[1][0])
    first = f"{title} costs {_points(values, f'points of {measure}')}"
    return ", ".join([first, *(f"{title} {_points(values, '')}" for title, values in rest)])


def _is_above(values: Floats, limit: float) -> bool:
    """Surely above."""
    return bool(ends(values[1:])[0] > limit)


def _is_below(values: Floats, limit: float) -> bool:
    """Surely below."""
    return bool(ends(values[1:])[1] < limit)


def _lost_when_all_is_covered(sums: Sums) -> Floats | None:
    """What F1 loses where every landmark is covered; None where TC1 is not in the suite."""
    covering = sums.covering
    if covering is None or max(covering.levels) < len(covering.counts.landmarks):
        return None
    return covering.lost("f1", [covering.levels[max(covering.levels)]])


def _lost_by_group(sums: Sums) -> dict[str, dict[str, Floats]]:
    """What F1 loses in each test case that must cost next to nothing, of those with enough cases."""
    groups = {
        group: {
            sums.counts.test_cases[place].title: sums.lost("f1", [place])
            for place in sums.group(group)
            if sums.judged([place]) >= LEAST
        }
        for group in GROUPS
    }
    return {group: lost for group, lost in groups.items() if lost}


# --- what is advised -------------------------------------------------------------------------------


def _few(sums: Sums) -> list[Advice]:
    count = sums.judged([0])
    if count >= LEAST:
        return []
    f1 = f", with an F1 of {_share(sums.values('f1', [0]))}" if count else ""
    says = f"Nothing can be said of it: advice takes at least {LEAST} cases, and small differences take hundreds."
    return [Advice("few", says, f"the run judged {count_of(count, 'case') if count else '0 cases'}{f1}")]


def _unlabelled(sums: Sums) -> list[Advice]:
    if not is_unlabelled(sums):
        return []
    says = (
        "Nothing is annotated: its answers are compared with its own answers to the source, so that a system that is "
        "wrong and steady looks good."
    )
    return [Advice("unlabelled", says, f"none of the {count_of(sums.judged([0]), 'case')} has a ground truth")]


def _unseeing(sums: Sums) -> list[Advice]:
    lost, f1 = _lost_when_all_is_covered(sums), sums.values("f1", [0])
    if lost is None or looks_at_images(sums):
        return []
    because = f"covering every landmark costs {_points(lost, 'points of F1')}; F1 of the source {_share(f1)}"
    if not is_unlabelled(sums) and _is_below(f1, LOW):
        says = (
            "It does not look at the image: covering the whole hand changes nothing, and most of its answers are "
            "wrong. It answers with something like the mean hand."
        )
    else:
        says = (
            "Covering the whole hand changes nothing: find out whether it looks at the image at all, or knows these "
            "images already."
        )
    return [Advice("unseeing", says, because)]


def _precise(sums: Sums) -> list[Advice]:
    precision, recall = (sums.values(name, [0, *sums.bounded]) for name in ("precision", "recall"))
    more = precision - recall
    if not looks_at_images(sums) or np.isnan(more[0]):
        return []
    because = f"over source and test cases, precision {_share(precision)}, recall {_share(recall)}"
    if precision[0] >= HIGH and _is_above(more, MARGIN):
        says = (
            "When something changes, it gives no answer more often than a wrong one."
            if is_unlabelled(sums)
            else "Precise: it misses rather than guesses. It suits uses where a wrong answer is worse than none."
        )
        return [Advice("precise", says, f"{because}, {_points(more, 'points less')}")]
    if recall[0] >= HIGH and _is_above(-more, MARGIN):
        trust = (
            "It suits uses where a missed hand is worse than a wrong one, and where light and background are yours "
            "to choose."
            if precision[0] >= LOW
            else "Most of its answers are wrong, and none can be trusted."
        )
        says = (
            "When something changes, it gives a wrong answer more often than none."
            if is_unlabelled(sums)
            else f"Sensitive: it guesses rather than misses. {trust}"
        )
        return [Advice("sensitive", says, f"{because}, {_points(-more, 'points more')}")]
    return []


def _finger(sums: Sums) -> list[Advice]:
    marks, parts = sums.columns([0]).marks, parts_of(sums.counts)
    known = {finger: marks[..., parts[finger], :].sum(-2) for finger in FINGERS if finger in parts}
    advice = []
    for finger, own in known.items():
        name = finger if finger == "thumb" else f"{finger} finger"
        rest = sum((other for one, other in known.items() if one != finger), np.zeros_like(own))
        right, elsewhere = right_share(own), right_share(rest)
        if np.isnan(right[0]) and rest[0, :3].sum() and is_unlabelled(sums):
            says = f"It ignores the {name}: no answer to a source has one."
            because = f"no landmark of the {name}, {rest[0, :3].sum():,.0f} of the others"
        elif not np.isnan(right[0] + elsewhere[0]) and _is_above(elsewhere - right, FAR):
            verb = "ignores" if _is_below(right, NONE) else "is weak at"
            says = f"It {verb} the {name}: do not trust it with gestures that need it."
            because = (
                f"of the {name}'s landmarks {_share(right)} are right, of the other fingers' {_share(elsewhere)}, "
                f"{_points(elsewhere - right, 'points more')}"
            )
        else:
            continue
        advice.append(Advice("finger", says, because))
    return advice


def _invents(sums: Sums) -> list[Advice]:
    empty = sums.counts.cases["empty"].to_numpy().astype(bool)
    wrong = CountColumns.of(sums.counts.counts, len(sums.counts.landmarks)).hands[..., 1]
    answers = (wrong[empty] > 0).any(1)
    count, hits = len(answers), int(answers.sum())
    low, high = wilson(hits, count)
    if count < LEAST or low <= MARGIN:
        return []
    says = "It answers although nothing is there: do not take an answer for the presence of a hand."
    because = (
        f"it answers in {hits} of {count} cases without a hand, in the source or a follow-up: "
        f"{rate_text(hits / count, low, high)}"
    )
    return [Advice("invents", says, because)]


def _dark(sums: Sums) -> list[Advice]:
    lost = {
        each.title: sums.lost("hand_recall", [place])
        for place, each in enumerate(sums.counts.test_cases)
        if each.darker and sums.judged([place]) >= LEAST
    }
    sure = {title: values for title, values in lost.items() if _is_above(values, MARGIN)}
    says = "It loses dark hands: give it light, or take another system for dim rooms."
    return [Advice("dark", says, _costs(sure, "recall of hands"))] if sure else []


_WEAK = {
    "occlusion": "do not use it where things, or other fingers, cover part of the hand",
    "exposure": "keep the light even, and the exposure of the camera under control",
    "blur": "do not use it for gestures in fast motion",
    "other": "keep them away from it",
}
_ROBUST = {
    "occlusion": "it suits hands that hold things",
    "exposure": "it suits places where the light changes, as outdoors",
    "blur": "it suits gestures in fast motion, such as sign language",
    "other": "they do it no harm",
}


def _weak(sums: Sums) -> list[Advice]:
    advice = []
    for group, lost in _lost_by_group(sums).items():
        sure = {title: values for title, values in lost.items() if _is_above(values, MARGIN)}
        if sure:
            says = f"Weak against {GROUPS[group]}: {_WEAK[group]}."
            advice.append((max(float(values[0]) for values in sure.values()), Advice("weak", says, _costs(sure))))
    return [each for _, each in sorted(advice, key=lambda weighed: -weighed[0])]


def _is_robust(sums: Sums, lost: Mapping[str, Floats]) -> bool:
    """Whether none of these test cases costs anything, as far as so many cases can tell."""
    return sums.judged([0]) >= ENOUGH and all(_is_below(values, MARGIN) for values in lost.values())


def _robust(sums: Sums) -> list[Advice]:
    if not looks_at_images(sums) or not _is_above(sums.values("f1", [0]), LOW):
        return []
    return [
        Advice("robust", f"Robust against {GROUPS[group]}: {_ROBUST[group]}.", _costs(lost))
        for group, lost in _lost_by_group(sums).items()
        if _is_robust(sums, lost)
    ]


def _open(sums: Sums) -> list[Advice]:
    groups, worst = [], dict[str, Floats]()
    for group, lost in _lost_by_group(sums).items() if looks_at_images(sums) else ():
        if not any(_is_above(values, MARGIN) for values in lost.values()) and not _is_robust(sums, lost):
            groups.append(GROUPS[group])
            title = max(lost, key=lambda each: float(ends(lost[each][1:])[1]))
            worst[title] = lost[title]
    if not worst:
        return []
    says = f"{count_of(sums.judged([0]), 'case')} are too few to say how robust it is against {listed(groups)}."
    return [Advice("open", says, _costs(worst))]


ADVICE_RULES = (
    AdviceRule("few", "fewer than 10 cases were judged: then this is all that is said", _few),
    AdviceRule("unlabelled", "no case has a ground truth", _unlabelled),
    AdviceRule(
        "unseeing",
        "covering every landmark costs surely less than 5 points of F1; that it answers with the mean "
        "hand is said where its F1 against the truth is surely below 50 %",
        _unseeing,
    ),
    AdviceRule(
        "precise, sensitive",
        "over source and test cases, precision (recall) is at least 80 % and surely more than "
        "5 points above recall (precision), and it is not unseeing",
        _precise,
    ),
    AdviceRule(
        "finger",
        "of a finger's landmarks surely 30 points fewer are right than of the others', in the source; it "
        "is ignored where surely fewer than 20 % are, or where no answer has it",
        _finger,
    ),
    AdviceRule(
        "invents", "it answers in surely more than 5 % of at least 10 cases whose reference has no hand", _invents
    ),
    AdviceRule("dark", "a darker image costs surely more than 5 points of the hands' recall", _dark),
    AdviceRule("weak", "a test case costs surely more than 5 points of F1; strongest first", _weak),
    AdviceRule(
        "robust",
        "every test case of a kind costs surely less than 5 points of an F1 that is surely above 50 %, in "
        "at least 60 cases, and it is not unseeing",
        _robust,
    ),
    AdviceRule("open", "of a kind of test cases neither is sure", _open),
)
"""When advice is given, in the order in which it is."""
