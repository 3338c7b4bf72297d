"""Whether the search for combinations finds more than chance: seeded faults, several seeds, the same budget. Nothing
limits what a person sees: that is another question, and takes most of the time.

python -m studies.combinations --seeds 10 --budget 300 --write
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from instar.analysis.combinations import combinable
from instar.analysis.search import Limits, Search
from instar.datasets import dataset
from instar.engine import predict
from instar.stats import fisher, wilson
from instar.store import Row, SearchInfo, Store
from instar.suites import suite
from tests.quality.combined_faults import FAULTS, NEEDED, RULES, photos
from tests.toys import image_system

RESULTS = Path(__file__).parent / "combinations.json"
CASES = 24
Picks = Literal["likely", "random"]
PICKS: tuple[Picks, ...] = ("likely", "random")
Each = Callable[[Callable[[int], bool], Sequence[int]], Iterable[bool]]


def is_found(name: str, picks: Picks, budget: int, seed: int) -> bool:
    """Whether a search names a fault: one of its combinations is made of the rules that the fault needs, and of no
    others, and breaks other cases, too."""
    rules, system = suite("+".join(RULES)), image_system(FAULTS[name], "detections")
    with tempfile.TemporaryDirectory() as place:
        store, cases = Store(Path(place) / "run"), dataset(photos(Path(place) / "photos", CASES))
        search = Search(store, combinable(rules.rules).rules, Limits(budget, None), None, picks)
        info = SearchInfo((), None, budget)
        predict(system, rules, cases, store, seed=seed, workers=0, choice=search, search=info)
        return any(
            {member.partition("(")[0] for member in one.members} == NEEDED[name] and one.alone > 0
            for one in search.combinations()
        )


def measured(
    seeds: Sequence[int], budget: int, names: Sequence[str] = tuple(FAULTS), each: Each = map
) -> dict[str, Row]:
    """By fault: of how many searches each way names it, with intervals, and Fisher's test of the two. `each` calls a
    function for every seed, here or in other processes."""
    results: dict[str, Row] = {}
    for name in names:
        hits = {picks: list(each(partial(is_found, name, picks, budget), seeds)) for picks in PICKS}
        likely, by_chance = (sum(row) for row in hits.values())
        shares = {
            str(picks): {"found": sum(row), "of": len(row), "interval": wilson(sum(row), len(row))}
            for picks, row in hits.items()
        }
        p = fisher(likely, len(seeds) - likely, by_chance, len(seeds) - by_chance)
        results[name] = {**shares, "p": p}
        print(name, json.dumps(results[name]), flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # libraries with threads do not bear a fork
        faults = measured(range(given.seeds), given.budget, each=pool.map)
    made = {"budget": given.budget, "cases": CASES, "rules": len(RULES), "faults": faults}
    if given.write:
        RESULTS.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    print(json.dumps(made))


if __name__ == "__main__":
    main()
