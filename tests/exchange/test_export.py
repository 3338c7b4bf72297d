"""Every follow-up of a plan as a file with its key: what is written, what is skipped, and why there is none."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import instar
from instar.case import Case, read_input
from instar.datasets import Dataset, dataset
from instar.engine import Conflict, Outcome, Progress
from instar.exchange.export import export_inputs
from instar.exchange.exported import safe_name
from instar.files import Elsewhere
from instar.image import read_image
from instar.reading import MAX_PIXELS
from instar.scene import Scene
from instar.store import Busy, Store
from instar.suites import suite
from instar.transforms import draw_seed, transformation
from tests.clocks import wait_for
from tests.engine.test_scenes import on_files
from tests.toys import scene, write_scenes

ROOT = Path(__file__).parents[2]
RULES = "mirror(h) => poses(repeats=2) + noise(8) => poses(draws=3) + rotate90(1)"
KEYS = {
    ("source", 0, 0),
    ("source", 0, 1),
    ("mirror(h)", 0, 0),
    ("mirror(h)", 0, 1),
    ("noise(8)", 0, 0),
    ("noise(8)", 1, 0),
    ("noise(8)", 2, 0),
    ("rotate90(1)", 0, 0),
}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_scenes(tmp_path / "photos", 3)


def exported(data: Path | Dataset, folder: Path, rules: str = RULES, kind: str = "poses", **more: Any) -> Outcome:
    return export_inputs(data if isinstance(data, Dataset) else dataset(data), suite(rules), folder, kind=kind, **more)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "inputs.jsonl").read_text("ascii").splitlines()]


def written(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*.png"))}


# --- what is written -------------------------------------------------------------------------------


def test_every_key_of_the_plan_is_a_line_with_the_file_that_a_run_would_predict(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome = exported(photos, out, stochastic=True, seed=7)
    found = lines(out)
    assert outcome.statuses == {"ok": 3 * len(KEYS)} and outcome.fresh == 3 * len(KEYS)
    assert sorted((line["case"], line["follow_up"], line["draw"], line["repeat"]) for line in found) == sorted(
        (f"{number:03d}.png", *key) for number in range(3) for key in KEYS
    )
    for line in found:
        name, case = line["follow_up"], line["case"]
        wanted = transformation("identity" if name == "source" else name)
        follow_up, change = wanted(read_image(photos / case), seed=draw_seed(7, case, wanted, line["draw"]))
        assert np.array_equal(read_image(out / line["file"]).pixels, follow_up.pixels)
        assert (line["width"], line["height"]) == follow_up.size
        assert line["change"] == {
            "warp": change.warp.matrix.tolist(),
            "regions": [],
            "added": [],
            "removed": [],
            "facts": {},
        }
        assert line["seed"] == draw_seed(7, case, name if name == "source" else wanted, line["draw"], line["repeat"])


def test_a_deterministic_system_is_asked_once_and_needs_no_seed(photos: Path, tmp_path: Path) -> None:
    exported(photos, tmp_path / "out")
    assert {(line["repeat"], line["seed"]) for line in lines(tmp_path / "out")} == {(0, 0)}


def test_scenes_are_json_as_programs_are_given_them_and_masks_are_pictures(tmp_path: Path) -> None:
    data, out = on_files(tmp_path / "data", 2), tmp_path / "out"
    exported(data, out, "class_change(road, pavement) => direction(increase) + mirror(h) => wvc", "forecast")
    first = next(data.cases())
    changed = next(line for line in lines(out) if line["follow_up"] != "source" and line["case"] == first.id)
    follow_up, change = transformation("class_change(road, pavement)")(read_input(first)[0])
    told = json.loads((out / changed["file"]).read_text())
    cells = cv2.imdecode(np.frombuffer(base64.b64decode(told["classes"]), np.uint8), cv2.IMREAD_UNCHANGED)
    assert isinstance(follow_up, Scene) and cells is not None and change.mask is not None
    assert np.array_equal(cells, follow_up.classes)
    assert told["past"] == follow_up.past.tolist()
    assert (told["kind"], told["steps"], told["width"]) == ("scene", follow_up.steps, follow_up.size[0])
    mask = cv2.imread(str(out / changed["change"]["mask"]), cv2.IMREAD_GRAYSCALE)
    assert mask is not None and np.array_equal(mask > 0, change.mask)
    assert changed["change"]["added"] == ["pavement"]


def test_what_cannot_be_made_is_a_line_with_the_reason_and_no_file(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(photos, out, "colour_wheel(90, red) + erase(0.95) => presence(gone) + recorded(paste)", "detections")
    said = {line["follow_up"]: line for line in lines(out) if line["case"] == "000.png"}
    assert said["source"]["status"] == "ok"
    assert "there is no segmenter" in said["filtered(colour_wheel(90), red)"]["message"]
    assert "no objects are annotated" in said["erase(0.95)"]["message"]
    assert "recorded elsewhere" in said["recorded(paste)"]["message"]
    assert all((line["status"] == "ok") == ("file" in line) for line in said.values())
    exported(on_files(tmp_path / "data", 1), tmp_path / "scenes", "obstacle => direction(avoid)", "forecast")
    assert "none was asked" in lines(tmp_path / "scenes")[1]["message"]


def test_zones_are_provided_as_in_a_run_and_kept(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert exported(photos, out, "colour_wheel(90, red)").statuses == {"ok": 3, "not applicable": 3}
    again = exported(photos, out, "colour_wheel(90, red)", providers={"zones": "tests.engine.zones:painted"})
    assert again.statuses == {"ok": 6}, "what could not be made is tried again once somebody provides it"
    assert again.fresh == 3
    case = json.loads(next((out / "inputs").glob("*/case.json")).read_text())
    assert [(need["need"], need["status"]) for need in case["needs"]] == [("zones", "ok")]


def test_an_unreadable_picture_is_counted_and_has_no_lines(photos: Path, tmp_path: Path) -> None:
    (photos / "broken.png").write_bytes(b"no picture")
    outcome = exported(photos, tmp_path / "out")
    assert (outcome.cases, outcome.unreadable) == (4, 1)
    assert "broken.png" not in {line["case"] for line in lines(tmp_path / "out")}


@given(st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True))
def test_any_name_has_a_safe_file_of_its_own(names: list[str]) -> None:
    files = [safe_name(name) for name in names]
    assert len({file.lower() for file in files}) == len(names), "also where capitals make no difference"
    for file in files:
        assert 0 < len(file) < 100 and file.isascii()
        assert not set(file) & set('/\\:*?"<>|\0 ') and file.strip(".- ") == file


# --- once more -------------------------------------------------------------------------------------


def test_the_same_call_again_writes_only_what_is_missing(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(photos, out)
    before, said = written(out), lines(out)
    assert exported(photos, out).fresh == 0
    assert written(out) == before and lines(out) == said
    next(path for path in before if "mirror" in path.name).unlink()
    assert exported(photos, out).fresh == 1, "a file that is gone is made again"
    assert written(out).keys() == before.keys() and lines(out) == said
    before = written(out)
    assert exported(photos, out, "gamma(0.5)").fresh == 3
    assert {path: at for path, at in written(out).items() if "gamma" not in path.name} == before
    assert len(lines(out)) == len(said) + 3


def test_a_damaged_file_is_made_again(photos: Path, tmp_path: Path) -> None:
    """A file of the same name is not the same file."""
    out = tmp_path / "out"
    exported(photos, out)
    whole = {path: path.read_bytes() for path in written(out)}
    damaged = next(path for path in whole if "mirror" in path.name)
    damaged.write_bytes(next(content for path, content in whole.items() if "rotate90" in path.name))
    assert exported(photos, out).fresh == 1
    assert {path: path.read_bytes() for path in written(out)} == whole


@pytest.mark.parametrize("name", ["export.json", "case.json"])
def test_what_an_export_says_is_checked(photos: Path, tmp_path: Path, name: str) -> None:
    """A changed warp or seed would be believed without a word, and judged by."""
    out = tmp_path / "out"
    exported(photos, out, "mirror(h)")
    path = next(out.rglob(name))
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(ValueError, match=rf"{path} is damaged \(its content does not fit its checksum\)"):
        exported(photos, out, "mirror(h)")


def test_an_export_goes_on_with_as_many_pixels_or_more(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setenv(MAX_PIXELS, "30000")
    assert exported(photos, out, "rescale(2)").statuses == {"ok": 3, "not applicable": 3}
    monkeypatch.setenv(MAX_PIXELS, "100000")
    assert exported(photos, out, "rescale(2)").statuses == {"ok": 6}
    monkeypatch.setenv(MAX_PIXELS, "30000")
    with pytest.raises(Conflict, match="at most 100,000 pixels, and now 30,000 are allowed"):
        exported(photos, out, "rescale(2)")


def test_an_export_is_not_written_through_a_link(photos: Path, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    exported(photos, out, "mirror(h)")
    (out / "inputs").replace(elsewhere)
    (out / "inputs").symlink_to(elsewhere)
    before = written(elsewhere)
    with pytest.raises(Elsewhere, match="inputs is a link"):
        exported(photos, out, "gamma(0.5)")
    assert written(elsewhere) == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"seed": 3}, "with seed 0, not 3"),
        ({"stochastic": True}, "with stochastic false, not true"),
        ({"kind": "detections"}, 'with kind "poses", not "detections"'),
    ],
)
def test_another_plan_does_not_go_into_the_same_folder(
    photos: Path, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    exported(photos, tmp_path / "out", "mirror(h)")
    with pytest.raises(Conflict, match=why):
        exported(photos, tmp_path / "out", "mirror(h)", **change)


def test_a_picture_that_changed_is_left_as_it_was_exported(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(photos, out, "mirror(h)")
    before = written(out)
    (photos / "000.png").write_bytes((photos / "001.png").read_bytes())
    outcome = exported(photos, out, "gamma(0.5)")
    assert "000.png is not the input that this export knows" in outcome.notes[0]
    assert {path: at for path, at in written(out).items() if path in before} == before
    assert outcome.fresh == 2


def test_ctrl_c_leaves_whole_cases_and_the_same_call_goes_on(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def stop(progress: Progress) -> None:
        if progress.done == len(KEYS) - 2:  # of a deterministic system: one case is done
            raise KeyboardInterrupt

    outcome = exported(photos, out, on_progress=stop)
    assert outcome.interrupted and outcome.cases == 1
    assert {line["case"] for line in lines(out)} == {"000.png"}
    assert exported(photos, out).cases == 3
    assert {line["case"] for line in lines(out)} == {"000.png", "001.png", "002.png"}


def test_a_kill_at_any_moment_leaves_whole_files(tmp_path: Path) -> None:
    photos, out = write_scenes(tmp_path / "photos", 40, (320, 240)), tmp_path / "out"
    code = (  # it ends at none, so that a kill comes in time on any machine
        "import sys, time; from instar.exchange.export import export_inputs; from instar.datasets import dataset; "
        "from instar.suites import suite; "
        f"export_inputs(dataset({str(photos)!r}), suite({RULES!r}), {str(out)!r}, kind='poses', "
        "on_progress=lambda progress: time.sleep(3600 * (progress.done > 20 * 6)))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    wait_for(lambda: len(list(out.glob("inputs/*/case.json"))) >= 5 or child.poll() is not None)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert 5 <= len(list(out.glob("inputs/*/case.json"))) < 40
    assert all(read_image(path).size for path in out.rglob("*.png") if not path.name.startswith("."))
    assert exported(photos, out).statuses == {"ok": 40 * 6}
    assert not list(out.rglob("*.part"))


def test_two_at_once_do_not_write_into_one_folder(photos: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "out").lock(), pytest.raises(Busy):
        exported(photos, tmp_path / "out")


# --- bad questions ---------------------------------------------------------------------------------


def test_a_suite_for_any_kind_must_say_which(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="say with the parameter kind"):
        export_inputs(dataset(photos), suite("mirror(h)"), tmp_path / "out")
    with pytest.raises(KeyError, match="unknown output kind 'pose'; did you mean 'poses'"):
        exported(photos, tmp_path / "out", kind="pose")
    with pytest.raises(ValueError, match=r"take scenes, the cases of .* are images"):
        exported(photos, tmp_path / "out", "mirror(h)", kind="forecast")
    assert not (tmp_path / "out" / "export.json").exists()


def test_a_transformation_that_fails_costs_its_own_line(tmp_path: Path) -> None:
    def cases() -> Iterator[Case]:
        yield Case("a", input=scene(0))

    outcome = exported(Dataset("one", "", cases), tmp_path / "out", "tests.exchange.test_export:failing + mirror(h)")
    assert outcome.statuses == {"ok": 2, "error": 1}
    assert "RuntimeError: no film" in next(line["message"] for line in lines(tmp_path / "out") if "message" in line)


def failing(pixels: Any) -> Any:
    raise RuntimeError("no film")


def test_ids_of_the_dataset_are_never_paths_of_the_export(tmp_path: Path) -> None:
    def cases() -> Iterator[Case]:
        for name in ("../../outside", "/etc/passwd", "a/b", "a\\b", "nul", "…"):
            yield Case(name, input=scene(1))

    exported(Dataset("odd", "", cases), tmp_path / "deep" / "out", "mirror(h)")
    assert len(lines(tmp_path / "deep" / "out")) == 12
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]
    assert instar.__version__ == json.loads((tmp_path / "deep" / "out" / "export.json").read_text())["instar"]
