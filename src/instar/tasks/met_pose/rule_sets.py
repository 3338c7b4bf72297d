"""Sets of a run's rules, by the paper's names for them, by suites, or as one spells them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from instar.analysis import Run
from instar.registry import names
from instar.relations import named_rule, own_equivariance
from instar.report.words import count_of
from instar.spelling import unknown
from instar.suites import named_suite, suite_pieces
from instar.tasks.met_pose.suite import PAPER_TABLE, TABLE, listed
from instar.transforms import families

ALL = "all"
NAMED = {
    "sub": tuple(dict.fromkeys((*listed(TABLE, only="sub"), *listed(PAPER_TABLE, only="sub")))),
    "grey": ("greyscale",),
    "mirror-h": ("mirror(h)",),
}
"""The paper's SubRels, Grey and Mirror-h, in its spelling and in ours; `all` is every rule of the run (AllRels)."""
_WHOLE = {"sub": len(listed(TABLE, only="sub")) - 1}
"""How many rules a set has, without identity, where a run may have some of them."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules of a run by their ids, and what a figure calls them."""

    name: str
    rules: tuple[str, ...]


def own_relation(run: Run) -> str:
    """The relation that the figures are about."""
    return own_equivariance(run.manifest.system.kind).relation.name


def chosen_sets(run: Run, texts: Sequence[str], usual: Sequence[str]) -> tuple[list[RuleSet], list[str]]:
    """The sets that a user spells, or the usual ones; and sentences on what of the usual ones the run does not have."""
    sets: list[RuleSet] = []
    notes: list[str] = []
    for text in texts or usual:
        rules, whole = _rules(run, text)
        twin = next((each.name for each in sets if set(each.rules) == set(rules)), None)
        if rules and twin and not texts:
            part = f", with {len(rules)} of its {whole}," if len(rules) < whole else ""
            notes.append(f"In this run {text}{part} has the same rules as {twin}.")
        elif rules:
            sets.append(RuleSet(_shown(text, len(rules), whole), tuple(rules)))
        elif texts:
            raise ValueError(f"the run {run.folder} has no rule of {text!r}")
        else:
            notes.append(f"This run has no rule of {text}, which is left out.")
    if not sets:
        raise ValueError(f"{run.folder} has no rule that changes something and is judged by {own_relation(run)}")
    return sets, notes


def _shown(text: str, count: int, whole: int) -> str:
    if text in NAMED and count == whole == 1:
        return text
    return f"{text} ({count} of {count_of(whole, 'rule')})" if count < whole else f"{text} ({count_of(count, 'rule')})"


def _rules(run: Run, text: str) -> tuple[list[str], int]:
    """The ids of the rules that a text means and that the run has, and how many it means."""
    rules: list[str] = []
    whole = 0
    for piece in suite_pieces(text):
        meant, count = _piece(run, piece)
        whole += count
        rules += [one for one in meant if one not in rules]
    return rules, whole


def _piece(run: Run, piece: str) -> tuple[list[str], int]:
    changing = run.changing_rules(own_relation(run))
    if piece == ALL:
        return changing, len(changing)
    if piece in NAMED:
        meant = _there(changing, NAMED[piece])
        return meant, _WHOLE.get(piece, len(NAMED[piece]))
    if piece in names("suites"):
        spelled = [one.id for one in named_suite(piece).rules if one.left != "identity"]
        return _there(changing, spelled), len(spelled)
    if not set(piece) & set("()|=:[") and piece not in families():
        raise unknown("set of rules", piece, [ALL, *NAMED, *names("suites"), *families()])
    own = run.rules().filter(relation=own_relation(run), over="case")["rule"].to_list()
    meant = _there(own, [piece])
    if not meant:
        raise unknown("rule of this run", piece, [one.partition(" => ")[0] for one in own])
    return meant, 1


def _there(rules: Sequence[str], spelled: Sequence[str]) -> list[str]:
    """Those of a run's rules that are spelled, with or without their relation."""
    wanted = {named_rule(one).id for one in spelled}
    return [one for one in rules if one in wanted or one.partition(" => ")[0] in wanted]
