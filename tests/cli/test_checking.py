"""check, preview and numerics."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from instar.image import read_image
from tests.cli.conftest import Type
from tests.missing import module


def test_check_finds_a_wrong_adapter(typed: Type, photos: Path, tmp_path: Path) -> None:
    good = typed("check", "tests.toys:rectangles", photos / "000.png", "--out", tmp_path / "a")
    assert good.code == 0, good.stdout
    assert f"drawn: {tmp_path / 'a' / '000.png'}" in good.words
    assert (tmp_path / "a" / "000.png").is_file()
    bad = typed("check", "tests.cli.wrong:normalised", photos / "000.png", "--out", tmp_path / "b")
    assert bad.code == 1
    assert "problem" in bad.stdout and "width" in bad.stdout
    values = json.loads(
        typed("check", "tests.cli.wrong:normalised", photos / "000.png", "--out", tmp_path / "b", "--json").stdout
    )
    (finding,) = [finding for finding in values["findings"] if finding["state"] == "problem"]
    assert (finding["code"], finding["name"]) == ("coordinates.normalised", "coordinates")
    assert max(finding["figures"]["high"]) <= 1
    assert values["pictures"] == [str(tmp_path / "b" / "000.png")]


def test_check_draws_what_counts_and_says_what_it_replaces(typed: Type, photos: Path, tmp_path: Path) -> None:
    """A detector returns dozens of faint boxes, under which nothing was seen; and pictures were replaced in silence."""
    for name in ("rectangles", "faint"):
        module = "tests.toys" if name == "rectangles" else "tests.cli.wrong"
        checked = typed("check", f"{module}:{name}", photos / "000.png", "--out", tmp_path / name)
        assert "of an earlier check" not in checked.words
    assert "answers that score at least 0.5 are drawn, which rules count by default" in checked.words
    assert "fainter ones are not" in checked.words
    drawn, bare = (read_image(tmp_path / name / "000.png").pixels for name in ("rectangles", "faint"))
    assert (bare == read_image(photos / "000.png").pixels).all() and (drawn != bare).any()
    again = typed("check", "tests.toys:rectangles", photos / "000.png", "--out", tmp_path / "rectangles")
    assert "1 picture of an earlier check was replaced" in again.words


def test_check_draws_inputs_that_are_called_alike_into_files_of_their_own(
    typed: Type, photos: Path, tmp_path: Path
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(photos / "000.png", tmp_path / folder / "000.png")
    found = typed("check", "tests.toys:rectangles", *sorted(tmp_path.glob("?/000.png")), "--out", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["000 (2).png", "000.png"]
    assert found.words.count("000 (2).png") == 1
    walkers = Path(__file__).parents[2] / "examples" / "walkers" / "walkers.csv"
    typed("check", "constant-velocity", walkers, "--out", tmp_path / "scenes")
    assert "campus-2-1@0.png" in {path.name for path in (tmp_path / "scenes").iterdir()}
    assert len(list((tmp_path / "scenes").iterdir())) == 8


def test_check_says_how_many_images_it_asks(typed: Type) -> None:
    assert "the first 8 are asked" in typed("check", "--help").words


def test_check_takes_a_folder_of_images(typed: Type, photos: Path, tmp_path: Path) -> None:
    """The folder that a run is given, by the same name."""
    good = typed("check", "tests.toys:rectangles", photos, "--out", tmp_path / "a")
    assert good.code == 0, good.stderr
    assert "4 of 4 images answered" in good.words and len(list((tmp_path / "a").iterdir())) == 4
    some = typed("check", "tests.toys:rectangles", photos, "--out", tmp_path / "b", "--limit", 3)
    assert "3 of the 4 images were asked, the first; 3 of 3 images answered" in some.words
    assert len(list((tmp_path / "b").iterdir())) == 3


def test_check_takes_what_a_run_takes(typed: Type, photos: Path, tmp_path: Path) -> None:
    walkers = Path(__file__).parents[2] / "examples" / "walkers" / "walkers.csv"
    spelled = typed("check", "constant-velocity", f'tracks("{walkers}")', "--out", tmp_path / "a")
    assert "8 of the 30 scenes were asked, the first; 8 of 8 scenes answered" in spelled.words
    more = typed("check", "constant-velocity", walkers, "--out", tmp_path / "b", "--limit", 10)
    assert "10 of the 30 scenes were asked, the first; 10 of 10 scenes answered" in more.words
    (tmp_path / "list.txt").write_text("\n".join(str(photo) for photo in sorted(photos.iterdir())[:2]))
    images = typed("check", "tests.toys:rectangles", tmp_path / "list.txt", "--out", tmp_path / "c")
    assert "2 of 2 images answered" in images.words


def test_check_takes_an_image_whatever_its_name_ends_in(typed: Type, photos: Path, tmp_path: Path) -> None:
    shutil.copy(photos / "000.png", tmp_path / "photo.dat")
    made = typed("check", "tests.toys:rectangles", tmp_path / "photo.dat", "--out", tmp_path / "out")
    assert "1 of 1 images answered" in made.words
    (tmp_path / "noise.dat").write_bytes(bytes(range(256)) * 4)
    noise = typed("check", "tests.toys:rectangles", tmp_path / "noise.dat")
    assert noise.code == 2 and "no reader recognises this file" in noise.words


def test_check_says_what_it_cannot_take(typed: Type, photos: Path, tmp_path: Path) -> None:
    shutil.copy(photos / "000.png", tmp_path / "photo.png")
    near = typed("check", "tests.toys:rectangles", tmp_path / "foto.png")
    assert near.code == 2 and f"did you mean '{tmp_path / 'photo.png'}'?" in near.words
    unknown = typed("check", "constant-velocity", 'trakcs("people.csv")')
    assert unknown.code == 2 and "unknown dataset 'trakcs'; did you mean 'tracks'?" in unknown.words
    other = typed("check", "constant-velocity", photos)
    assert other.code == 2 and "constant-velocity takes scenes, and there are none in" in other.words


def test_check_leaves_out_what_cannot_be_read(typed: Type, photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    shutil.copytree(photos, folder)
    whole = (folder / "000.png").read_bytes()
    (folder / "000.png").write_bytes(whole[: len(whole) // 2])
    good = typed("check", "tests.toys:rectangles", folder, "--out", tmp_path / "a", "--limit", 3)
    assert good.code == 0, good.stderr
    assert "1 image that cannot be read is left out" in good.words and "000.png: truncated" in good.words
    assert "3 of 3 images answered" in good.words, "the next was taken"
    none = typed("check", "tests.toys:rectangles", folder / "000.png", "--out", tmp_path / "b")
    assert none.code == 2 and "000.png: truncated" in none.stderr


def test_check_of_what_finds_nothing_tells_nothing(typed: Type, photos: Path, tmp_path: Path) -> None:
    useless = typed("check", "tests.cli.wrong:blind", photos, "--out", tmp_path / "a")
    assert useless.code == 3 and "nothing was found in any of 4 images" in useless.words
    assert "Exit codes" in typed("--help").words and "it is 3" in typed("check", "--help").words


def test_check_ends_where_no_answer_comes(typed: Type, photos: Path, tmp_path: Path) -> None:
    hangs = typed("check", "tests.cli.wrong:hanging", photos, "--out", tmp_path / "a", "--timeout", 0.3)
    assert hangs.code == 1, hangs.words
    assert "first 000.png: TimeoutError: no answer within 0.3 s (wrong.py:" in hangs.words


HANGS = """\
import ctypes
from instar import Detections
def detect(image) -> Detections:
    mutex = ctypes.create_string_buffer(64)
    while True:
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
"""


def test_check_of_what_hangs_outside_of_python_ends(photos: Path, tmp_path: Path) -> None:
    """No interruption reaches it; the process ends, and says at which image."""
    (tmp_path / "hangs.py").write_text(HANGS)
    short = "import instar.systems.check.patience as p; p.GRACE = 0.5; from instar.cli import app; app()"
    command = [sys.executable, "-c", short, "check", "hangs:detect", str(photos / "000.png"), "--timeout", "0.5"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 1, ended
    assert "question 1, 000.png, is not answered after 0.5 s" in ended.stderr


def test_check_of_what_takes_no_images(typed: Type, tmp_path: Path) -> None:
    good = typed("check", "constant-velocity", "--out", tmp_path / "a")
    assert good.code == 0, good.stdout
    assert "3 of 3 scenes answered" in good.stdout and len(list((tmp_path / "a").iterdir())) == 3


def test_preview_makes_a_contact_sheet(typed: Type, photos: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    command = ("preview", "met-pose/sub", photos / "000.png", "--zones", "tests.engine.zones:painted")
    made = typed(*command, "--out", sheet)
    assert made.code == 0, made.stderr
    assert made.stdout.splitlines()[0] == str(sheet)
    assert read_image(sheet).size[0] > 600
    assert "not applicable: filtered(colour_wheel(90), hair)" in made.stdout


def test_preview_takes_the_first_image_of_a_list(typed: Type, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\n".join(str(photo) for photo in sorted(photos.iterdir())))
    made = typed("preview", "mirror(h)", tmp_path / "list.txt", "--out", tmp_path / "sheet.png")
    assert made.code == 0, made.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """1 ÷ x."""
    module("onnx")
    from onnx import TensorProto, helper, save

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy")
    node = helper.make_node("Reciprocal", ["x"], ["y"], name="inverse")
    graph = helper.make_graph([node], "inverse", [x], [y])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_numerics(typed: Type, model: Path) -> None:
    bad = typed("numerics", model, "--input", "0..255")
    assert bad.code == 0, bad.stderr
    assert "Reciprocal inverse" in bad.words and "1 defect, 1 of which can be seen in an output" in bad.words
    assert typed("numerics", model, "--input", "0..255", "--gate").code == 1
    assert typed("numerics", model, "--input", "x=1..255", "--gate").code == 0
    values = json.loads(typed("numerics", model, "--input", "0..255", "--json").stdout)
    assert [defect["operator"] for defect in values["defects"]] == ["Reciprocal"]
    assert typed("numerics", model, "--input", "z=0..1").code == 2


def test_preview_asks_a_system_where_landmarks_and_objects_are(typed: Type, photos: Path, tmp_path: Path) -> None:
    photo, sheet = photos / "000.png", tmp_path / "sheet.png"
    without = typed("preview", "discs(1)+discs(2)", photo, "--out", sheet)
    assert without.stdout.count("not applicable") == 1, "one reason is said once"
    assert "not applicable: discs(1) and discs(2): no landmarks are annotated" in without.stdout
    named = typed("preview", "discs(1)+discs(2)", photo, "--system", "tests.toys:steady", "--out", sheet)
    assert "not applicable" not in named.stdout, named.stdout
    objects = typed("preview", "object-relevance", photo, "--objects", "tests.toys:rectangles", "--out", sheet)
    assert objects.code == 0, objects.stderr
    assert "not applicable" not in objects.stdout, objects.stdout


EDITED = """\
import json, sys
print('{"instar": 1, "kind": "%s", "deterministic": true}', flush=True)
sys.stdin.readline()
open(__file__, "a").write("# better")
sys.exit("killed, say")
"""


@pytest.mark.parametrize("command", ["check", "export"])
def test_a_program_that_is_edited_meanwhile_is_one_sentence(
    typed: Type, photos: Path, tmp_path: Path, command: str
) -> None:
    """It dies, is started again, and is another one by then: neither a traceback nor an answer of two versions."""
    program = tmp_path / "program.py"
    program.write_text(EDITED % ("poses" if command == "check" else "zones"))
    spelling = f'process("{sys.executable} {program}")'
    ended = (
        typed("check", spelling, photos / "000.png", "--out", tmp_path / "out")
        if command == "check"
        else typed(
            "export",
            photos,
            "colour_wheel(90, skin)",
            "--kind",
            "poses",
            "--zones",
            spelling,
            "--out",
            tmp_path / "out",
        )
    )
    assert ended.code == 2, ended.words
    assert "program.py changed, and the program was started again with it; answers of two versions" in ended.words
    assert "give the same command again" in ended.words and "Traceback" not in ended.words
