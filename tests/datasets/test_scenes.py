"""Readers whose cases are scenes: SDD, ETH and UCY, inD, and tracks of one's own."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.case import Case, read_input
from instar.datasets import Dataset, dataset
from instar.datasets.windowing import stretches
from instar.image import Unreadable
from instar.outputs.forecast import Forecast
from instar.scene import Scene

DOCS = Path(__file__).resolve().parents[2] / "docs" / "datasets.md"
Floats = npt.NDArray[np.float64]
Write = Callable[..., Path]


def by_id(found: Dataset) -> dict[str, Case]:
    cases = {case.id: case for case in found.cases()}
    assert list(cases) == [case.id for case in found.cases()]  # anew at each call, and no id twice
    return cases


def scene_of(case: Case) -> Scene:
    scene = read_input(case)[0]
    assert isinstance(scene, Scene)
    return scene


def path_of(case: Case) -> Floats:
    """Past and future, one after the other."""
    assert case.track is not None
    assert isinstance(case.truth, Forecast)
    assert case.truth.futures.shape == (1, case.track.steps, 2)
    return np.concatenate([np.array(case.track.past), case.truth.futures[0].astype(np.float64)])


def class_map(path: Path, size: tuple[int, int] = (60, 40), value: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    ok, data = cv2.imencode(".png", np.full(size[::-1], value, np.uint8))
    assert ok
    path.write_bytes(data.tobytes())
    return path


# --- windows ---------------------------------------------------------------------------------------


def seen(rows: Iterable[tuple[str, float, float, float]]) -> pl.DataFrame:
    columns = {"track": pl.String, "frame": pl.Float64, "x": pl.Float64, "y": pl.Float64}
    return pl.DataFrame(list(rows), columns, orient="row").with_columns(agent=pl.lit(None, pl.String))


@given(
    present=st.sets(st.integers(0, 200), min_size=2),
    native=st.sampled_from([1, 6, 10]),
    per_step=st.sampled_from([1, 2, 2.5, 12]),
    seed=st.randoms(),
)
@settings(deadline=None)
def test_no_stretch_bridges_a_gap(present: set[int], native: int, per_step: float, seed: object) -> None:
    """x is the frame, so every position tells between which frames it was taken."""
    present |= {1000, 1001, 1002, 1003} | set(range(2000, 2100))  # so that the native step is the common one
    frames = [native * number for number in present]
    seed.shuffle(frames)  # type: ignore[attr-defined]
    table = seen((name, frame, frame, -frame) for frame in frames for name in ("10", "9"))
    found = stretches(table, fps=native * 10, rate=10 / per_step)
    assert [each.track for each in found] == sorted((each.track for each in found), key=int)
    for each in found:
        np.testing.assert_allclose(each.xy[:, 0], each.start + np.arange(len(each.xy)) * native * per_step)
        np.testing.assert_allclose(each.xy[:, 1], -each.xy[:, 0])
        first, last = each.start / native, each.xy[-1, 0] / native
        assert set(range(math.ceil(first), math.floor(last) + 1)) <= present
    # and whatever lies between two gaps is there as far as whole steps go
    runs = sum(1 for number in present if number - 1 not in present)
    assert len(found) == 2 * runs


def test_positions_between_frames_lie_on_a_line() -> None:
    found = stretches(seen(("a", 10 * i, i * i, 0) for i in range(11)), fps=25, rate=1)
    assert found[0].step == 25
    assert found[0].xy[:, 0].tolist() == [0, 6.5, 25, 56.5, 100]


# --- SDD -------------------------------------------------------------------------------------------


def compact(folder: Path, **scenes: npt.ArrayLike) -> Path:
    folder.mkdir(exist_ok=True)
    arrays: dict[str, Any] = {name: np.asarray(rows) for name, rows in scenes.items()}
    np.savez(folder / "trajectories.npz", **arrays)
    for name in scenes:
        class_map(folder / "maps" / f"{name}.png")
    return folder


def rows(count: int, length: int = 20) -> Floats:
    """Track i walks along y = i, one pixel per position."""
    walks = np.broadcast_arrays(np.arange(length, dtype=float), np.arange(count)[:, None])
    return np.asarray(np.stack(walks, -1) + 0.25)


def test_sdd_compact(tmp_path: Path) -> None:
    folder = compact(tmp_path / "sdd", gates_0=rows(1), bookstore_0=rows(3))
    found = dataset(folder)
    assert (found.name, found.truth, found.inputs) == (f'sdd("{folder}")', "forecast", "scene")
    assert (found.root, found.notes) == (str(folder), ())
    cases = by_id(found)
    assert list(cases) == ["bookstore_0/0", "gates_0/0", "bookstore_0/1", "bookstore_0/2"]
    case = cases["bookstore_0/2"]
    assert case.attributes == {"scene": "bookstore_0", "track": "2"}
    np.testing.assert_array_equal(path_of(case), rows(3)[2])
    scene = scene_of(case)
    assert (scene.size, scene.steps, scene.rate, scene.metres_per_pixel) == ((60, 40), 12, 2.5, None)
    assert scene.names == ("background", "pavement", "road", "structure", "terrain", "tree")
    assert scene.past.shape == (8, 2)
    assert list(by_id(dataset(found.name))) == list(cases)


def test_sdd_compact_with_other_windows(tmp_path: Path) -> None:
    folder = compact(tmp_path / "sdd", gates_0=rows(1))
    cases = by_id(dataset(f'sdd("{folder}", past=2, future=3, rate=1.25)'))
    assert list(cases) == ["gates_0/0", "gates_0/0@10"]
    assert path_of(cases["gates_0/0@10"])[:, 0].tolist() == [10.25, 12.25, 14.25, 16.25, 18.25]
    assert len(by_id(dataset(f'sdd("{folder}", past=2, future=3, stride=1)'))) == 16


def test_sdd_compact_gaps_are_numbers_that_are_none(tmp_path: Path) -> None:
    broken = rows(3)
    broken[0, 19, 1] = np.nan
    broken[1, 5] = np.inf
    found = dataset(compact(tmp_path / "sdd", gates_0=broken))
    assert list(by_id(found)) == ["gates_0/2"]
    assert found.notes == (
        "2 tracks shorter than 8 + 12 positions at 2.5 per second; "
        "where a track has a gap, each part counts for itself",
    )


def test_sdd_scene_without_a_map(tmp_path: Path) -> None:
    folder = compact(tmp_path / "sdd", gates_0=rows(1), quad_1=rows(1))
    (folder / "maps" / "quad_1.png").unlink()
    found = dataset(folder)
    assert list(by_id(found)) == ["gates_0/0"]
    assert found.notes == (
        f"1 scene left out, without a class map: quad_1; that of quad_1 should be "
        f"{folder}/maps/quad_1.png or {folder}/maps/quad_1_mask.png",
    )
    (folder / "maps" / "gates_0.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"no scene has a class map; that of gates_0 should be .*gates_0\.png"):
        dataset(folder)


class Trap:
    """Unpickling it would leave a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.trace,)


@pytest.mark.parametrize(
    ("rubbish", "message"),
    [
        (b"", "not an .npz file"),
        (b"PK\3\4 nothing", "not an .npz file"),
        (b"rubbish", "not an .npz file"),
        ({"gates_0": np.zeros((3, 20))}, r"gates_0 is float64 \(3, 20\), not numbers \(tracks, positions, 2\)"),
        ({"gates_0": np.full((3, 20, 2), "x")}, "gates_0 is <U1"),
        ({"gates_0": np.zeros((0, 20, 2))}, "there are no positions in it"),
        ({"gates_0": np.full((1, 20, 2), np.nan)}, "there are no positions in it"),
        ({}, "there are no positions in it"),
    ],
)
def test_sdd_compact_that_is_none(tmp_path: Path, rubbish: object, message: str) -> None:
    (tmp_path / "maps").mkdir()
    class_map(tmp_path / "maps" / "gates_0.png")
    if isinstance(rubbish, bytes):
        (tmp_path / "trajectories.npz").write_bytes(rubbish)
    elif isinstance(rubbish, dict):
        np.savez(tmp_path / "trajectories.npz", **rubbish)
    with pytest.raises(ValueError, match=message):
        dataset(tmp_path)


def test_sdd_compact_is_not_unpickled(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    np.savez(tmp_path / "trajectories.npz", gates_0=np.array([Trap(tmp_path / "trace")], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        dataset(tmp_path)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            "horizon=long",
            r"holds 20 positions of everybody at 2\.5 per second, and 5 \+ 30 positions at 1 per second were "
            "asked for; the original annotations have longer tracks",
        ),
        ("future=13", r"and 8 \+ 13 positions at 2\.5 per second"),
        ("past=2, future=2, rate=5", r"gates_0: its positions come 2\.5 times per second, 5 per second are asked for"),
        ("agents=Biker", "does not say who is what"),
        ("stride=0", "stride=0 is not allowed; it takes a whole number from 1"),
        ("horizon=middle", "it takes one of short, long"),
    ],
)
def test_sdd_compact_has_no_more(tmp_path: Path, parameters: str, message: str) -> None:
    folder = compact(tmp_path / "sdd", gates_0=rows(1))
    with pytest.raises(ValueError, match=message):
        dataset(f'sdd("{folder}", {parameters})')


def annotated(folder: Path, scene: str, video: int, lines: Iterable[str]) -> Path:
    path = folder / "annotations" / scene / f"video{video}" / "annotations.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def box(track: int, frame: int, lost: int = 0, label: str = "Pedestrian") -> str:
    """Around (frame / 10, 5 + track), 4 × 3 pixels."""
    x, y = frame / 10, 5 + track
    return f'{track} {x - 2:g} {y - 1.5:g} {x + 2:g} {y + 1.5:g} {frame} {lost} 0 1 "{label}"'


def test_sdd_original(tmp_path: Path, picture: Write) -> None:
    walk = [box(1, frame) for frame in range(7, 7 + 12 * 43)]  # 43 positions: two windows of 20
    lost = [box(2, frame, lost=int(frame == 100)) for frame in range(12 * 25)]  # 9 and 16 positions
    rider = [box(3, frame, label="Biker") for frame in range(12 * 20)]
    annotated(tmp_path, "quad", 0, [*walk[::-1], *lost, *rider])
    annotated(tmp_path, "little", 3, [box(9, frame) for frame in range(12 * 20)])
    picture(tmp_path / "annotations" / "quad" / "video0" / "reference.jpg", (70, 50))
    found = dataset(tmp_path)
    assert found.name == f'sdd("{tmp_path}")'
    cases = by_id(found)
    assert list(cases) == ["little_3/9@0", "quad_0/1@7", "quad_0/1@247"]
    case = cases["quad_0/1@247"]
    assert case.attributes == {"scene": "quad_0", "track": "1", "agent": "Pedestrian", "frame": 247}
    np.testing.assert_allclose(path_of(case), [(24.7 + 1.2 * i, 6) for i in range(20)], rtol=1e-6)
    scene = scene_of(case)
    assert (scene.size, scene.classes.max()) == ((70, 50), 0)
    assert scene_of(cases["little_3/9@0"]).size == (24, 14)  # as far as people come: 23.9, 14
    assert found.notes == (
        "agents=Pedestrian: 3 of 4 tracks",
        "without maps= all ground is background: little_3, quad_0",
        "1 track shorter than 8 + 12 positions at 2.5 per second; where a track has a gap, each part counts for itself",
    )
    assert [*by_id(dataset(f'sdd("{tmp_path}", agents="pedestrian, biker")'))][3:] == ["quad_0/3@0"]
    assert len(by_id(dataset(f'sdd("{tmp_path}", agents=all)'))) == 4
    assert list(by_id(dataset(f'sdd("{tmp_path}/annotations", past=5, future=10, rate=1)'))) == ["quad_0/1@7"]
    with pytest.raises(
        ValueError,
        match=r"no track has 5 \+ 30 positions at 1 per second without a gap, "
        "the longest has 18; ask for fewer",
    ):
        dataset(f'sdd("{tmp_path}", horizon=long)')
    with pytest.raises(
        ValueError,
        match=r"no track is of agents=Pedestrain; did you mean 'Pedestrian'\?; "
        'there are Biker, Pedestrian, and "all"',
    ):
        dataset(f'sdd("{tmp_path}", agents=Pedestrain)')
    with pytest.raises(ValueError, match="agents is empty; it takes Biker, Pedestrian"):
        dataset(f'sdd("{tmp_path}", agents=", ")')


def test_sdd_original_on_maps(tmp_path: Path) -> None:
    walk = [box(1, frame) for frame in range(12 * 20)]
    for scene in ("quad", "gates", "bookstore"):
        annotated(tmp_path, scene, 0, walk)
    class_map(tmp_path / "masks" / "quad_0_mask.png")
    class_map(tmp_path / "masks" / "gates_0.png", value=6)
    found = dataset(f'sdd("{tmp_path}", maps="{tmp_path}/masks")')
    cases = by_id(found)
    assert list(cases) == ["gates_0/1@0", "quad_0/1@0"]
    masks = tmp_path / "masks"
    assert found.notes == (
        "1 scene left out, without a class map: bookstore_0; that of bookstore_0 should be "
        f"{masks}/bookstore_0.png or {masks}/bookstore_0_mask.png",
    )
    assert scene_of(cases["quad_0/1@0"]).mask("pavement").all()
    with pytest.raises(Unreadable, match="cells of class 6, the names end with 5"):
        read_input(cases["gates_0/1@0"])
    class_map(tmp_path / "masks" / "gates_0.png", size=(5, 40))
    with pytest.raises(Unreadable, match=r"the position \(\S+, 6\) of the past is off the map of 5 × 40"):
        read_input(cases["gates_0/1@0"])
    with pytest.raises(FileNotFoundError, match=r"no folder of class maps .*mask'; did you mean '.*masks'"):
        dataset(f'sdd("{tmp_path}", maps="{tmp_path}/mask")')


def test_sdd_original_with_damaged_lines(tmp_path: Path) -> None:
    walk = [box(1, frame) for frame in range(12 * 41)]
    walk[245] = '1 x 4.5 26 7.5 245 0 0 1 "Pedestrian"'
    walk[246] = walk[246].replace(" 246 ", " nan ")
    walk[247] = "1 2 3"
    walk[0] += ' "running" "north"'
    walk[300] = walk[300].replace('"Pedestrian"', '"Pedestrian')  # a quote that is never closed
    annotated(tmp_path, "quad", 0, [*walk, "", walk[3]])
    annotated(tmp_path, "empty", 0, [])
    found = dataset(tmp_path)
    assert list(by_id(found)) == ["quad_0/1@0", "quad_0/1@248"]
    assert found.notes == (
        "without maps= all ground is background: quad_0",
        "1 file without positions: annotations/empty/video0/annotations.txt",
        "3 lines left out, without a track or with something else where a number should be: "
        "annotations/quad/video0/annotations.txt line 246, annotations/quad/video0/annotations.txt line 247, "
        "annotations/quad/video0/annotations.txt line 248",
        "1 position left out, of a track and frame that were there already",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no positions in it"),
        ("\n\n", "there are no positions in it"),
        ("hello\n", "1 line left out"),
        ("\0\1\2" * 50, "1 line left out"),
        ("1,2,3,4,5,6,0,0,0,P\n", "1 line left out"),
        ('1 2 3 4 5 6 0 0 0 "Pedestrian"\n', "no track has"),
    ],
)
def test_sdd_annotations_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    annotated(tmp_path, "quad", 0, []).write_text(text)
    with pytest.raises(ValueError, match=message):
        dataset(tmp_path)


def test_sdd_nowhere(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"neither trajectories\.npz nor annotations/SCENE"):
        dataset(f'sdd("{tmp_path}")')
    with pytest.raises(FileNotFoundError, match="no folder"):
        dataset(f'sdd("{tmp_path}/x")')


def test_sdd_stray_positions_make_no_frame(tmp_path: Path) -> None:
    annotated(tmp_path, "quad", 0, ['1 0 0 1e9 1e9 0 0 0 0 "Pedestrian"'])
    with pytest.raises(ValueError, match=r"quad_0: its positions spread over 500,000,000 × 500,000,000 pixels"):
        dataset(tmp_path)


def test_real_sdd(shared: Path) -> None:
    found = dataset(shared / "sdd")
    cases = list(found.cases())
    assert (len(cases), len({case.id for case in cases}), found.notes) == (6438, 6438, ())
    assert len({case.attributes["scene"] for case in cases[:200]}) == 27
    under: Counter[str] = Counter()
    for case in sorted(cases, key=lambda case: case.id)[::7]:
        scene = scene_of(case)
        columns, lines = np.floor(scene.past).astype(int).T
        under.update(scene.names[number] for number in scene.classes[lines, columns])
    # People walk on the ground: two fifths of all cells are structure or tree, and people are rarely there.
    assert (under["pavement"] + under["road"] + under["terrain"]) / under.total() > 0.9
    assert under["background"] == 0


# --- ETH and UCY -----------------------------------------------------------------------------------


def walks(count: int = 25, step: int = 10, separator: str = "\t") -> str:
    """Two people: 1 walks to the right along y = 3, 2 up along x = 1."""
    lines = [
        (step * (i + 78), track, 0.5 * i if track == 1 else 1, 3 if track == 1 else 0.5 * i)
        for i in range(count)
        for track in (1, 2)
    ]
    return "".join(separator.join(f"{float(value)}" for value in line) + "\n" for line in lines)


def test_eth_ucy(tmp_path: Path) -> None:
    (tmp_path / "biwi_eth.txt").write_text(walks())
    found = dataset(tmp_path / "biwi_eth.txt")
    assert (found.name, found.root) == (f'eth-ucy("{tmp_path}/biwi_eth.txt")', str(tmp_path))
    assert (found.truth, found.inputs, found.notes) == ("forecast", "scene", ())
    cases = by_id(found)
    assert list(cases) == ["biwi_eth/1@780", "biwi_eth/2@780"]
    assert cases["biwi_eth/1@780"].attributes == {"scene": "biwi_eth", "track": "1", "frame": 780}
    # x is 0 to 12 and y 0 to 12; 2 metres around, 20 pixels per metre, and y turned round
    scene = scene_of(cases["biwi_eth/1@780"])
    assert (scene.size, scene.metres_per_pixel, scene.rate) == ((320, 320), 0.05, 2.5)
    np.testing.assert_allclose(path_of(cases["biwi_eth/1@780"]), [(40 + 10 * i, 220) for i in range(20)])
    np.testing.assert_allclose(path_of(cases["biwi_eth/2@780"]), [(60, 280 - 10 * i) for i in range(20)])


@pytest.mark.parametrize("step", [1, 6, 10])
def test_eth_ucy_one_step_is_two_fifths_of_a_second(tmp_path: Path, step: int) -> None:
    (tmp_path / "a.txt").write_text(walks(90, step, "  "))
    cases = by_id(dataset(f'eth-ucy("{tmp_path}/a.txt", horizon=long)'))
    assert [each.split("@")[0] for each in cases] == ["a/1", "a/2"]
    scene = next(iter(cases.values()))
    np.testing.assert_allclose(np.diff(path_of(scene)[:, 0]), 25)  # half a metre in 0.4 s
    assert scene_of(scene).past.shape == (5, 2)


def test_eth_ucy_folder(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "zara.txt").write_text(walks())
    (tmp_path / "hotel.txt").write_text(walks())
    (tmp_path / ".hidden.txt").write_text(walks())
    (tmp_path / "readme.txt").write_text("The sequences\n")
    (tmp_path / "none.txt").touch()
    found = dataset(f'eth-ucy("{tmp_path}")')
    assert list(by_id(found)) == ["hotel/1@780", "test/zara/1@780", "hotel/2@780", "test/zara/2@780"]
    assert found.notes == (
        "1 .txt file left out, without four columns of numbers (frame, id, x, y): readme.txt",
        "1 file without positions: none.txt",
    )


def test_eth_ucy_names_in_unicode(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        (tmp_path / unicodedata.normalize(form, "Zürich.txt")).write_text(walks())
    ids = list(by_id(dataset(f'eth-ucy("{tmp_path}")')))
    assert set(ids) == {"Zürich/1@780", "Zürich/2@780", "Zürich#2/1@780", "Zürich#2/2@780"}


def test_eth_ucy_on_a_map(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(walks())
    class_map(tmp_path / "map.png", (300, 300), 2)
    (tmp_path / "H.txt").write_text("0.1 0 -5\n0 -0.1 20\n0 0 2\n")  # metres = (x - 50, 200 - y) / 20
    spelling = f'eth-ucy("{tmp_path}/a.txt", map="{tmp_path}/map.png", homography="{tmp_path}/H.txt")'
    case = by_id(dataset(spelling))["a/1@780"]
    np.testing.assert_allclose(path_of(case), [(50 + 10 * i, 140) for i in range(20)], rtol=1e-6)
    scene = scene_of(case)
    assert scene.metres_per_pixel == pytest.approx(0.05)
    assert scene.mask("road").all()
    (tmp_path / "H.txt").write_text("0.1 0 -5\n0 -0.2 40\n0 0 2\n")
    case = by_id(dataset(spelling))["a/1@780"]
    np.testing.assert_allclose(path_of(case)[:, 1], 170)
    assert scene_of(case).metres_per_pixel is None


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ("", "three lines of three numbers"),
        ("1 0 0\n0 1 0\n", "three lines"),
        ("1 0 0\n0 1 0\n0 0 x\n", "three lines"),
        ("1 0 0\n0 1 0\n0 0 nan\n", "three lines"),
        ("1 2 3\n2 4 6\n0 0 1\n", "an invertible matrix"),
        ("1 2\n3\n", "three lines"),
    ],
)
def test_homographies_that_are_none(tmp_path: Path, matrix: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(walks())
    class_map(tmp_path / "map.png")
    (tmp_path / "H.txt").write_text(matrix)
    with pytest.raises(ValueError, match=message):
        dataset(f'eth-ucy("{tmp_path}/a.txt", map="{tmp_path}/map.png", homography="{tmp_path}/H.txt")')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no positions in it"),
        ("a b c d\n", r"no positions in it; 1 file without positions: a\.txt; .*a\.txt line 1"),
        ("nan nan nan nan\n", "no positions"),
        ("1 1 2 3\n", "the longest has 0"),
        ("1 1 0 0\n2 1 1e9 1e9\n", "positions spread over"),
    ],
)
def test_eth_ucy_text_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        dataset(f'eth-ucy("{tmp_path}/a.txt")')


def test_eth_ucy_asks_for_both(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(walks())
    with pytest.raises(ValueError, match="map= was given without homography="):
        dataset(f'eth-ucy("{tmp_path}/a.txt", map="map.png")')
    with pytest.raises(ValueError, match="homography= was given without map="):
        dataset(f'eth-ucy("{tmp_path}/a.txt", homography="H.txt")')
    with pytest.raises(FileNotFoundError, match="no class map"):
        dataset(f'eth-ucy("{tmp_path}/a.txt", map="{tmp_path}/map.png", homography="H.txt")')
    class_map(tmp_path / "map.png")
    with pytest.raises(FileNotFoundError, match="no homography"):
        dataset(f'eth-ucy("{tmp_path}/a.txt", map="{tmp_path}/map.png", homography="{tmp_path}/H.txt")')


# --- inD -------------------------------------------------------------------------------------------


def recording(
    folder: Path, number: str = "07", location: int = 1, classes: dict[int, str] | None = None, metres: float = 0.01
) -> None:
    """Track i is at (1 + 0.012·frame, −0.6·i) metres; 250 frames at 25 per second."""
    folder.mkdir(exist_ok=True)
    classes = {1: "pedestrian", 2: "car"} if classes is None else classes
    lines = [
        f"{number},{track},{frame},{frame},{1 + 0.012 * frame:.4f},{-0.6 * track:.4f},0.0,0.5,0.5"
        for track in classes
        for frame in range(250)
    ]
    (folder / f"{number}_tracks.csv").write_text(
        "recordingId,trackId,frame,trackLifetime,xCenter,yCenter,heading,width,length\n" + "\n".join(lines) + "\n"
    )
    (folder / f"{number}_tracksMeta.csv").write_text(
        "recordingId,trackId,initialFrame,class\n"
        + "".join(f"{number},{track},0,{label}\n" for track, label in classes.items())
    )
    (folder / f"{number}_recordingMeta.csv").write_text(
        f"recordingId,locationId,frameRate,orthoPxToMeter\n{number},{location},25.0,{metres}\n"
    )


def test_ind(tmp_path: Path) -> None:
    recording(tmp_path, "07")
    recording(tmp_path, "18", 2)
    found = dataset(tmp_path)
    assert (found.name, found.truth, found.inputs) == (f'ind("{tmp_path}")', "forecast", "scene")
    cases = by_id(found)
    assert list(cases) == ["07/1@0", "18/1@0"]
    case = cases["18/1@0"]
    assert case.attributes == {"scene": "18", "location": "2", "track": "1", "agent": "pedestrian", "frame": 0}
    # 0.12 metres per pixel: from 1 metre on, 0.12 metres per position
    np.testing.assert_allclose(path_of(case), [(1 / 0.12 + i, 5) for i in range(20)], rtol=1e-6)
    scene = scene_of(case)
    assert scene.metres_per_pixel == pytest.approx(0.12)
    assert not scene.classes.any()
    assert found.notes == ("agents=pedestrian: 2 of 4 tracks", "without maps= all ground is background: 07, 18")
    assert len(by_id(dataset(f'ind("{tmp_path}", agents="Car, pedestrian")'))) == 4
    with pytest.raises(ValueError, match=r"no track is of agents=bus; .*there are car, pedestrian"):
        dataset(f'ind("{tmp_path}", agents=bus)')


def test_ind_on_maps(tmp_path: Path) -> None:
    recording(tmp_path / "data", "07", 1)
    recording(tmp_path / "data", "18", 2)
    recording(tmp_path / "data", "30", 3)
    class_map(tmp_path / "maps" / "location2.png")
    class_map(tmp_path / "maps" / "location1.png")
    class_map(tmp_path / "maps" / "07.png", (400, 70), 2)
    found = dataset(f'ind("{tmp_path}/data", maps="{tmp_path}/maps", scale=1)')
    cases = by_id(found)
    assert list(cases) == ["07/1@0", "18/1@0"]
    np.testing.assert_allclose(path_of(cases["07/1@0"]), [(100 + 12 * i, 60) for i in range(20)], rtol=1e-6)
    assert scene_of(cases["07/1@0"]).mask("road").all()
    assert cases["18/1@0"].path == str(tmp_path / "maps" / "location2.png")
    assert "1 scene left out, without a class map: 30; that of 30 should be" in found.notes[1]
    assert "30.png" in found.notes[1] and "location3.png" in found.notes[1]
    large = class_map(tmp_path / "maps" / "location2.png", (1200, 1200))
    found = dataset(f'ind("{tmp_path}/data", maps="{tmp_path}/maps")')
    assert (
        f"{large.name} has 1,200 × 1,200 pixels and its people stay within 33 × 5: was it drawn at another scale "
        "than 12?" in found.notes
    )


@pytest.mark.parametrize(
    ("file", "text", "error", "message"),
    [
        ("07_recordingMeta.csv", "", ValueError, "names no frameRate, locationId, orthoPxToMeter; it has nothing"),
        ("07_recordingMeta.csv", "frameRate,locationId,orthoPxToMeter\n", ValueError, "its second line has nothing"),
        ("07_recordingMeta.csv", "frameRate,locationId,orthoPxToMeter\n25,1,x\n", ValueError, "numbers above 0"),
        ("07_recordingMeta.csv", "frameRate,locationId,orthoPxToMeter\n25,1,0\n", ValueError, "numbers above 0"),
        ("07_tracksMeta.csv", "trackId\n1\n", ValueError, "names no class"),
        ("07_tracksMeta.csv", None, FileNotFoundError, "no file .*07_tracksMeta.csv"),
        ("07_tracks.csv", "", ValueError, "names no trackId, frame, xCenter, yCenter"),
        ("07_tracks.csv", None, FileNotFoundError, "no file .*07_tracks.csv"),
        (
            "07_tracks.csv",
            "trackId,frame,xCenter,yCenter\n1,x,2,3\n,1,2,3\n",
            ValueError,
            "no track has .*07_tracks.csv line 2, 07_tracks.csv line 3",
        ),
    ],
)
def test_ind_files_that_are_none(
    tmp_path: Path, file: str, text: str | None, error: type[Exception], message: str
) -> None:
    recording(tmp_path)
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_text(text)
    with pytest.raises(error, match=message):
        dataset(f'ind("{tmp_path}")')


def test_ind_nowhere(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no XX_recordingMeta\.csv in it"):
        dataset(f'ind("{tmp_path}")')


# --- tracks of one's own ---------------------------------------------------------------------------


def own(folder: Path, rows: Iterable[str], header: str = "track,frame,x,y", about: str = "") -> Path:
    (folder / "scene.toml").write_text(about or 'names = ["background", "lawn"]\nmap = "map.png"\nrate = 2.5\n')
    class_map(folder / "map.png")
    (folder / "people.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder / "people.csv"


STEPS = [f"7,{i},{i + 0.5},20" for i in range(20)]


def test_the_example_of_the_page(here: Path) -> None:
    page = DOCS.read_text("utf-8").partition("### Tracks of your own")[2].partition("\n## ")[0]
    table, about, code = (re.search(f"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("csv", "toml", "python"))
    assert table and about and code
    (here / "people.csv").write_text(table[1])
    (here / "scene.toml").write_text(about[1])
    for name in ("crossing", "square"):
        class_map(here / f"{name}.png")
    spelling = re.search(r"dataset\('(.*)'\)", code[1])
    assert spelling
    cases = by_id(dataset(spelling[1]))
    assert list(cases) == ["crossing/anna@0", "square/7@0"]
    assert all(name in code[1] for name in cases)
    scene = scene_of(cases["crossing/anna@0"])
    assert scene.names == ("background", "pavement", "road")
    assert scene.past.tolist() == [[10.5, 20], [13, 20], [15.5, 20]]
    assert (scene.rate, scene.metres_per_pixel, scene.size) == (2.5, 0.05, (60, 40))
    assert cases["square/7@0"].attributes == {"scene": "square", "track": "7", "agent": "cyclist", "frame": 0}
    assert path_of(cases["square/7@0"])[3:].tolist() == [[30, 17], [30, 21]]


def test_tracks(tmp_path: Path) -> None:
    path = own(tmp_path, STEPS)
    found = dataset(path)
    assert (found.name, found.root, found.notes) == (f'tracks("{path}")', str(tmp_path), ())
    cases = by_id(found)
    assert list(cases) == ["people/7@0"]
    assert cases["people/7@0"].attributes == {"scene": "people", "track": "7", "frame": 0}
    class_map(tmp_path / "other.png", (50, 50))
    assert scene_of(by_id(dataset(f'tracks("{path}", map="{tmp_path}/other.png")'))["people/7@0"]).size == (50, 50)


def test_tracks_in_any_shape(tmp_path: Path) -> None:
    """Columns in any order with others between, a BOM, blanks, rows unsorted, some twice, some without numbers."""
    rows = [f" {i + 0.5} , a,{i},ok,20,1" for i in range(20)]
    rows[3:3] = ["x,a,3,ok,20,1", "5,,3,ok,20,1", ",,,,,", "9,a,19,again,9,1", "1"]
    path = own(tmp_path, rows[::-1], header="\ufeffx,track , frame,line,y,z")
    found = dataset(path)
    cases = by_id(found)
    assert list(cases) == ["people/a@0"]
    # Of the two lines for frame 19 the other one comes later in the file.
    np.testing.assert_array_equal(path_of(cases["people/a@0"])[:, 0], np.arange(20) + 0.5)
    assert len(found.notes) == 2
    assert found.notes[0].startswith("3 lines left out, without a track or with something else where a number")
    assert found.notes[1] == "1 position left out, of a track and frame that were there already"


@pytest.mark.parametrize(
    ("between", "decimal", "name"), [("\t", ".", "people.csv"), ("\t", ".", "people.tsv"), (";", ",", "people.csv")]
)
def test_tracks_as_spreadsheets_write_them(tmp_path: Path, between: str, decimal: str, name: str) -> None:
    """A table with tabs or semicolons, or capitals in its header, was taken for a list of images."""
    rows = [between.join(("7", str(i), f"{i}.5".replace(".", decimal), "20", "lawn")) for i in range(20)]
    path = own(tmp_path, rows, between.join(("Track", "Frame", "X", '"Y"', "Scene"))).rename(tmp_path / name)
    table = dataset(path)
    assert (table.name, table.notes) == (f'tracks("{path}")', ())
    assert path_of(by_id(table)["lawn/7@0"])[8].tolist() == [8.5, 20]


def test_a_table_of_other_columns_says_which_names_it_takes(tmp_path: Path) -> None:
    path = own(tmp_path, ["P0,0.4,8.6,5.9"], header="id,t,pos_x,pos_y")
    with pytest.raises(ValueError, match=r"names no picture.*names track, frame, x, y, and this names id, t, pos_x, p"):
        dataset(path)


def test_tracks_with_names_that_would_clash(tmp_path: Path) -> None:
    rows = [
        f"{scene},{track},{i},{i},1"
        for scene, track in (("a", "b/c"), ("a/b", "c"), ("a", unicodedata.normalize("NFD", "é")))
        for i in range(20)
    ]
    found = dataset(own(tmp_path, rows, header="scene,track,frame,x,y"))
    assert sorted(by_id(found)) == ["a/b/c#2@0", "a/b/c@0", "a/é@0"]


def test_tracks_scene_without_a_map(tmp_path: Path) -> None:
    rows = [f"{scene},{row}" for scene in ("park", "platz") for row in STEPS]
    about = 'names = ["background"]\nrate = 2.5\nmap.park = "map.png"\nmetres_per_pixel.park = 0.1\n'
    path = own(tmp_path, rows, "scene,track,frame,x,y", about)
    found = dataset(path)
    case = by_id(found)["park/7@0"]
    assert case.track is not None and case.track.metres_per_pixel == 0.1
    assert found.notes == (
        f"1 scene left out, without a class map: platz; that of platz should be named in "
        f'{tmp_path}/scene.toml: map = "platz.png", or a table [map] by scene',
    )
    with pytest.raises(Unreadable, match="cells of class 1, the names end with 0"):
        read_input(case)
    (tmp_path / "map.png").unlink()
    with pytest.raises(FileNotFoundError, match="no class map of park"):
        dataset(path)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("x = [", "not TOML"),
        ("colour = 1", "unknown key 'colour'; there are map, metres_per_pixel, names, rate"),
        ("nmes = []", r"unknown key 'nmes'; did you mean 'names'\?"),
        ("rate = 1", "names is a list of different class names that begins with 'background'.*it is None"),
        ('names = ["road"]', "begins with 'background'"),
        ('names = ["background", "a", "a"]', "different"),
        ("names = [1]", "names is a list"),
        ('names = ["background"]', "rate is how many frames pass per second"),
        ('names = ["background"]\nrate = 0', "a number above 0; it is 0"),
        ('names = ["background"]\nrate = true', "a number above 0"),
        ('names = ["background"]\nrate = 1\nmap = 3', "map is a file, or a table of files"),
        ('names = ["background"]\nrate = 1\nmap.a = 3', "map is a file, or a table of files"),
        ('names = ["background"]\nrate = 1\nmetres_per_pixel = -1', "metres_per_pixel is a number above 0"),
    ],
)
def test_scene_toml_that_is_none(tmp_path: Path, about: str, message: str) -> None:
    path = own(tmp_path, STEPS, about=about)
    with pytest.raises(ValueError, match=message):
        dataset(path)


def test_scene_toml_elsewhere(tmp_path: Path) -> None:
    path = own(tmp_path, STEPS)
    (tmp_path / "about").mkdir()
    (tmp_path / "scene.toml").rename(tmp_path / "about" / "it.toml")
    with pytest.raises(FileNotFoundError, match=r"scene\.toml, which says what the positions lie on, e\.g\. names = "):
        dataset(path)
    class_map(tmp_path / "about" / "map.png", (80, 80))
    found = dataset(f'tracks("{path}", scene="{tmp_path}/about/it.toml")')
    assert scene_of(by_id(found)["people/7@0"]).size == (80, 80)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no track, frame, x, y; it has nothing"),
        ("track,frame,x\n", "names no y; it has track, frame, x"),
        ("track,frame,x,y\n", "there are no positions in it"),
        ("track,frame,x,y\na,b,c,d\n", "no positions in it.*line 2"),
        ('track,frame,x,y\n"a,1,2,3\n', "not a table|no positions"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    path = own(tmp_path, [])
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        dataset(f'tracks("{path}")')


# --- recognition -----------------------------------------------------------------------------------


def test_lists_and_folders_stay_what_they_are(here: Path, picture: Write) -> None:
    picture(here / "photos" / "1 2 3 4.png")
    picture(here / "photos" / "annotations" / "a" / "b.png")
    (here / "one.txt").write_text("photos/1 2 3 4.png\n")
    (here / "few.txt").write_text("# 1 2 3 4\nphotos/1 2 3 4.png\n1 2 3 4\n")
    (here / "other.csv").write_text("photos/1 2 3 4.png\n")
    (here / "boxes.txt").write_text("0 1 2 3 4\n")
    for name in ("one.txt", "few.txt", "other.csv", "boxes.txt"):
        assert dataset(name).name.startswith("list(")
    assert dataset("photos").name == "folder(photos)"
    (here / "photos" / "maps").mkdir()
    assert dataset("photos").name == "folder(photos)"
    (here / "tracks.txt").write_text("# frame id x y\n\n" + walks())
    assert dataset("tracks.txt").name == "eth-ucy(tracks.txt)"
