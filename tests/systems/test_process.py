"""Programs in any language as systems, and what they cost when they misbehave."""

from __future__ import annotations

import base64
import gc
import importlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest

import instar
from instar.case import Input
from instar.engine import Provider, provided
from instar.engine.follow_up import error_text
from instar.image import Image
from instar.outputs.detections import Detections
from instar.outputs.forecast import Forecast
from instar.outputs.limits import TooMuch
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.scene import Scene
from instar.spelling import bind, parse_call, spell
from instar.suites import Suite
from instar.systems import AnotherVersion, System
from instar.systems.child import Crashed, TimedOut
from instar.systems.process import FAMILIES
from instar.transforms import NotApplicable
from tests.clocks import ENOUGH, hanging_clock, wait_for
from tests.missing import absent
from tests.toys import rectangles, scene, steady, write_scenes

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "process"
SOURCE = Path(instar.__file__).parents[1]

PICTURE = scene(0)
GREY = Image(np.full((40, 60, 3), 127, np.uint8))
MAP = Scene(np.ones((40, 60), np.uint8), ("background", "pavement"), np.array([[10.0, 20.0], [12.0, 20.5]]), steps=12)
POSE = {"skeleton": "coco-17", "points": [[[3, 4]] * 17]}


def spelled(command: str, **more: Any) -> str:
    (family,) = FAMILIES
    values = {"command": command, "version": "", "timeout": ENOUGH, "start_timeout": ENOUGH, **more}
    return spell(family.name, values, family.parameters)


def built(spelling: str) -> System:
    (family,) = FAMILIES
    return family.build(spelling, **bind(parse_call(spelling), family.parameters, what="system"))


@pytest.fixture
def start() -> Iterator[Callable[..., System]]:
    """Starts a program: its command, or the words of it."""
    running = []

    def run(*words: str | Path, **more: Any) -> System:
        command = str(words[0]) if len(words) == 1 else shlex.join(map(str, words))
        running.append(built(spelled(command, **more)))
        return running[-1]

    yield run
    for one in running:
        one.close()


@pytest.fixture
def program_of(tmp_path: Path, start: Callable[..., System]) -> Callable[..., System]:
    """A Python program that greets and then does this with each `request`, whose number is `n`."""

    def run(body: str, kind: str = "poses", first: str = "", **more: Any) -> System:
        return start(sys.executable, written(tmp_path, body, kind, first), **more)

    return run


def written(folder: Path, body: str, kind: str = "poses", first: str = "") -> Path:
    path = folder / "program.py"
    greeting = {"instar": 1, "kind": kind, "deterministic": True}
    path.write_text(
        f"""\
import json, os, signal, sys, time
def say(thing): print(json.dumps(thing), flush=True)
POSE = {POSE!r}
{textwrap.dedent(first)}
say({greeting!r})
for line in sys.stdin:
    request = json.loads(line)
    n = request["id"]
    def answer(output=POSE): say({{"id": n, "output": output}})
{textwrap.indent(textwrap.dedent(body), "    ")}
""",
        "utf-8",
    )
    return path


@pytest.fixture
def hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Code with which a program hangs; only then the time passes that it may take."""
    monkeypatch.setattr("instar.systems.child.time", hanging_clock(tmp_path / "hanging"))
    return hanging(tmp_path / "hanging")


def hanging(file: Path) -> str:
    return f"import fcntl; held = open({str(file)!r}, 'a'); fcntl.flock(held, fcntl.LOCK_EX); time.sleep(3600)"


def ask(system: System, given: Input = GREY, seed: int = 0) -> Any:
    [answer] = system.answer([given], [seed])
    if isinstance(answer, Exception):
        raise answer
    return answer


def node() -> str:
    found = shutil.which("node")
    if found is None:
        absent("the program node")
    return found


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """An example program as a module of this process."""
    monkeypatch.syspath_prepend(EXAMPLES)
    for name in ("png", "poses", "zones", "forecast"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


# --- the examples, one of each kind -----------------------------------------------------------------


def test_poses_answer_as_the_same_function_in_this_process(start: Any, example: Any) -> None:
    found = start(sys.executable, EXAMPLES / "poses.py")
    assert (found.kind, found.takes, found.deterministic, found.seedable) == ("poses", "image", True, True)
    for seed in range(3):
        picture = scene(seed)
        answer = ask(found, picture)
        here = example("poses").find(*picture.size, picture.pixels.tobytes())
        held = [[[np.nan, np.nan] if point is None else point for point in subject] for subject in here]
        np.testing.assert_array_equal(answer.points, Poses.from_array(held, skeleton="coco-17").points)
        np.testing.assert_allclose(answer.points, steady(picture.pixels).points, rtol=1e-6)
    assert len(ask(found, GREY)) == 0


def test_detections_in_another_language(start: Any) -> None:
    found = start(node(), EXAMPLES / "detections.js")
    assert found.kind == "detections"
    for seed in range(3):
        picture = scene(seed)
        answer, here = ask(found, picture), rectangles(picture.pixels)
        assert isinstance(answer, Detections)
        assert answer.labels == here.labels
        np.testing.assert_array_equal(answer.boxes, here.boxes)
    assert len(ask(found, GREY)) == 0


def test_zones_answer_as_the_same_function_in_this_process(start: Any, example: Any) -> None:
    found = start(sys.executable, EXAMPLES / "zones.py")
    answer = ask(found, PICTURE)
    labels = np.frombuffer(example("zones").segment(*PICTURE.size, PICTURE.pixels.tobytes()), np.uint8)
    assert isinstance(answer, Zones)
    np.testing.assert_array_equal(answer.labels, labels.reshape(PICTURE.size[::-1]))
    assert answer.names == {"background": (0, 2), "plants": (1,), "sky": (2,)}
    assert 0 < (answer.mask("plants") > 0).mean() < 0.5


def test_forecasts_answer_as_the_same_function_in_this_process(start: Any, example: Any) -> None:
    found = start(sys.executable, EXAMPLES / "forecast.py")
    assert (found.kind, found.takes, found.deterministic, found.seedable) == ("forecast", "scene", False, True)
    answer = ask(found, MAP, seed=2**63 - 1)
    here = example("forecast").futures(MAP.past.tolist(), MAP.steps, 2**63 - 1)
    assert isinstance(answer, Forecast)
    np.testing.assert_array_equal(answer.futures, np.array(here, np.float32))
    assert answer.heat is not None and answer.heat.size == (32, 22)
    np.testing.assert_array_equal(answer.heat.warp.points([[32.0, 22.0]]), [[60, 40]])
    np.testing.assert_array_equal(answer.futures, ask(found, MAP, seed=2**63 - 1).futures)
    assert (answer.futures != ask(found, MAP, seed=1).futures).any()


def test_examples_run_in_any_python(start: Any) -> None:
    """Also in one that knows nothing of Instar or NumPy, as a program of its own would."""
    for name, given in (("poses", PICTURE), ("zones", PICTURE), ("forecast", MAP)):
        ask(
            start(
                sys.executable,
                "-I",
                "-S",
                "-c",
                f"import sys; sys.path[:0] = [{str(EXAMPLES)!r}]; import {name}; {name}.main()",
            ),
            given,
        )


def test_the_small_reader_of_png_reads_every_filter(example: Any) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    pixels[5:] = cv2.GaussianBlur(pixels[5:], (5, 5), 0)
    for level in range(10):
        packed = cv2.imencode(".png", pixels[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, level])[1].tobytes()
        assert example("png").read(base64.b64encode(packed).decode()) == (30, 20, pixels.tobytes())


# --- what is sent ------------------------------------------------------------------------------------


def test_an_image_arrives_pixel_for_pixel(program_of: Any, tmp_path: Path) -> None:
    kept = tmp_path / "request.json"
    pixels = np.random.default_rng(1).integers(0, 256, (7, 5, 3), np.uint8)
    ask(program_of(f"open({str(kept)!r}, 'w').write(line); answer()"), Image(pixels), seed=5)
    request = json.loads(kept.read_text())
    given = request.pop("input")
    data = base64.b64decode(given.pop("png"))
    assert request == {"id": 1, "seed": 5}
    assert given == {"kind": "image", "width": 5, "height": 7}
    read = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert read is not None
    np.testing.assert_array_equal(read[..., ::-1], pixels)


def test_a_scene_arrives_cell_for_cell(program_of: Any, tmp_path: Path) -> None:
    kept = tmp_path / "request.json"
    classes = np.random.default_rng(1).integers(0, 3, (7, 5), np.uint8)
    given = Scene(classes, ("background", "Gehweg", "草"), np.array([[1.5, 2.0], [2.25, 3.0]]), steps=2, rate=4.0)
    system = program_of(f"open({str(kept)!r}, 'w').write(line); answer({{'futures': [[[1, 2], [3, 4]]]}})", "forecast")
    np.testing.assert_array_equal(ask(system, given).futures, [[[1, 2], [3, 4]]])
    sent = json.loads(kept.read_text())["input"]
    data = np.frombuffer(base64.b64decode(sent.pop("classes")), np.uint8)
    np.testing.assert_array_equal(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), classes)
    assert sent == {
        "kind": "scene",
        "width": 5,
        "height": 7,
        "names": ["background", "Gehweg", "草"],
        "past": [[1.5, 2.0], [2.25, 3.0]],
        "steps": 2,
        "rate": 4.0,
        "metres_per_pixel": None,
    }


def test_repeats_are_given_the_input_again(program_of: Any) -> None:
    body = "answer({'futures': [[[request['seed'], request['input']['steps']]]]})"
    system = program_of(body, "forecast")
    given = Scene(MAP.classes, MAP.names, MAP.past, steps=1)
    assert [ask(system, given, seed).futures.tolist() for seed in (3, 4)] == [[[[3, 1]]], [[[4, 1]]]]


def test_unicode_in_command_and_labels(tmp_path: Path, start: Any) -> None:
    folder = tmp_path / "Größe und 模型"
    folder.mkdir()
    body = "answer({'boxes': [[0, 0, 5, 5], [1, 1, 2, 2]], 'labels': ['Straße 🚲', sys.argv[1]]})"
    system = start(sys.executable, written(folder, body, "detections"), "schön")
    assert ask(system).labels == ("Straße 🚲", "schön")
    assert "Größe und 模型" in system.name


def test_captions(program_of: Any) -> None:
    caption = ask(program_of("answer({'text': ' ein  Hund 🐕', 'score': 0.5})", "caption"))
    assert (caption.text, caption.score) == ("ein Hund 🐕", 0.5)


def test_labels_in_utf_8(program_of: Any) -> None:
    line = '{"id": 1, "output": {"boxes": [[0, 0, 5, 5]], "labels": ["犬"], "scores": null}}\\r\\n'
    assert ask(program_of(f"sys.stdout.buffer.write('{line}'.encode()); sys.stdout.flush()", "detections")).labels == (
        "犬",
    )


def test_spelling() -> None:
    (family,) = FAMILIES
    assert spelled("my-model", timeout=30, start_timeout=120) == "process(my-model)"
    command = "python3 \"my model.py\" --name 'a b'"
    spelling = spelled(command, timeout=5, start_timeout=120)
    assert spelling == r"""process("python3 \"my model.py\" --name 'a b'", timeout=5)"""
    assert bind(parse_call(spelling), family.parameters, what="system")["command"] == command


# --- what is answered --------------------------------------------------------------------------------


def test_absent_landmarks_visibility_and_scores(program_of: Any) -> None:
    points = [[None] + [[1.5, 2]] * 16, [[1, 2]] * 17]
    output = {"skeleton": "coco-17", "points": points, "visibility": [[0.5] * 17] * 2, "scores": [0.25, 1]}
    answer = ask(program_of(f"answer({output!r})"))
    assert np.isnan(answer.points[0, 0]).all() and answer.points[0, 1].tolist() == [1.5, 2]
    assert answer.visibility[0, 1] == 0.5 and answer.scores.tolist() == [0.25, 1]


def test_landmarks_with_their_visibility_and_one_subject(program_of: Any) -> None:
    answer = ask(
        program_of("answer({'skeleton': 'coco-17', 'points': [[1, 2, 0.5], [None, None, 1], None] + [[3, 4, 1]] * 14})")
    )
    assert answer.points[0, 0].tolist() == [1, 2] and answer.visibility[0, 0] == 0.5
    assert np.isnan(answer.points[0, 1:3]).all() and len(answer) == 1


def test_nobody_is_an_answer(program_of: Any) -> None:
    assert len(ask(program_of("answer({'skeleton': 'coco-17', 'points': []})"))) == 0


def test_a_skeleton_of_ones_own(program_of: Any) -> None:
    table = {"name": "stick", "landmarks": ["top", "end"], "lengths": [["top", "end"]]}
    system = program_of(f"answer({{'skeleton': {table!r}, 'points': [[[1, 2], None]]}})")
    assert ask(system).skeleton.landmarks == ("top", "end")
    assert ask(system).skeleton is ask(system).skeleton


def test_a_map_over_a_part_of_the_frame(program_of: Any) -> None:
    heat = {"probability": [[1, 3]], "box": [10, 10, 30, 20]}
    answer = ask(program_of(f"answer({{'futures': [[[1, 2]] * 12], 'map': {heat!r}}})", "forecast"), MAP)
    assert answer.heat.cells.tolist() == [[0.25, 0.75]]
    np.testing.assert_allclose(answer.heat.warp.points([[0.0, 0.0], [2.0, 1.0]]), [[10, 10], [30, 20]])
    assert answer.heat.warp.target == MAP.size


def png(array: np.ndarray) -> str:
    return base64.b64encode(cv2.imencode(".png", array)[1].tobytes()).decode()


CELLS = png(np.ones((40, 60), np.uint8))

RUBBISH: list[tuple[str, Any, str]] = [
    ("poses", "a person, I guess", 'poses is an object with points, skeleton, visibility, scores; got "a person'),
    ("poses", None, "poses is an object with .* got null"),
    ("poses", {"points": []}, "poses needs skeleton"),
    ("poses", {**POSE, "score": [1]}, "no field 'score'; did you mean 'scores'"),
    ("poses", {**POSE, "skeleton": "coco17"}, "unknown skeleton 'coco17'; did you mean 'coco-17'"),
    ("poses", {**POSE, "skeleton": {"name": "x"}}, "landmarks are missing"),
    ("poses", {**POSE, "skeleton": 17}, "skeleton is 17; it takes the name"),
    ("poses", {**POSE, "skeleton": "nowhere.toml"}, "no skeleton file"),
    ("poses", {**POSE, "points": [[[1, 2]] * 16]}, "subject 0 of points has 16 landmarks; coco-17 has 17"),
    ("poses", {**POSE, "points": [[[1, 2]] * 16 + [[1, "2"]]]}, "points is .* it takes landmarks"),
    ("poses", {**POSE, "points": [[[1, 2]] * 16 + [[]]]}, "points is .* it takes landmarks"),
    ("poses", {**POSE, "points": [[[1, 2]] * 16 + [[1, 2, 3, 4]]]}, "points is .* null where one is absent"),
    ("poses", {**POSE, "points": [[[1, 2]] * 16 + [[1, 2, 0.5]]]}, "points is .* null where one is absent"),
    ("poses", {**POSE, "points": {"nose": [1, 2]}}, "points is .* it takes a list"),
    ("poses", {**POSE, "points": [5]}, "subject 0 of points is 5"),
    ("poses", {**POSE, "visibility": [[1] * 16]}, r"visibility is .* \(1 × 17\)"),
    ("poses", {**POSE, "scores": [0.5, 0.5]}, r"scores is \[0.5, 0.5\]; it takes a number for each subject \(1\)"),
    ("poses", {**POSE, "scores": [True]}, r"scores is \[true\]"),
    ("poses", {"boxes": [], "labels": []}, "no field 'boxes'"),
    ("detections", POSE, "no field 'skeleton'"),
    ("detections", {"boxes": [[1, 2, 3]], "labels": ["a"]}, "boxes is .*x0, y0, x1, y1"),
    ("detections", {"boxes": [[5, 5, 1, 1]], "labels": ["a"]}, "x1 < x0"),
    ("detections", {"boxes": [[1, 2, 3, 4]], "labels": [3]}, "one of labels is 3; it takes a text"),
    ("detections", {"boxes": [[1, 2, 3, 4]], "labels": ["\ud83d"]}, "no text in Unicode"),
    ("detections", {"boxes": [[1, 2, 3, 4]], "labels": []}, "1 boxes need as many labels"),
    ("detections", {"boxes": [[1, 2, 3, 4], [1, 2]], "labels": ["a", "b"]}, "boxes is"),
    ("caption", {"text": 3}, "the text of a caption is 3; it takes a text"),
    ("caption", {"text": "a dog", "score": "high"}, 'score is "high"'),
    ("caption", {"caption": "a dog"}, "no field 'caption'"),
    ("zones", {"labels": "???", "names": {}}, "labels is a PNG in base64"),
    ("zones", {"labels": base64.b64encode(b"GIF89a").decode(), "names": {}}, "something else"),
    ("zones", {"labels": CELLS[:60], "names": {}}, "not an image that can be read|cannot be decoded"),
    ("zones", {"labels": png(np.ones((4, 6), np.uint8)), "names": {}}, r"the zones are \(6, 4\), the input"),
    ("zones", {"labels": png(np.ones((40, 60, 3), np.uint8)), "names": {}}, "one channel"),
    ("zones", {"labels": CELLS, "names": ["skin"]}, "names is .* label values of each zone"),
    ("zones", {"labels": CELLS, "names": {"skin": 1}}, "skin is 1; it takes a list of label values"),
    ("zones", {"labels": CELLS, "names": {"skin": [256]}}, "from 0 to 255"),
    ("forecast", {"futures": []}, "at least one path"),
    ("forecast", {"futures": [[[1, 2]] * 3]}, "asks for 12 positions, its futures have 3"),
    ("forecast", {"futures": [[1, 2]]}, "asks for 12 positions, its futures have 1"),
    ("forecast", {"futures": [[[1, 2, 3]]]}, "futures is .* it takes paths"),
    ("forecast", {"futures": [1, 2]}, "futures is .* it takes paths"),
    ("forecast", {"futures": [[[1, 2]] * 12], "map": [[1]]}, "map is an object"),
    ("forecast", {"futures": [[[1, 2]] * 12], "map": {"probability": [1]}}, "rows of equally many"),
    ("forecast", {"futures": [[[1, 2]] * 12], "map": {"probability": [[-1]]}}, "from 0 up"),
    ("forecast", {"futures": [[[1, 2]] * 12], "map": {"probability": [[1]], "box": [5, 5, 5, 9]}}, "x0 < x1"),
]


@pytest.mark.parametrize("kind", ["caption", "poses", "detections", "zones", "forecast"])
def test_rubbish_is_described_and_costs_its_own_answer_alone(kind: str, program_of: Any, tmp_path: Path) -> None:
    cases = [(output, says) for of, output, says in RUBBISH if of == kind]
    path = tmp_path / "outputs.json"
    path.write_text(json.dumps([output for output, _ in cases]))
    system = program_of(
        "answer(OUTPUTS[n - 1])",
        kind,
        f"OUTPUTS = json.load(open({str(path)!r}))\nprint(os.getpid(), file=open({str(tmp_path / 'pids')!r}, 'a'))",
    )
    for _, says in cases:
        with pytest.raises(ValueError, match=says):
            ask(system, MAP if kind == "forecast" else GREY)
    assert len((tmp_path / "pids").read_text().split()) == 1


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ("NaN", "holds NaN, which is not JSON; an absent landmark is null"),
        ("-Infinity", "-Infinity"),
        ("1e999", "too large"),
        ("9" * 400, "too long a number: a number has 400 digits, at most 40 are read"),
        ("9" * 5000, "too long a number: a number has 5,000 digits"),
    ],
)
def test_numbers_that_are_none(number: str, says: str, program_of: Any) -> None:
    line = json.dumps({"id": 7, "output": POSE}).replace("3", number).replace('"id": 7', '"id": %d')
    system = program_of(f"print({line!r} % n if n == 1 else json.dumps(dict(id=n, output=POSE)), flush=True)")
    with pytest.raises(ValueError, match=says):
        ask(system)
    assert len(ask(system)) == 1


PEM = "-----BEGIN KEY-----\n" + "\n".join("abcdefgh" * 8 for _ in range(50)) + "\n-----END KEY-----"
"""A secret of several lines, longer than anything that is quoted."""


@pytest.mark.parametrize(
    "body",
    [
        "sys.exit(os.environ['MODEL_KEY'] + ' was refused')",
        "print(os.environ['MODEL_KEY'], file=sys.stderr); os.kill(os.getpid(), 9)",
        "print('x' * 150 + os.environ['SHORT_KEY'], flush=True)",
        "answer({'points': 'x' * 70 + os.environ['SHORT_KEY'], 'skeleton': 'coco-17'})",
        "say({'id': 'x' * 70 + os.environ['SHORT_KEY'], 'output': POSE})",
        "say({'id': n, 'error': os.environ['MODEL_KEY']})",
    ],
)
def test_no_half_of_a_secret_is_quoted(body: str, program_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages quote the beginning or the end of what a program said: secrets go before it is cut."""
    monkeypatch.setenv("MODEL_KEY", PEM)
    monkeypatch.setenv("SHORT_KEY", "sk-abcdefgh-12345-abcdefgh")
    with pytest.raises((RuntimeError, ValueError)) as error:
        ask(program_of(body))
    assert "abc" not in error_text(error.value)


def test_what_the_program_says_went_wrong(program_of: Any) -> None:
    system = program_of("say({'id': n, 'error': 'the image is too dark'}) if n == 1 else answer()")
    with pytest.raises(RuntimeError, match="the program says: the image is too dark"):
        ask(system)
    assert len(ask(system)) == 1


def test_an_input_of_the_wrong_type_is_not_sent(program_of: Any) -> None:
    with pytest.raises(TypeError, match="takes a image, this is a scene"):
        ask(program_of("answer()"), MAP)


# --- programs that lose step --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "print('loading weights …', flush=True); answer()",
            "wrote 'loading weights …' to stdout.*print logs to stderr",
        ),
        ("print('50 %', end=' ', flush=True); answer()", "wrote '50 % {"),
        ("print('[1, 2]', flush=True)", r"wrote '\[1, 2\]' to stdout"),
        ("print('', flush=True)", "wrote '' to stdout"),
        ("print('[' * 100000, flush=True)", r"wrote '\[\["),
        ("sys.stdout.buffer.write(b'\\xff\\xfe{}\\n'); sys.stdout.flush()", "which is no answer"),
        ("say({'id': n + 1, 'output': POSE})", "the answer has id 2, the request has 1"),
        ("say({'output': POSE})", "the answer has id null"),
    ],
)
def test_a_program_that_loses_step_is_started_again(body: str, says: str, program_of: Any) -> None:
    system = program_of(f"if n != 1: answer(); continue\n{body}")
    with pytest.raises(ValueError, match=says):
        ask(system)
    assert len(ask(system)) == 1


def test_logs_after_an_answer_are_found_with_the_next(program_of: Any) -> None:
    system = program_of("answer()\nif n == 1: print('done', flush=True)")
    ask(system)
    with pytest.raises(ValueError, match="wrote 'done' to stdout"):
        ask(system)
    assert len(ask(system)) == 1


def test_a_line_without_an_end(program_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("instar.systems.child._MOST_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="a line of more than 1 MB, which starts with 'aaa"):
        ask(program_of("while True: sys.stdout.write('a' * 65536)"))


# --- programs that die --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "says"),
    [
        ("sys.exit(3)", "ended with exit status 3 instead of its answer"),
        ("print('out of memory', file=sys.stderr); os._exit(1)", "exit status 1 instead of its answer: out of memory"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
        ("raise ZeroDivisionError('by zero')", "exit status 1 .*ZeroDivisionError: by zero"),
        ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)", "was killed by SIGKILL"),
    ],
)
def test_a_program_that_dies_on_the_third_input(deed: str, says: str, program_of: Any) -> None:
    system = program_of(f"if n == 3: {deed}\nanswer()", timeout=600)
    for number in range(1, 6):
        if number == 3:
            with pytest.raises(Crashed, match=says) as caught:
                ask(system)
            assert caught.value.status == "crashed"
        else:
            assert len(ask(system)) == 1


def test_a_death_is_noticed_though_something_it_started_lives_on(program_of: Any) -> None:
    """What a program leaves behind may hold its stdout open; it is killed, too."""
    first = "import subprocess; left = subprocess.Popen(['sleep', '600']); print(left.pid, file=sys.stderr, flush=True)"
    system = program_of("os._exit(1)", first=first, timeout=600)
    with pytest.raises(Crashed, match="exit status 1 instead of its answer") as caught:
        ask(system)
    assert gone(int(str(caught.value).rpartition(" ")[2]))


def test_a_program_that_closes_its_stdout(program_of: Any) -> None:
    system = program_of("os.close(1); time.sleep(600)")
    with pytest.raises(Crashed, match="closed its stdout instead of its answer"):
        ask(system)


def test_a_program_that_closes_its_stdin(program_of: Any) -> None:
    """More is left to write than a pipe holds, and nobody reads it."""
    system = program_of(
        "pass", first="say({'instar': 1, 'kind': 'poses', 'deterministic': True}); os.close(0); sys.exit(4)"
    )
    with pytest.raises(Crashed, match="exit status 4"):
        ask(system, Image(np.zeros((500, 500, 3), np.uint8)))


def test_a_program_that_does_not_start_again_is_given_up(program_of: Any, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    first = f"""
        open({str(starts)!r}, 'a').write('x')
        if len(open({str(starts)!r}).read()) > 1: sys.exit('the GPU is gone')
    """
    system = program_of("sys.exit(1)", first=first)
    with pytest.raises(Crashed, match="exit status 1 instead of its answer"):
        ask(system)
    for _ in range(3):
        with pytest.raises(Crashed, match=r"failed to start again 3 times in a row: .*the GPU is gone"):
            ask(system)
    assert starts.read_text() == "x" * 4


def test_one_failed_start_costs_no_answer(program_of: Any, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    first = f"""
        open({str(starts)!r}, 'a').write('x')
        if len(open({str(starts)!r}).read()) == 2: sys.exit('busy')
    """
    system = program_of("sys.exit(1) if n == 1 else answer()", first=first)
    with pytest.raises(Crashed):
        ask(system)
    assert len(ask(system)) == 1


def test_a_program_that_is_another_when_it_starts_again(program_of: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    first = f"""
        say({{'instar': 1, 'kind': 'poses', 'deterministic': True, 'version': str(os.path.exists({str(mark)!r}))}})
        open({str(mark)!r}, 'w')
        line = sys.stdin.readline()
        sys.exit(1)
    """
    system = program_of("", first=first)
    with pytest.raises(Crashed):
        ask(system)
    # the run ends: answers of two versions would be mixed, and no row may hide it
    with pytest.raises(AnotherVersion, match=r"version='True'.*before with .*version='False'"):
        ask(system)


def test_a_program_that_was_edited_when_it_starts_again(program_of: Any, tmp_path: Path) -> None:
    """The greeting of the new version is the same: only the file tells."""
    edit = "text = open(__file__).read(); open(__file__, 'w').write(text + '# better'); sys.exit(1)"
    system = program_of(f"if n == 2: {edit}\nanswer()")
    assert len(ask(system)) == 1
    with pytest.raises(Crashed):
        ask(system)
    for _ in range(2):
        with pytest.raises(AnotherVersion, match=r"program\.py changed, and the program was started again with it"):
            ask(system)


def test_a_program_whose_file_was_touched_is_the_same(program_of: Any) -> None:
    system = program_of("if n == 1: os.utime(__file__); sys.exit(1)\nanswer()")
    with pytest.raises(Crashed):
        ask(system)
    assert len(ask(system)) == 1


def test_another_version_of_a_segmenter_is_no_failure_of_one_input(program_of: Any) -> None:
    """Whoever asks a system for one of its own answers must not turn this into a row."""
    edit = "open(__file__, 'a').write('# better'); sys.exit(1)"
    zones = program_of(f"if n == 1: {edit}\nanswer()", "zones")
    who = Provider("edited", "1", zones)
    assert isinstance(provided("zones", who, instar.Case("a", input=GREY), GREY), NotApplicable)
    with pytest.raises(AnotherVersion):
        provided("zones", who, instar.Case("a", input=GREY), GREY)


def test_an_answer_that_comes_before_its_question_is_none(program_of: Any, tmp_path: Path) -> None:
    """A program that answers twice and counts for itself would answer each input with what it said of the last."""
    second = f"say({{'id': 2, 'output': {{**POSE, 'points': []}}}}); open({str(tmp_path / 'said')!r}, 'w')"
    system = program_of(f"answer()\nif n == 1: {second}")
    assert len(ask(system)) == 1
    wait_for((tmp_path / "said").exists)
    with pytest.raises(ValueError, match=r"wrote .* to stdout before it was asked"):
        ask(system)
    assert len(ask(system)) == 1


# --- programs that hang -------------------------------------------------------------------------------


def test_a_program_that_hangs_on_one_input(program_of: Any, hangs: str) -> None:
    system = program_of(f"print('thinking', file=sys.stderr, flush=True)\nif n == 2: {hangs}\nanswer()", timeout=2)
    assert len(ask(system)) == 1
    with pytest.raises(TimedOut, match=r"killed after 2 s without its answer: .*thinking") as caught:
        ask(system)
    assert caught.value.status == "timeout"
    assert len(ask(system)) == 1


def test_a_program_that_does_not_read(program_of: Any) -> None:
    """The request is larger than a pipe: also writing it must end."""
    first = "say({'instar': 1, 'kind': 'poses', 'deterministic': True}); time.sleep(600)"
    with pytest.raises(TimedOut, match="killed after 1 s"):
        ask(program_of("", first=first, timeout=1), Image(np.zeros((1000, 1000, 3), np.uint8)))


def test_what_it_started_is_killed_with_it(tmp_path: Path, start: Any, hangs: str) -> None:
    """A wrapper: the one that hangs is not the one that was started."""
    pid = tmp_path / "pid"
    inner = written(tmp_path, f"open({str(pid)!r}, 'w').write(str(os.getpid())); {hangs}")
    system = start("/bin/sh", "-c", f"{shlex.join([sys.executable, str(inner)])}; true", timeout=2)
    with pytest.raises(TimedOut):
        ask(system)
    assert gone(int(pid.read_text()))


def test_slow_answers_are_waited_for(program_of: Any) -> None:
    system = program_of("time.sleep(1.2); answer()")
    assert len(ask(system)) == len(ask(system)) == 1


def test_an_interrupted_answer_is_not_that_to_the_next_input(program_of: Any, tmp_path: Path) -> None:
    late = f"""
        if n == 1:
            os.kill({os.getpid()}, signal.SIGALRM)
            while not os.path.exists({str(tmp_path / "interrupted")!r}): time.sleep(0.01)
        answer({{**POSE, 'points': [[[n, n]] * 17]}})
    """
    system = program_of(late)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask(system)
    finally:
        (tmp_path / "interrupted").touch()
        signal.signal(signal.SIGALRM, old)
    assert ask(system).points[0, 0].tolist() == [2, 2]


# --- much to say --------------------------------------------------------------------------------------


def test_megabytes_on_stderr(program_of: Any) -> None:
    body = "sys.stderr.write(('chatter ' * 100 + '\\n') * 5000)\nif n == 3: sys.exit('the end')\nanswer()"
    system = program_of(body)
    assert len(ask(system)) == len(ask(system)) == 1
    with pytest.raises(Crashed, match=r"the end$"):
        ask(system)


def test_an_answer_of_fifty_megabytes_arrives_and_is_too_much(program_of: Any) -> None:
    body = "answer({'boxes': [[0.123456789, 1, 2, 3]], 'labels': ['a' * (50 << 20)]})"
    with pytest.raises(TooMuch, match="has 52,428,800 characters in a name"):
        ask(program_of(body, "detections", timeout=600))


def test_a_large_request_meets_a_large_answer(tmp_path: Path, start: Any) -> None:
    """A program that writes before it has read everything: whoever waits for the other would wait for ever."""
    path = tmp_path / "program.py"
    path.write_text("""
import os, sys
os.write(1, b'{"instar": 1, "kind": "detections", "deterministic": true}\\n')
while True:
    if not os.read(0, 1000): break
    rest = b'{"id": 1, "output": {"boxes": [[0, 0, 1, 1]], "labels": ["' + b"a" * (5 << 20) + b'"]}}'
    while rest: rest = rest[os.write(1, rest):]
    seen = b""
    while not seen.endswith(b"\\n"): seen = os.read(0, 1 << 20)
    os.write(1, b"\\n")
""")
    picture = Image(np.random.default_rng(0).integers(0, 256, (1500, 1500, 3), np.uint8))
    with pytest.raises(TooMuch, match="has 5,242,880 characters in a name"):
        ask(start(sys.executable, path), picture)


# --- starting -----------------------------------------------------------------------------------------


def test_there_is_no_such_program(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no program 'pythn4' on the PATH.*install it, or give its path"):
        built('process("pythn4 model.py")')
    plain = tmp_path / "model.py"
    plain.write_text("")
    with pytest.raises(PermissionError, match=r"not executable.*process\(\"python3 .*model.py\"\)"):
        built(spelled(str(plain)))
    with pytest.raises(ValueError, match="No closing quotation"):
        built(spelled("python3 'model.py"))
    with pytest.raises(ValueError, match="the command is empty"):
        built(spelled(" "))


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_bytes(b"\x7fELF nothing of the kind")
    odd.chmod(0o755)
    with pytest.raises(Crashed, match=r"odd: Exec format error|exit status"):
        built(spelled(str(odd)))


@pytest.mark.parametrize(
    ("first", "error", "says"),
    [
        ("sys.exit('no weights: model.pt')", Crashed, "exit status 1 instead of its greeting: no weights: model.pt"),
        ("sys.exit(0)", Crashed, "exit status 0 instead of its greeting"),
        ("print('Loading model …', flush=True)", ValueError, "wrote 'Loading model …' to stdout; its first line"),
        ("say({'kind': 'poses'})", ValueError, "its first line is a greeting"),
        ("say({'instar': 2, 'kind': 'poses', 'deterministic': True})", ValueError, "speaks version 2 .* speaks 1"),
        ("say({'instar': 1, 'deterministic': True})", ValueError, "a greeting needs kind"),
        ("say({'instar': 1, 'kind': 'poses'})", ValueError, "a greeting needs deterministic"),
        ("say({'instar': 1, 'kind': 'pose', 'deterministic': True})", ValueError, "kind is .*did you mean 'poses'"),
        ("say({'instar': 1, 'kind': 'poses', 'deterministic': 'yes'})", ValueError, "it takes true or false"),
        (
            "say({'instar': 1, 'kind': 'poses', 'deterministic': True, 'takes': 'video'})",
            ValueError,
            "one of image, scene",
        ),
        ("say({'instar': 1, 'kind': 'poses', 'determinstic': True})", ValueError, "did you mean 'deterministic'"),
        (
            "say({'instar': 1, 'kind': 'poses', 'deterministic': True, 'version': 3})",
            ValueError,
            "version is 3; it takes",
        ),
    ],
)
def test_bad_starts_are_told_at_once(first: str, error: type[Exception], says: str, program_of: Any) -> None:
    with pytest.raises(error, match=says) as caught:
        program_of("answer()", first=first)
    assert str(caught.value).startswith("process(")


def test_a_program_that_never_greets(program_of: Any, hangs: str) -> None:
    with pytest.raises(TimedOut, match="killed after 1 s without its greeting: still loading"):
        program_of("", first=f"print('still loading', file=sys.stderr, flush=True); {hangs}", start_timeout=1)


def test_what_a_greeting_leaves_out(program_of: Any) -> None:
    assert program_of("answer()", "forecast").takes == "scene"
    system = program_of("answer()", first="say({'instar': 1, 'kind': 'poses', 'deterministic': False})")
    assert (system.deterministic, system.seedable, system.takes) == (False, False, "image")


def test_the_import_path_of_a_worker_is_not_the_programs(
    program_of: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker process has all of its sys.path in PYTHONPATH; the user's own part of it stays."""
    show = "say({'id': n, 'error': os.environ.get('PYTHONPATH', '')})"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    with pytest.raises(RuntimeError) as caught:
        ask(program_of(show))
    heard = str(caught.value).removeprefix("the program says: ").split(os.pathsep)
    assert str(tmp_path) in heard
    assert not [folder for folder in heard if "site-packages" in folder]
    assert str(Path(os.__file__).parent) not in heard
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=f"says: {tmp_path}$"):
        ask(program_of(show))


# --- a run -------------------------------------------------------------------------------------------

RULES = Suite("test", tuple(instar.rule(one) for one in ("mirror(h)", "gamma(0.2)", "gamma(4)")))


def test_a_run_in_this_process(start: Any, tmp_path: Path) -> None:
    photos = write_scenes(tmp_path / "photos", 2)
    system = start(sys.executable, EXAMPLES / "poses.py")
    done = instar.run(system, RULES, photos, out=tmp_path / "run", workers=0)
    assert done.predictions()["status"].unique().to_list() == ["ok"]
    assert {row["rule"]: row["rate"] for row in done.rates(0.05).to_dicts()}["mirror(h) => poses"] == 0
    stored = done.manifest.system
    assert (stored.name, stored.kind, stored.fingerprint) == (system.name, "poses", system.fingerprint)


def test_a_run_with_workers_records_deaths_and_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hanging"
    body = f"""
        level = sum(png.read(request["input"]["png"])[2]) / request["input"]["width"] / request["input"]["height"] / 3
        if level < 60: os.kill(os.getpid(), signal.SIGSEGV)
        if level > 160: {hanging(file)}
        answer()
    """
    path = written(tmp_path, body, first=f"sys.path.insert(0, {str(EXAMPLES)!r}); import png")
    spelling = spelled(shlex.join([sys.executable, str(path)]), timeout=3)
    (tmp_path / "held_program.py").write_text(
        f"import instar.systems.child\nfrom tests.clocks import hanging_clock\n"
        f"from tests.systems.test_process import built\n"
        f"instar.systems.child.time = hanging_clock({str(file)!r})\nSYSTEM = built({spelling!r})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    photos = write_scenes(tmp_path / "photos", 2)
    done = instar.run("held_program:SYSTEM", RULES, photos, out=tmp_path / "run", workers=1)
    rows = {(row["case"], row["follow_up"]): row for row in done.predictions().to_dicts()}
    assert {
        name: {rows[case, name]["status"] for case in ("000.png", "001.png")}
        for name in ("source", "mirror(h)", "gamma(0.2)", "gamma(4)")
    } == {"source": {"ok"}, "mirror(h)": {"ok"}, "gamma(0.2)": {"timeout"}, "gamma(4)": {"crashed"}}
    assert "killed after 3 s without its answer" in rows["000.png", "gamma(0.2)"]["message"]
    assert "killed by SIGSEGV" in rows["000.png", "gamma(4)"]["message"]


def test_a_program_may_say_goodbye_when_a_run_with_workers_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    path = written(tmp_path, "answer()")
    path.write_text(path.read_text() + f"time.sleep(0.3)\nopen({str(mark)!r}, 'w').write('goodbye')\n")
    photos = write_scenes(tmp_path / "photos", 1)
    spelling = spelled(shlex.join([sys.executable, str(path)]))
    (tmp_path / "patient.py").write_text(
        f"import instar.systems.child\nfrom tests.systems.test_process import built\n"
        f"instar.systems.child._GRACE = {ENOUGH}\nSYSTEM = built({spelling!r})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("instar.engine.crew.END_SECONDS", ENOUGH)
    instar.run("patient:SYSTEM", "mirror(h)", photos, out=tmp_path / "run", workers=1)
    assert mark.read_text() == "goodbye"


# --- the fingerprint ----------------------------------------------------------------------------------


def test_the_fingerprint_changes_with_what_is_known_of_the_program(tmp_path: Path, start: Any) -> None:
    path, weights = written(tmp_path, "answer()"), tmp_path / "weights"
    weights.write_text("1")

    def fingerprint(*words: str, **more: Any) -> str:
        return str(start(sys.executable, path, *words, **more).fingerprint)

    first = fingerprint(f"--weights={weights}")
    assert first == fingerprint(f"--weights={weights}", timeout=25)
    weights.write_text("2")
    second = fingerprint(f"--weights={weights}")
    others = [fingerprint(f"--weights={weights}", version="2"), fingerprint("--flag")]
    written(tmp_path, "answer()  # better")
    assert len({first, second, *others, fingerprint("--flag")}) == 5


# --- the end ------------------------------------------------------------------------------------------


def gone(pid: int, within: float = ENOUGH) -> bool:
    """No such process any more, or only what is left of a dead one until its parent looks."""
    until = time.monotonic() + within
    while True:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
        if not state or state.startswith("Z"):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)


OWNER = """
import sys, time
import instar.systems.child
from tests.systems.test_process import ENOUGH, GREY, built
instar.systems.child._GRACE = ENOUGH  # a program may take its time to say goodbye
system = built(sys.argv[1])
try: system.predict([GREY], [0])
except RuntimeError as error: print(str(error).rpartition(" ")[2], flush=True)
if sys.argv[2] == "stay": time.sleep(600)
if sys.argv[2] == "hang": system.predict([GREY], [0])
"""


def owner(tmp_path: Path, command: list[str], then: str) -> tuple[subprocess.Popen[str], int]:
    """Another process that owns a program, and the program's process id."""
    path = os.pathsep.join([str(SOURCE), str(SOURCE.parent)])
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, spelled(shlex.join(command)), then],
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.parametrize("then", ["stay", "hang"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_program_does_not_outlive_its_owner(tmp_path: Path, then: str, wrapped: bool) -> None:
    body = "say({'id': n, 'error': f'I am {os.getpid()}'}) if n == 1 else time.sleep(600)"
    # deaf to the end of its input, as a program is that hangs
    command = [sys.executable, str(written(tmp_path, body + "\nwhile n > 1 or sys.argv[1:]: time.sleep(1)")), "deaf"]
    if wrapped:
        command = ["/bin/sh", "-c", f"{shlex.join(command)}; true"]
    process, program = owner(tmp_path, command, then)
    assert not gone(program, within=0)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert gone(program)


def test_the_program_ends_when_its_owner_does(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    path = written(tmp_path, "say({'id': n, 'error': f'I am {os.getpid()}'})")
    path.write_text(path.read_text() + f"open({str(mark)!r}, 'w').write('goodbye')\n")
    process, program = owner(tmp_path, [sys.executable, str(path)], "leave")
    assert process.wait(ENOUGH) == 0
    assert gone(program)
    assert mark.read_text() == "goodbye"


def test_a_daemon_that_a_program_left_behind_ends_with_it(tmp_path: Path) -> None:
    """It has a session of its own, as a server has that the program starts for itself."""
    pid = tmp_path / "pid"
    first = f"""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open({str(pid)!r}, 'w').write(str(os.getpid()))
                os.execvp('sleep', ['sleep', '30'])
            os._exit(0)
        os.wait()
        while not os.path.exists({str(pid)!r}) or not open({str(pid)!r}).read(): time.sleep(0.01)
    """
    system = built(spelled(shlex.join([sys.executable, str(written(tmp_path, "answer()", first=first))])))
    assert len(ask(system)) == 1
    system.close()
    assert gone(int(pid.read_text()))


@pytest.mark.parametrize("how", ["closed", "forgotten"])
def test_a_system_that_is_closed_or_forgotten_ends_its_program(tmp_path: Path, how: str) -> None:
    path = written(tmp_path, "answer({'boxes': [[0, 0, 1, 1]], 'labels': [str(os.getpid())]})", "detections")
    system = built(spelled(shlex.join([sys.executable, str(path)])))
    program = int(ask(system).labels[0])
    if how == "closed":
        system.close()
        system.close()
    del system
    gc.collect()
    assert gone(program)


def test_a_forked_copy_of_the_owner_does_not_end_it(program_of: Any) -> None:
    system = program_of("answer()")
    copy = os.fork()
    if copy == 0:
        system.close()
        os._exit(0)
    os.waitpid(copy, 0)
    assert len(ask(system)) == 1
