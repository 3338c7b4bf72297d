"""Every built-in system keeps the contract, wherever it can be loaded."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import instar
from instar.case import Case
from instar.datasets import Dataset
from instar.image import Image, read_image
from instar.outputs import output_kinds
from instar.outputs.poses import Poses
from instar.outputs.zones import Zones
from instar.skeleton import skeleton
from instar.systems import MissingExtra, System, system, systems
from instar.systems.boxes import fitting
from instar.systems.litert import quiet
from instar.warp import Warp
from tests.missing import SHARED, astronaut, loaded_system, model, module, shared

MOVENET = SHARED / "data" / "models" / "movenet_single_pose_lightning_ptq.tflite"
SPELLINGS = {
    "holistic-hands": "holistic-hands",
    "mediapipe-hands": "mediapipe-hands",
    "mediapipe-hands-sides": "mediapipe-hands(sides=true)",
    "mediapipe-holistic": "mediapipe-holistic(refine_face=true)",
    "mediapipe-holistic-heavy": "mediapipe-holistic(complexity=2)",
    "mediapipe-holistic-lite": "mediapipe-holistic(complexity=0)",
    "mediapipe-selfie": "mediapipe-selfie",
    "mediapipe-selfie-landscape": "mediapipe-selfie(landscape=true)",
    "movenet": f'movenet("{MOVENET}")',
    "selfie-multiclass": "selfie-multiclass",
}


def need(name: str) -> System:
    return loaded_system(SPELLINGS[name], MOVENET if name == "movenet" else None)


def plain(width: int, height: int, value: int = 127) -> Image:
    return Image(np.full((height, width, 3), value, np.uint8))


def content(output: Any) -> npt.NDArray[Any]:
    return np.asarray(output.points if isinstance(output, Poses) else output.labels)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Poses) and not (np.array_equal(a.scores, b.scores) and np.array_equal(a.visibility, b.visibility)):
        return False
    return np.array_equal(content(a), content(b), equal_nan=isinstance(a, Poses))


ELSEWHERE = {
    "onnx-classifier",
    "chain",
    "constant-velocity",
    "detector-captioner",
    "efficientdet-lite0",
    "efficientdet-lite1",
    "efficientdet-lite2",
    "goalmap",
    "http",
    "huggingface-captioner",
    "huggingface-detector",
    "onnx-detector",
    "onnx-landmarks",
    "process",
    "reference-detector",
    "social-force",
}
"""Systems with a file of tests each."""


def test_every_family_is_tested() -> None:
    assert {spelling.partition("(")[0] for spelling in SPELLINGS.values()} == set(systems()) - ELSEWHERE


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import sys, instar.systems as s; s.systems(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"mediapipe", "ai_edge_litert"} & set(done.stdout.split())


@pytest.mark.parametrize("name", SPELLINGS)
class TestContract:
    def test_one_answer_of_its_kind_per_input(self, name: str) -> None:
        found = need(name)
        inputs = [astronaut(), plain(60, 40), astronaut().warped(Warp.mirror((512, 512), "h"))]
        answers = found.answer(inputs, [0] * 3)
        assert all(isinstance(answer, output_kinds()[found.kind]) for answer in answers), answers

    def test_batch_and_order_do_not_matter(self, name: str) -> None:
        """Twice the same, crops of it, and a plain one between: no answer depends on what came before."""
        found = need(name)
        whole = astronaut()
        crop = Image(np.ascontiguousarray(whole.pixels[:400, 20:420]))
        inputs = [whole, whole, crop, plain(60, 40), whole, crop]
        together = found.answer(inputs, [0] * len(inputs))
        for one, answer in zip(reversed(inputs), reversed(together), strict=True):
            assert same(found.answer([one], [0])[0], answer)
        again = system(SPELLINGS[name])
        assert again.fingerprint == found.fingerprint
        assert same(again.answer([crop], [0])[0], together[2])  # two loaded in one process
        again.close()

    @pytest.mark.parametrize(
        ("size", "values"),
        [((1, 1), [0]), ((1, 50), [255]), ((50, 1), [127]), ((3, 2), [0, 127, 255]), ((3000, 2000), [127])],
        ids=str,
    )
    def test_any_size(self, name: str, size: tuple[int, int], values: list[int]) -> None:
        """A plain image is the same to a model in any size: every shade is asked about in one of them."""
        found = need(name)
        for value in values:
            [answer] = found.answer([plain(*size, value)], [0])
            if found.kind == "poses":
                assert isinstance(answer, Poses)
                assert len(answer) == 0
            else:
                assert isinstance(answer, Zones)
                assert answer.size == size

    def test_input_untouched_and_layout_free(self, name: str) -> None:
        found = need(name)
        whole = astronaut()
        before = whole.content_hash()
        view = Image(np.asfortranarray(whole.pixels))
        a, b = found.answer([whole, view], [0, 0])
        assert same(a, b)
        assert whole.content_hash() == before


# --- Holistic --------------------------------------------------------------------------------------


def holistic_points(name: str = "mediapipe-holistic") -> tuple[Poses, Image]:
    image = astronaut()
    [answer] = need(name).answer([image], [0])
    assert isinstance(answer, Poses)
    return answer, image


@pytest.mark.parametrize(
    ("name", "bones_name"),
    [
        ("mediapipe-holistic", "mediapipe-holistic"),
        ("mediapipe-holistic-lite", "mediapipe-holistic-468"),
        ("mediapipe-holistic-heavy", "mediapipe-holistic-468"),
    ],
)
def test_holistic_finds_the_astronaut(name: str, bones_name: str) -> None:
    found, _ = holistic_points(name)
    bones = found.skeleton
    assert bones == skeleton(bones_name)
    assert len(found) == 1
    place = dict(zip(bones.landmarks, found.points[0], strict=True))
    assert np.hypot(*(place["nose"] - (222, 126))) < 12
    assert place["left_eye"][0] > place["right_eye"][0]  # her own left
    assert place["left_shoulder"][0] > place["right_shoulder"][0]
    for part, chosen in bones.select("all"):
        there = np.isfinite(found.points[0, list(chosen)]).all()
        gone = np.isnan(found.points[0, list(chosen)]).all()
        assert there if part.name in ("body", "face") else gone, part.name  # gloves hide the hands
    assert 0.5 < found.scores[0] <= 1
    assert 0.9 < found.visibility[0, bones.index("nose")] <= 1
    assert found.visibility[0, bones.index("left_ankle")] < 0.2


def test_holistic_in_the_mirror() -> None:
    found, image = holistic_points()
    flip = Warp.mirror(image.size, "h")
    [mirrored] = need("mediapipe-holistic").answer([image.warped(flip)], [0])
    assert isinstance(mirrored, Poses)
    names = ["nose", "left_eye", "right_eye", "left_shoulder", "right_shoulder"]
    chosen = [found.skeleton.index(name) for name in names]
    face = [i for part, indices in found.skeleton.select("face") for i in indices]
    off = np.hypot(*(mirrored.warped(flip).points[0] - found.points[0]).T)
    assert off[chosen].max() < 15  # shoulders under a collar; they are 190 apart
    assert off[face].max() < 5
    unswapped = np.hypot(*(flip.points(mirrored.points[0]) - found.points[0]).T)
    assert unswapped[chosen[1:]].min() > 25


def test_holistic_is_the_first_answer_of_a_new_one() -> None:
    """MediaPipe's own object remembers where face and hands were; this one must not, and be the same else."""
    need("mediapipe-holistic")
    from mediapipe.python.solutions.holistic import Holistic

    image = astronaut()
    ours = system("mediapipe-holistic")
    ours.answer([image], [0])
    [second] = ours.answer([image], [0])
    with Holistic(static_image_mode=True) as fresh:
        theirs = fresh.process(image.pixels)
    assert isinstance(second, Poses)
    expected = [
        (p.x * 512, p.y * 512) for part in (theirs.pose_landmarks, theirs.face_landmarks) for p in part.landmark
    ]
    points = second.points[0]
    assert np.array_equal(points[np.isfinite(points[:, 0])], np.array(expected, np.float32))


def test_a_faint_person_scores_less_than_whom_holistic_answers_with_by_itself() -> None:
    """So that a margin of score has something to find, and a confidence of 0.5 finds whom Holistic finds."""
    need("mediapipe-holistic")
    with_faint, by_itself = system("mediapipe-holistic"), system("mediapipe-holistic(detection=0.5, tracking=0.5)")

    def people(left: int) -> list[Any]:
        """Both answers about the astronaut from a column on."""
        image = Image(np.ascontiguousarray(astronaut().pixels[:, left:]))
        return [each.answer([image], [0])[0] for each in (with_faint, by_itself)]

    faint, nobody = people(256)
    assert len(nobody.scores) == 0
    assert [0.3 <= score < 0.5 for score in faint.scores] == [True]
    alike, sure = people(0)
    assert [score >= 0.5 for score in sure.scores] == [True]
    assert same(alike, sure), "fainter candidates change nothing about whom Holistic finds by itself"


def test_hands_of_holistic_are_the_persons_own() -> None:
    found = need("mediapipe-holistic")
    files = sorted(shared("data/lsp").rglob("*.jpg"))[:40]
    near = []
    for answer in found.answer([read_image(file) for file in files], [0] * len(files)):
        assert isinstance(answer, Poses)
        for points in answer.points:
            index = answer.skeleton.index
            for mine, other in (("left", "right"), ("right", "left")):
                wrists = [points[index(f"{side}_wrist")] for side in (mine, other)]
                [(_, landmarks)] = answer.skeleton.select(f"{mine}_hand")
                hand = points[landmarks[0]]
                if np.isfinite(hand).all():
                    near.append(np.hypot(*(hand - wrists[0])) < np.hypot(*(hand - wrists[1])))
    assert len(near) > 5
    assert np.mean(near) > 0.8


# --- hands -----------------------------------------------------------------------------------------


def hand_photo(name: str) -> Image:
    return read_image(shared(f"data/hands/{name}"))


def hands_in(name: str, image: Image) -> Poses:
    [answer] = need(name).answer([image], [0])
    assert isinstance(answer, Poses)
    return answer


def sides_of(answer: Poses) -> list[str]:
    """Which hand each subject is: one part is there, the other is not."""
    return [
        part.name
        for points in answer.points
        for part, chosen in answer.skeleton.select("all")
        if np.isfinite(points[list(chosen)]).all() and np.isnan(np.delete(points, chosen, 0)).all()
    ]


@pytest.mark.parametrize("photo", ["00000355", "00017620", "00032915", "00082740", "00098035", "00115300"])
def test_sides_are_the_persons_own_and_change_in_the_mirror(photo: str) -> None:
    """FreiHAND shows right hands alone."""
    image = hand_photo(f"freihand/{photo}.jpg")
    flip = Warp.mirror(image.size, "h")
    there, back = (hands_in("mediapipe-hands-sides", one) for one in (image, image.warped(flip)))
    assert sides_of(there) == ["right_hand"]
    assert sides_of(back) == ["left_hand"]
    assert sides_of(back.warped(flip)) == ["right_hand"]
    plain = hands_in("mediapipe-hands", image)
    assert plain.skeleton.name == "hand-21"
    assert np.array_equal(there.points[:, 21:], plain.points)
    assert np.array_equal(there.scores, plain.scores)
    assert there.scores[0] >= 0.5, "that of palm and hand, not how sure it is of the side"


def test_two_hands_side_by_side() -> None:
    photo = hand_photo("onehand10k/1402.jpg")
    width, height = photo.size
    mirrored = photo.warped(Warp.mirror(photo.size, "h"))
    both = Image(np.concatenate([photo.pixels, mirrored.pixels], 1))
    found = hands_in("mediapipe-hands-sides", both)
    assert sorted(sides_of(found)) == ["left_hand", "right_hand"]
    for hand, side in zip(found.points, sides_of(found), strict=True):
        alone = hands_in("mediapipe-hands-sides", photo if side == "right_hand" else mirrored).points[0]
        moved = alone + (0 if side == "right_hand" else [width, 0])
        assert np.nanmax(np.hypot(*(hand - moved).T)) < 0.05 * height
    assert len(hands_in("mediapipe-hands", both)) == 2
    assert len(system("mediapipe-hands(max_hands=1)").answer([both], [0])[0]) == 1  # type: ignore[arg-type]


def test_a_hand_cut_by_the_border_goes_on_beyond_it() -> None:
    photo = hand_photo("freihand/00000355.jpg")
    whole = hands_in("mediapipe-hands", photo).points[0]
    for width, outside in ((137, 5), (128, 7)):
        [cut] = hands_in("mediapipe-hands", Image(photo.pixels[:, :width])).points
        assert (cut[:, 0] > width).sum() == pytest.approx(outside, abs=1)
        assert np.median(np.hypot(*(cut - whole).T)) < 6


@pytest.mark.parametrize("name", ["holistic-hands", "mediapipe-hands", "mediapipe-hands-sides"])
def test_no_hand_is_nobody(name: str) -> None:
    giraffe = read_image(shared("data/coco-mini/images/000000163497.jpg"))
    assert len(hands_in(name, giraffe)) == 0


def test_a_side_that_is_wrong_is_a_hand_lost(tmp_path: Path) -> None:
    """A mirrored left hand is a right one: no relation has to know of it."""
    image = hand_photo("onehand10k/1402.jpg")

    def stubborn(pixels: npt.NDArray[np.uint8]) -> Poses:
        found = hands_in("mediapipe-hands-sides", Image(pixels))
        points = found.points.reshape(-1, 2, 21, 2)
        right = np.stack([np.full_like(points[:, 0], np.nan), np.fmax(points[:, 0], points[:, 1])], 1)
        return Poses.from_array(right.reshape(-1, 42, 2), skeleton=found.skeleton, scores=found.scores)

    data = Dataset("one", "", lambda: iter([Case("a", input=image)]))
    need("mediapipe-hands-sides")
    right, wrong = (
        instar.run(tried, "mirror(h)", data, out=tmp_path / name, workers=0).verdicts()
        for name, tried in (("right", SPELLINGS["mediapipe-hands-sides"]), ("wrong", stubborn))
    )
    told = {target: severity for target, severity in right.select("target", "severity").iter_rows() if severity}
    assert set(told) == {"0/right_hand"}
    assert told["0/right_hand"] < 0.1
    assert dict(wrong.select("target", "severity").iter_rows())["0/right_hand"] == np.inf


def test_a_faint_hand_scores_less_than_what_mediapipe_answers_with_by_itself() -> None:
    """The palm of one photo is faint, the hand model doubts a second hand of the other; what is sure is the same."""
    with_faint, by_itself = need("mediapipe-hands"), system("mediapipe-hands(detection=0.5, tracking=0.5)")
    for photo, sure in (("freihand/00065475.jpg", 0), ("rhd/11111.png", 1)):
        [hands], [own] = (each.answer([hand_photo(photo)], [0]) for each in (with_faint, by_itself))
        assert isinstance(hands, Poses) and isinstance(own, Poses)
        certain = hands.scores >= 0.5
        assert (certain.sum(), len(certain)) == (sure, sure + 1)
        assert np.array_equal(hands.points[certain], own.points) and np.array_equal(hands.scores[certain], own.scores)


@pytest.mark.parametrize("photo", ["panoptic/ex2_2.flv_000040_l.jpg", "rhd/01111.png", "freihand/00000355.jpg"])
def test_hands_of_holistic_each_a_subject(photo: str) -> None:
    """Both, one, and none where it finds no person."""
    image = hand_photo(photo)
    hands = hands_in("holistic-hands", image)
    [person] = system("mediapipe-holistic").answer([image], [0])
    assert isinstance(person, Poses)
    there = [
        points[list(chosen)]
        for points in person.points
        for _, chosen in person.skeleton.select("hands")
        if np.isfinite(points[list(chosen)]).all()
    ]
    assert hands.skeleton.name == "hand-21"
    assert np.array_equal(hands.points, np.reshape(there, (-1, 21, 2)))
    assert hands.scores.tolist() == person.scores.tolist() * len(there)
    assert len(there) == {"panoptic": 2, "rhd": 1, "freihand": 0}[photo.partition("/")[0]]


# --- Holistic's weights ----------------------------------------------------------------------------


def test_missing_weights_say_what_to_pull(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("mediapipe-holistic")
    monkeypatch.setenv("INSTAR_MODELS", str(tmp_path))
    with pytest.raises(MissingExtra, match="instar models pull pose-landmark-heavy"):
        system("mediapipe-holistic(complexity=2)")
    with pytest.raises(MissingExtra, match="instar models pull pose-landmark-lite"):
        system("mediapipe-holistic(complexity=0)")


def test_fingerprints_differ_with_the_configuration() -> None:
    need("mediapipe-holistic")
    a, b, c = (
        system(s).fingerprint
        for s in ("mediapipe-holistic", "mediapipe-holistic(detection=0.6)", "mediapipe-holistic(refine_face=true)")
    )
    assert len({a, b, c}) == 3


def test_a_failed_graph_is_built_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    need("mediapipe-selfie")
    from mediapipe.python import solution_base

    ours = system("mediapipe-selfie")
    image = astronaut()
    [before] = ours.answer([image], [0])

    def fail(self: object, data: object) -> None:
        raise RuntimeError("the graph is broken")

    with monkeypatch.context() as patch:
        patch.setattr(solution_base.SolutionBase, "process", fail)
        with pytest.raises(RuntimeError, match="the graph is broken"):
            ours.answer([image], [0])
    assert same(ours.answer([image], [0])[0], before)


def test_close_twice() -> None:
    need("mediapipe-selfie")
    ours = system("mediapipe-selfie")
    ours.close()
    ours.close()


def _in_worker(spelling: str) -> tuple[str, list[float]]:
    found = system(spelling)
    [answer] = found.answer([astronaut()], [0])
    return found.fingerprint, content(answer).astype(float).ravel()[:500].tolist()


@pytest.mark.parametrize("name", ["mediapipe-holistic", "movenet"])
def test_in_a_worker_process(name: str) -> None:
    here = need(name)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        fingerprint, points = pool.submit(_in_worker, SPELLINGS[name]).result(timeout=600)
    assert fingerprint == here.fingerprint
    [answer] = here.answer([astronaut()], [0])
    assert np.array_equal(points, content(answer).astype(float).ravel()[:500], equal_nan=True)


# --- what is missing -------------------------------------------------------------------------------


def _without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    for room in ("instar.systems.mediapipe", "instar.systems.system", "instar.systems.models"):
        monkeypatch.setattr(sys.modules[room], "find_spec", lambda wanted: None if wanted == name else real(wanted))
    monkeypatch.setitem(sys.modules, name, None)


def test_without_mediapipe(monkeypatch: pytest.MonkeyPatch) -> None:
    _without("mediapipe", monkeypatch)
    with pytest.raises(MissingExtra, match=r"pip install 'instar\[mediapipe\]'"):
        system("mediapipe-holistic")
    monkeypatch.setattr(sys.modules["instar.systems.mediapipe"].sys, "version_info", _Version((3, 13)))
    with pytest.raises(MissingExtra, match=r"needs Python 3.11 or 3.12; this is Python 3.13"):
        system("mediapipe-hands")


class _Version(tuple):  # type: ignore[type-arg]
    major, minor = 3, 13


def test_mediapipe_beside_a_protobuf_that_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install onnx` brings one, and all that was said was: 'FieldDescriptor' object has no attribute 'label'."""
    room = sys.modules["instar.systems.mediapipe"]

    def fails() -> None:
        raise AttributeError("'FieldDescriptor' object has no attribute 'label'")

    monkeypatch.setattr(room, "version", lambda name: "7.36.2")
    for beside, extras in (("", "mediapipe"), ("onnx", "mediapipe,numerics")):
        monkeypatch.setattr(room, "find_spec", lambda name, beside=beside: name == beside or None)
        with pytest.raises(
            MissingExtra, match=rf"protobuf below 5, and 7.36.2 is .*: pip install 'instar\[{extras}\]'"
        ):
            room._Graph(fails, [])
    monkeypatch.setattr(room, "version", lambda name: "4.25.9")
    with pytest.raises(AttributeError):
        room._Graph(fails, [])


def test_without_litert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tflite").write_bytes(b"not a model")
    _without("ai_edge_litert", monkeypatch)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(MissingExtra, match=r"pip install 'instar\[litert\]'"):
        system(f'movenet("{tmp_path / "a.tflite"}")')


def test_movenet_without_its_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no model file .*nowhere\.tflite"):
        system(f'movenet("{tmp_path}/nowhere.tflite")')


def test_movenet_with_a_file_that_is_no_model(tmp_path: Path) -> None:
    module("ai_edge_litert")
    (tmp_path / "a.tflite").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="not a model LiteRT can load"):
        system(f'movenet("{tmp_path / "a.tflite"}")')


def test_movenet_with_another_model() -> None:
    module("ai_edge_litert")
    model("selfie-multiclass")
    from instar.systems import model_path

    with pytest.raises(ValueError, match="MoveNet single-pose"):
        system(f'movenet("{model_path("selfie-multiclass")}")')


# --- MoveNet and zones -----------------------------------------------------------------------------


def test_movenet_finds_the_astronaut_at_any_shape() -> None:
    found = need("movenet")
    image = astronaut()
    wide = Image(np.ascontiguousarray(np.pad(image.pixels, ((0, 0), (300, 100), (0, 0)))))
    tall = Image(np.ascontiguousarray(np.pad(image.pixels, ((250, 0), (0, 0), (0, 0)))))
    for picture, moved in ((image, (0, 0)), (wide, (300, 0)), (tall, (0, 250))):
        [answer] = found.answer([picture], [0])
        assert isinstance(answer, Poses)
        nose = answer.points[0, answer.skeleton.index("nose")]
        assert np.hypot(*(nose - (222, 126) - np.array(moved))) < 15
        assert answer.scores[0] == 1 and 0.11 < answer.visibility[0].mean() < 1, "the floor decided that it is there"


@pytest.mark.parametrize("size", [(640, 480), (157, 105), (1, 50), (3000, 2000), (7, 7)])
def test_letterbox(size: tuple[int, int]) -> None:
    warp, (width, height) = fitting(size, (192, 192), "middle")
    (left, top), (right, bottom) = warp.points([[0.0, 0.0], [float(size[0]), float(size[1])]])
    assert (right - left, bottom - top) == pytest.approx((width, height))
    assert (left, top) == pytest.approx((192 - right, 192 - bottom))  # the same margin on both sides
    assert max(width, height) == 192
    back = warp.inverse.points(warp.points([[0.3, 0.7]]))
    assert back[0] == pytest.approx((0.3, 0.7))


def test_zones_of_the_astronaut() -> None:
    [zones] = need("selfie-multiclass").answer([astronaut()], [0])
    assert isinstance(zones, Zones)
    assert set(zones.names) == {"background", "hair", "skin", "clothes", "person"}
    places = {"hair": (222, 35), "skin": (222, 140), "clothes": (180, 320), "background": (330, 60)}
    for zone, (x, y) in places.items():
        assert zones.mask(zone)[y, x] == 255, zone
        assert zones.mask("person")[y, x] == (0 if zone == "background" else 255)
    assert (zones.mask("person") == 255 - zones.mask("background")).all()


def test_person_of_the_astronaut() -> None:
    [zones] = need("mediapipe-selfie").answer([astronaut()], [0])
    assert isinstance(zones, Zones)
    assert set(zones.names) == {"background", "person"}
    assert zones.mask("person")[140, 222] == 255
    assert zones.mask("background")[60, 330] == 255


# --- chatter ---------------------------------------------------------------------------------------


def test_quiet_keeps_what_is_not_chatter(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet():
        os.write(2, b"W0000 1 inference_feedback_manager.cc:114] Feedback manager\nE0000 really wrong\n")
    assert capfd.readouterr().err == "E0000 really wrong\n"


def test_loading_prints_nothing() -> None:
    need("mediapipe-hands")
    code = "from instar.systems import system; system('mediapipe-hands'); system('mediapipe-selfie')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
