"""Advice: sentences that follow from the measures of a run, each with the numbers that it follows from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from instar.engine import SOURCE
from instar.report.words import count_of, of_total, rate_text
from instar.stats import ends, wilson
from instar.tasks.hand_pose.counts import FINGERS, CountColumns
from instar.tasks.hand_pose.faults import (
    answered,
    doubled,
    exchanged,
    follows,
    misread,
    silent,
    stays_everywhere,
    still,
)
from instar.tasks.hand_pose.follow_ups import GROUPS
from instar.tasks.hand_pose.measures import MARGIN, Floats, Sums, parts_of, right_share
from instar.tasks.hand_pose.sentences import (
    ENOUGH,
    FAR,
    HIGH,
    LEAST,
    LOW,
    NONE,
    Advice,
    Loss,
    costs_text,
    is_above,
    is_below,
    listed,
    loss_of,
    points_of,
    share_text,
)

NEAR, NEAR_PIXELS = 0.01, 1.0
"""Answers whose middles vary by less than this share of the frame, or so many pixels, are in one place."""


@dataclass(frozen=True, slots=True)
class AdviceRule:
    """When advice is given: the name of the rule, its condition in words, and what it advises.

    Surely means: with the whole 95 % interval.
    """

    name: str
    when: str
    advice: Callable[[Sums], list[Advice]]
    alone: bool = False
    """Whether nothing else is worth saying where it is said."""


def advice_of(sums: Sums) -> list[Advice]:
    """What all rules advise, in their order; where one says all there is to say, only that."""
    advice: list[Advice] = []
    for rule in ADVICE_RULES:
        sentences = rule.advice(sums)
        if rule.alone and sentences:
            return sentences
        advice += sentences
    return advice


def advice_frame(advice: Sequence[Advice]) -> pl.DataFrame:
    rows = [(each.ground, each.says, each.because) for each in advice]
    return pl.DataFrame(rows, orient="row", schema=dict.fromkeys(("ground", "says", "because"), pl.String))


def is_unlabelled(sums: Sums) -> bool:
    """Whether answers are compared with nothing but the system's own answers to the source."""
    return set(sums.counts.cases["reference"]) == {"source"}


def looks_at_images(sums: Sums) -> bool:
    """Whether covering every landmark may cost something, and hands move where the image was moved."""
    lost = _lost_when_all_is_covered(sums)
    return (lost is None or not is_below(lost, MARGIN)) and not stays_everywhere(sums)


# --- numbers ---------------------------------------------------------------------------------------


def _lost_when_all_is_covered(sums: Sums) -> Floats | None:
    """Which part of F1 is lost where every landmark is covered; None where TC1 is not in the suite."""
    covering = sums.covering
    if covering is None or max(covering.levels) < len(covering.counts.landmarks):
        return None
    return np.nan_to_num(covering.part_lost("f1", [covering.levels[max(covering.levels)]]))


def _lost_by_group(sums: Sums) -> dict[str, dict[str, Loss]]:
    """What F1 loses in each test case that must cost next to nothing, of those with enough cases."""
    groups = {
        group: {
            sums.counts.test_cases[place].title: loss_of(sums, "f1", place)
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
    total = len(sums.counts.cases)
    if is_unlabelled(sums):  # the source would be compared with itself
        which, because = "in whose source it finds a hand", f"it finds one in {of_total(count, total, 'case')}"
    else:
        which = "with a ground truth" if "source" not in sums.counts.cases["reference"] else "that have a reference"
        f1 = f", with an F1 of {share_text(sums.values('f1', [0]))}" if count else ""
        because = f"{of_total(count, total, 'case')} {'is' if count == 1 else 'are'} such{f1}"
    says = f"No advice yet: it takes at least {LEAST} cases {which}, and small differences take hundreds."
    return [Advice("few", says, because)]


def _unlabelled(sums: Sums) -> list[Advice]:
    if not is_unlabelled(sums):
        return []
    says = (
        "Nothing is annotated: its answers are compared with its own answers to the source, so that a system that is "
        "wrong and steady looks good."
    )
    return [Advice("unlabelled", says, f"none of the {count_of(sums.judged([0]), 'case')} has a ground truth")]


def _is_mean_hand(sums: Sums) -> bool:
    """Whether its answers to different images are in the same place, in pixels or in shares of the frame."""
    places = sums.counts.facts.filter((pl.col("follow_up") == SOURCE) & (pl.col("hands") > 0))
    middles = (places.select("x", "y") / NEAR_PIXELS, places.select("across", "down") / NEAR)
    return places.height > 1 and any(max(middle.std().row(0)) < 1 for middle in middles)


def _unseeing(sums: Sums) -> list[Advice]:
    if looks_at_images(sums):
        return []
    lost, f1, counted = _lost_when_all_is_covered(sums), sums.values("f1", [0]), still(sums)
    if stays_everywhere(sums):
        moved = ", ".join(f"{title} {hits} of {count}" for title, (hits, count) in counted.items())
        what, because = "moving the image changes nothing", f"answers that stay where they were: {moved}"
    else:
        assert lost is not None
        what, because = (
            "covering the whole hand changes nothing",
            f"covering every landmark costs {share_text(lost)} of F1",
        )
    because = f"{because}; F1 of the source {share_text(f1)}"
    if is_unlabelled(sums) or not is_below(f1, LOW):
        doubt = "find out whether it looks at the image at all, or knows these images already"
        says = f"{what[0].upper()}{what[1:]}: {doubt}."
    else:
        mean = " It answers with something like the mean hand." if _is_mean_hand(sums) else ""
        says = f"It does not look at the image: {what}, and most of its answers are wrong.{mean}"
    return [Advice("unseeing", says, because)]


def _poor(sums: Sums) -> list[Advice]:
    f1 = sums.values("f1", [0])
    if is_unlabelled(sums) or not is_below(f1, LOW):
        return []
    says = "Poor as it is: most landmarks of the source are wrong or missing, before anything is changed."
    return [
        Advice("poor", says, f"F1 of the source {share_text(f1)}, of hands {share_text(sums.values('hand_f1', [0]))}")
    ]


def _precise(sums: Sums) -> list[Advice]:
    precision, recall = (sums.values(name, [0, *sums.bounded]) for name in ("precision", "recall"))
    more = precision - recall
    if not looks_at_images(sums) or np.isnan(more[0]):
        return []
    because = f"over source and test cases, precision {share_text(precision)}, recall {share_text(recall)}"
    if precision[0] >= HIGH and is_above(more, MARGIN):
        says = (
            "When something changes, it gives no answer more often than a wrong one."
            if is_unlabelled(sums)
            else "Precise: it misses rather than guesses. It suits uses where a wrong answer is worse than none."
        )
        return [Advice("precise", says, f"{because}, {points_of(more)}")]
    if recall[0] >= HIGH and is_above(-more, MARGIN):
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
        return [Advice("sensitive", says, f"{because}, {points_of(more)}")]
    return []


def _finger(sums: Sums) -> list[Advice]:
    """Fingers, the wrist and, where none of these is to blame, the tips: in the source, else where it was changed."""
    changed = [place for place in sums.bounded if sums.counts.test_cases[place].group != "occlusion"]
    advice = _weak_parts(sums, [0], "") if not is_unlabelled(sums) else _absent_parts(sums)
    return advice or (_weak_parts(sums, changed, " when the image changes") if changed else [])


def _named_parts(sums: Sums) -> dict[str, list[int]]:
    parts = parts_of(sums.counts)
    names = {part: f"{part} finger" if part in FINGERS and part != "thumb" else part for part in parts}
    tips = [place for place, name in enumerate(sums.counts.landmarks) if name.endswith("_tip")]
    return {**{names[part]: places for part, places in parts.items()}, **({"fingertips": tips} if tips else {})}


def _absent_parts(sums: Sums) -> list[Advice]:
    """Parts that no answer to a source has, which shows without labels."""
    marks = sums.columns([0]).marks[0, :, :3].sum(-1)
    return [
        Advice(
            "finger",
            f"It ignores the {name}: no answer to a source has {'one' if name != 'fingertips' else 'any'}.",
            f"no landmark of the {name}, {marks.sum():,.0f} of the others",
        )
        for name, places in _named_parts(sums).items()
        if not marks[places].sum() and marks.sum()
    ]


def _weak_parts(sums: Sums, which: Sequence[int], when: str) -> list[Advice]:
    marks = sums.columns(which).marks
    advice: list[Advice] = []
    for name, places in _named_parts(sums).items():
        others = [place for part in parts_of(sums.counts).values() for place in part if place not in places]
        right, elsewhere = (right_share(marks[..., part, :].sum(-2)) for part in (places, others))
        if (advice and name == "fingertips") or np.isnan(right[0] + elsewhere[0]):
            continue
        if is_above(elsewhere - right, FAR):
            verb = "loses" if when else "ignores" if is_below(right, NONE) else "is weak at"
            says = f"It {verb} the {name}{when}: do not trust it with gestures that need it."
            because = (
                f"of the landmarks of the {name} {share_text(right)} are right, of the others {share_text(elsewhere)}, "
                f"{points_of(right - elsewhere)}"
            )
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
        each.title: loss_of(sums, "hand_recall", place)
        for place, each in enumerate(sums.counts.test_cases)
        if each.darker and sums.judged([place]) >= LEAST
    }
    sure = {title: loss for title, loss in lost.items() if is_above(loss.part, MARGIN)}
    says = "It loses dark hands: give it light, or take another system for dim rooms."
    return [Advice("dark", says, costs_text(sure, "recall of hands"))] if sure else []


_WEAK = {
    "occlusion": "do not use it where things, or other fingers, cover part of the hand",
    "exposure": "keep the light even, and the exposure of the camera under control",
    "blur": "do not use it for gestures in fast motion",
    "geometry": "it is wrong where the image is mirrored, turned, moved, cut or padded: look at its coordinates",
    "colour": "do not use it for people of all skins",
    "other": "keep them away from it",
}
_ROBUST = {
    "occlusion": "it suits hands that hold things",
    "exposure": "it suits places where the light changes, as outdoors",
    "blur": "it suits gestures in fast motion, such as sign language",
    "geometry": "it finds hands wherever they are in the frame",
    "colour": "it suits people of all skins",
    "other": "they do it no harm",
}


def _weak(sums: Sums) -> list[Advice]:
    advice = []
    for group, lost in _lost_by_group(sums).items():
        sure = {title: loss for title, loss in lost.items() if is_above(loss.part, MARGIN)}
        if sure:
            says = f"Weak against {GROUPS[group]}: {_WEAK[group]}."
            most = max(float(loss.points[0]) for loss in sure.values())
            advice.append((most, Advice("weak", says, costs_text(sure))))
    return [each for _, each in sorted(advice, key=lambda weighed: -weighed[0])]


def _is_robust(sums: Sums, lost: Mapping[str, Loss]) -> bool:
    """Whether none of these test cases costs anything, as far as so many cases can tell."""
    return sums.judged([0]) >= ENOUGH and all(is_below(loss.part, MARGIN) for loss in lost.values())


def _robust(sums: Sums) -> list[Advice]:
    if not looks_at_images(sums) or not is_above(sums.values("f1", [0]), LOW):
        return []
    return [
        Advice("robust", f"Robust against {GROUPS[group]}: {_ROBUST[group]}.", costs_text(lost))
        for group, lost in _lost_by_group(sums).items()
        if _is_robust(sums, lost)
    ]


def _open(sums: Sums) -> list[Advice]:
    groups, worst = [], dict[str, Loss]()
    for group, lost in _lost_by_group(sums).items() if looks_at_images(sums) else ():
        if not any(is_above(loss.part, MARGIN) for loss in lost.values()) and not _is_robust(sums, lost):
            groups.append(GROUPS[group])
            title = max(lost, key=lambda each: float(ends(lost[each].points[1:])[1]))
            worst[title] = lost[title]
    if not worst:
        return []
    hits, count = answered(sums)
    few = (
        f"It answers the source in {hits} of {count_of(count, 'image')}: that is too little"
        if hits < LEAST
        else f"{count_of(sums.judged([0]), 'case')} are too few"
    )
    says = f"{few} to say how robust it is against {listed(groups)}."
    return [Advice("open", says, costs_text(worst))]


ADVICE_RULES = (
    AdviceRule(
        "silent",
        "it answers in none of at least 3 images, or surely in fewer than 20 % of at least 10: then this is all "
        "that is said",
        silent,
        alone=True,
    ),
    AdviceRule(
        "misread, one place",
        "in the source, fewer than 50 % of the landmarks are right, and 80 % if all answers are read otherwise: from 0 "
        "to 1, as (y, x), in pixels of another image size, in another order; or 80 % of the answers are from 0 to 1, "
        "outside the image, or all in one place: then this is all that is said",
        misread,
        alone=True,
    ),
    AdviceRule(
        "few",
        "fewer than 10 cases can be compared, with their ground truth or with a hand in the source: then no other "
        "advice is given",
        _few,
        alone=True,
    ),
    AdviceRule("unlabelled", "no case has a ground truth", _unlabelled),
    AdviceRule(
        "unseeing",
        "covering every landmark costs surely less than 5 % of F1, or hands stay in most answers however the image is "
        "moved; that it answers with the mean hand is said where its F1 against the truth is surely below 50 % and its "
        "answers to all images lie in one place of the frame",
        _unseeing,
    ),
    AdviceRule("poor", "F1 of the source against the truth is surely below 50 %", _poor),
    AdviceRule(
        "follows",
        "under a test case that moves the image, surely more than 5 % of the answers stay where they were",
        follows,
    ),
    AdviceRule("exchanged", "two fingers surely lie in each other's place in more than 5 % of the cases", exchanged),
    AdviceRule("doubled", "surely more than 5 % of the cases have an answer with one hand twice", doubled),
    AdviceRule(
        "precise, sensitive",
        "over source and test cases, precision (recall) is at least 80 % and surely more than "
        "5 points above recall (precision), and it is not unseeing",
        _precise,
    ),
    AdviceRule(
        "finger",
        "of the landmarks of a finger, the wrist or the fingertips surely 30 points fewer are right than of the "
        "others, in the source or, where none is, in the test cases that cover nothing; it is ignored where surely "
        "fewer than 20 % are, or where no answer has it",
        _finger,
    ),
    AdviceRule(
        "invents", "it answers in surely more than 5 % of at least 10 cases whose reference has no hand", _invents
    ),
    AdviceRule("dark", "a darker image costs surely more than 5 % of the hands' recall", _dark),
    AdviceRule(
        "weak", "a test case costs surely more than 5 % of the F1 that there was to lose; strongest first", _weak
    ),
    AdviceRule(
        "robust",
        "every test case of a kind costs surely less than 5 % of an F1 that is surely above 50 %, in "
        "at least 60 cases, and it is not unseeing",
        _robust,
    ),
    AdviceRule(
        "open",
        "of a kind of test cases neither is sure; fewer than 10 answers to sources are named as the reason",
        _open,
    ),
)
"""When advice is given, in the order in which it is."""
