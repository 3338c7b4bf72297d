"""Pictures of scenes: pairs of a run over maps in files, and a preview of every rule of a suite."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image, read_image
from instar.report import draw_pairs
from instar.report.drawing import ORANGE
from instar.report.lettering import WHITE
from instar.scene import Scene, Track
from instar.suites import suite
from instar.transforms import transformation
from instar.trial import preview
from tests.engine.test_scenes import in_memory, on_files, people, run, system, write_map
from tests.perfect.walker import Walker

PAST = (31, 90, 210)
RULES = (
    "mirror(h) => wvc(3, 2)",
    "rotate90(1) => hvc",
    "class_change(road, pavement) => direction(increase, 3)",
    "obstacle => direction(avoid, 3)",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> instar.Run:
    folder = tmp_path_factory.mktemp("scenes")
    return run(system(Walker()), on_files(folder / "data", 2), folder / "run", *RULES)


@pytest.fixture(scope="module")
def drawn(finished: instar.Run) -> dict[str, Image]:
    """A picture of every rule, of one case, by its transformation."""
    verdicts = finished.verdicts().filter(case="person 00").sort("rule")
    made = list(draw_pairs(finished, verdicts, finished.folder.parent / "pictures"))
    assert [path is not None for path, _ in made] == [True] * len(RULES), made
    return {
        rule.partition(" =>")[0]: read_image(path)
        for rule, (path, _) in zip(verdicts["rule"], made, strict=True)
        if path is not None
    }


def near(image: Image, colour: tuple[int, int, int]) -> int:
    """How many pixels have about this colour."""
    return int((np.abs(image.pixels.astype(int) - colour).max(2) <= 12).sum())


@pytest.mark.parametrize("change", [text.partition(" =>")[0] for text in RULES])
def test_the_past_and_the_futures_are_drawn(drawn: dict[str, Image], change: str) -> None:
    image = drawn[change]
    assert min(image.size) > 160, "larger than the part of the map that is shown"
    assert near(image, PAST) > 50
    assert near(image, ORANGE) > 50
    assert near(image, (222, 207, 187)) > 500, "pavement"


def test_what_was_expected_is_drawn_where_it_is_known(drawn: dict[str, Image]) -> None:
    white = {change: int((image.pixels == WHITE).all(2).sum()) for change, image in drawn.items()}
    assert white["mirror(h)"] > 10 * max(1, white["obstacle"])


def test_an_obstacle_stands_in_the_follow_up_only(tmp_path: Path) -> None:
    plain = replace(people(1)[0], classes=np.ones((120, 160), np.uint8))
    path = write_map(tmp_path / "plain.png", plain.classes)
    data = Dataset(
        "plain", str(tmp_path), lambda: iter([Case("a", path=str(path), track=Track.of(plain))]), inputs="scene"
    )
    one = run(system(Walker()), data, tmp_path / "run", "obstacle => direction(avoid, 3)")
    ((found, _),) = draw_pairs(one, one.verdicts(), tmp_path / "pics")
    assert found is not None
    pixels = read_image(found).pixels
    middle = pixels.shape[1] // 2
    left, right = (
        near(Image(np.ascontiguousarray(half)), (122, 86, 74)) for half in (pixels[:, :middle], pixels[:, middle:])
    )
    assert left == 0
    assert right > 200


def copied(finished: instar.Run, folder: Path) -> instar.Run:
    """The run and its maps somewhere else, where its stored paths are of no use."""
    shutil.copytree(finished.folder, folder / "run")
    shutil.copytree(finished.folder.parent / "data", folder / "elsewhere")
    return instar.open_run(folder / "run")


def drawn_pairs(one: instar.Run, folder: Path, dataset: Path | None = None) -> list[tuple[Path | None, str]]:
    return list(draw_pairs(one, one.verdicts().filter(case="person 01").head(1), folder / "pics", dataset=dataset))


def test_maps_that_were_moved_are_found_by_their_place_in_the_dataset(finished: instar.Run, tmp_path: Path) -> None:
    one = copied(finished, tmp_path)
    kept = finished.folder.parent / "data"
    kept.rename(kept.with_name("away"))
    try:
        ((lost, why),) = drawn_pairs(one, tmp_path)
        assert lost is None
        assert "no such file; pass `dataset`" in why
        ((found, _),) = drawn_pairs(one, tmp_path, tmp_path / "elsewhere")
        assert found is not None and found.is_file()
    finally:
        kept.with_name("away").rename(kept)


def test_a_map_that_changed_is_not_drawn_on(tmp_path: Path) -> None:
    one = run(system(Walker()), on_files(tmp_path / "data", 2), tmp_path / "run", "mirror(h) => hvc")
    path = tmp_path / "data" / "maps" / "ground 1.png"
    classes = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert classes is not None
    classes[0, 0] = (classes[0, 0] + 1) % 6
    write_map(path, classes)
    ((drawn, why),) = drawn_pairs(one, tmp_path)
    assert drawn is None
    assert "its content changed" in why


def test_what_was_in_memory_only_is_said(tmp_path: Path) -> None:
    one = run(system(Walker()), in_memory(*people(1)), tmp_path / "run", "mirror(h) => hvc")
    ((drawn, why),) = draw_pairs(one, one.verdicts(), tmp_path / "pics")
    assert drawn is None
    assert "in memory only" in why


# --- preview -----------------------------------------------------------------------------------------------


def tracks(folder: Path, scene: Scene) -> Path:
    """A dataset of one track in a CSV file, as users have them."""
    write_map(folder / "map.png", scene.classes)
    names = ", ".join(f'"{name}"' for name in scene.names)
    (folder / "scene.toml").write_text(f'names = [{names}]\nmap = "map.png"\nrate = 2.5\n')
    lines = [f"1,{t},{20 + 3 * t},60" for t in range(20)]
    (folder / "tracks.csv").write_text("\n".join(["track,frame,x,y", *lines]))
    return folder / "tracks.csv"


def test_a_preview_has_a_tile_for_every_rule_that_needs_no_system(tmp_path: Path) -> None:
    scene = people(1)[0]
    made = preview("trajtest", tracks(tmp_path, scene))
    sheet, missing = made.sheet, made.missing
    chosen = {t.id for rule in suite("trajtest").rules for t in rule.transformations}
    obstacles = {name for name in chosen if name.startswith("obstacle")}
    assert {name for name, _ in missing} == obstacles
    assert all("none was asked" in why for _, why in missing)
    tiles = 1 + len(chosen) - len(obstacles)
    assert sheet.size[0] * sheet.size[1] > tiles * 220 * 220
    assert near(sheet, PAST) > tiles * 10
    alone = preview("trajtest", scene)
    assert alone.sheet.size == sheet.size
    assert len(alone.missing) == len(obstacles)


def test_a_class_that_the_map_does_not_have_is_said(tmp_path: Path) -> None:
    plain = replace(people(1)[0], classes=np.ones((120, 160), np.uint8))
    missing = preview("class_change(tree, road) + mirror(h)", tracks(tmp_path, plain)).missing
    assert missing == (
        ("class_change(tree, road)", f"this map has no cell of class tree (it knows {', '.join(plain.names)})"),
    )


def test_rules_about_photographs_do_not_apply() -> None:
    made = preview("gamma(0.5) + mirror(h)", people(1)[0])
    assert made.missing == (("gamma(0.5)", "gamma changes images, and this case is a scene"),)
    mirrored, _ = transformation("mirror(h)")(people(1)[0])
    assert near(made.sheet, tuple(mirrored.picture()[0, 0].tolist())) > 100
