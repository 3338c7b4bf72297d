"""The order in which a system is asked: shuffled by the seed, and of no consequence for a system without memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import instar
from instar.engine.order import Order
from instar.engine.plan import SOURCE, Key, Plan, bound_rules, make_plan
from instar.store import KEY
from tests.toys import write_scenes

RULES = ("identity", "mirror(h)", "gamma(0.5)", "gamma(2)", "noise(20) => poses(draws=3)")


def plan_of(*rules: str, kind: str = "poses", seed: int = 0, deterministic: bool = True) -> Plan:
    return make_plan(bound_rules(rules, kind), seed=seed, deterministic=deterministic)


def names(keys: tuple[Key, ...]) -> list[str]:
    return [name for name, _, _ in keys]


def test_every_key_is_asked_once_and_every_input_comes_at_every_place() -> None:
    plan = plan_of(*RULES)
    order = Order(plan, "poses")
    firsts, before_mirror = Counter[str](), Counter[str]()
    for case in map(str, range(400)):
        keys = order(case)
        assert sorted(keys) == sorted(plan.keys())
        sequence = names(keys)
        firsts[sequence[0]] += 1
        before_mirror[sequence[sequence.index("mirror(h)") - 1] if sequence[0] != "mirror(h)" else "another case"] += 1
    # 8 inputs, 3 of them draws of noise: 50 of 400 each are expected
    assert set(firsts) == {SOURCE, "identity", "mirror(h)", "gamma(0.5)", "gamma(2)", "noise(20)"}
    assert all(25 <= firsts[name] <= 80 for name in (SOURCE, "identity", "mirror(h)"))
    assert 25 <= before_mirror[SOURCE] <= 80


def test_the_order_is_settled_by_seed_and_case() -> None:
    one, same, other = (Order(plan_of(*RULES, seed=seed), "poses") for seed in (3, 3, 4))
    cases = [str(number) for number in range(20)]
    assert [one(case) for case in cases] == [same(case) for case in cases]
    assert sum(one(case) == other(case) for case in cases) < 3
    assert len({one(case) for case in cases}) > 15


def test_what_is_left_keeps_its_order_and_another_rule_moves_nobody() -> None:
    order, more = Order(plan_of(*RULES), "poses"), Order(plan_of(*RULES, "mirror(v)"), "poses")
    for case in map(str, range(20)):
        whole = order(case)
        assert order.of(case, whole[2:5][::-1]) == whole[2:5]
        assert more.of(case, whole) == whole


def test_draws_and_the_repeats_of_the_source_are_scattered_in_ascending_order() -> None:
    plan = plan_of("noise(20) => poses(draws=3, repeats=2)", "mirror(h)", deterministic=False)
    for case in map(str, range(20)):
        keys = Order(plan, "poses")(case)
        noise = [key for key in keys if key[0] == "noise(20)"]
        assert noise == sorted(noise)
        assert [key for key in keys if key[0] == SOURCE] == [(SOURCE, 0, 0), (SOURCE, 0, 1)]
        places = [keys.index(("noise(20)", draw, 0)) for draw in range(3)]
        assert [keys[place + 1] for place in places] == [("noise(20)", draw, 1) for draw in range(3)], "made once"


def test_the_source_comes_before_what_depends_on_the_answer_to_it() -> None:
    order = Order(plan_of("identity", "gamma(2)", "mirror(h)", "discs(3)"), "poses")
    first = Counter(names(order(str(case)))[0] for case in range(200))
    assert all(names(order(case)).index(SOURCE) < names(order(case)).index("discs(3)") for case in map(str, range(200)))
    assert first["discs(3)"] == 0 and min(first[name] for name in (SOURCE, "identity", "gamma(2)", "mirror(h)")) > 10


@pytest.mark.parametrize(("system", "workers"), [("tests.toys:shaky", 2), ("tests.toys:steady", 0)])
def test_a_system_without_memory_answers_alike_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, workers: int
) -> None:
    photos = write_scenes(tmp_path / "photos", 4)
    rules = instar.Suite("s", tuple(map(instar.rule, (*RULES, "gamma(3) => poses(repeats=2)"))))
    shuffled = instar.run(system, rules, photos, out=tmp_path / "shuffled", workers=workers)
    monkeypatch.setattr(Order, "of", lambda self, case, keys: tuple(keys))
    fixed = instar.run(system, rules, photos, out=tmp_path / "fixed", workers=0)
    sequence = fixed.predictions().filter(case="000.png").select(KEY[1:]).rows()
    assert sequence[0] == (SOURCE, 0, 0), "source first"
    first, second = (one.predictions().drop("seconds").sort(KEY) for one in (shuffled, fixed))
    assert first.equals(second)
    by = ["rule", "case", "target"]
    assert shuffled.verdicts().sort(by).equals(fixed.verdicts().sort(by))
