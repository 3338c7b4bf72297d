"""Classification from images to tables: a right classifier passes, faults are caught and named, classes are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

import instar
from instar.api import nothing_to_tell
from instar.cli import app
from instar.datasets import dataset
from instar.outputs.labels import Labels
from instar.relations import relations
from instar.report.findings import findings
from instar.report.marks import marked_pairs
from instar.report.sentences import detail_words
from instar.systems import system
from instar.tasks.classification.panel import PANELS, class_changes, confusions, correct, remarks
from tests.missing import module, shared
from tests.tasks.classification.classifiers import COLOURS, painted, right

HERE = "tests.tasks.classification.classifiers"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine images in a folder per class."""
    root = tmp_path_factory.mktemp("images")
    for number in range(9):
        folder = root / list(COLOURS)[number % 3]
        folder.mkdir(exist_ok=True)
        cv2.imwrite(str(folder / f"{number}.png"), painted(number)[..., ::-1])
    return root


def run(name: str, images: Path, out: Path, rules: str = "labels") -> instar.Run:
    return instar.run(f"{HERE}:{name}", rules, images, out=out, workers=0)


@pytest.mark.parametrize("name", ["right", "by_table"])
def test_a_right_classifier_violates_nothing(name: str, images: Path, tmp_path: Path) -> None:
    tested = run(name, images, tmp_path / "run")
    assert tested.manifest.system.kind == "labels" and len(tested.manifest.rules) == 14
    assert tested.rates()["violated"].sum() == 0
    assert cast(float, tested.verdicts()["severity"].max()) < 0.1


def test_a_class_that_changes_is_caught_and_named(images: Path, tmp_path: Path) -> None:
    tested = run("hates_mirrors", images, tmp_path / "run", "mirror(h)+gamma(0.5)")
    verdicts = tested.verdicts().filter(rule="mirror(h) => class_kept")
    changed = verdicts.filter(kind="class")
    assert changed.height and (changed["severity"] > 1).all()
    assert set(tested.rates().filter(rule="gamma(0.5) => class_kept")["violated"]) == {0}
    table = class_changes(tested).row(0, named=True)
    assert table["name"] == "mirror(h)" and table["changed"] == changed.height
    assert confusions(tested)["pairs"].sum() == changed.height


def test_verdicts_of_an_earlier_version_say_how_to_judge_again(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of such a run ended with a traceback about a column."""
    tested = run("hates_mirrors", images, tmp_path / "run", "mirror(h)")
    whole = instar.Run.verdicts
    monkeypatch.setattr(instar.Run, "verdicts", lambda *given: whole(*given).drop("follow_up_score"))
    with pytest.raises(ValueError, match=r"Delete the folder .+verdicts/default: `instar judge .+` then judges"):
        class_changes(tested)


def test_near_ties_are_counted_beside_what_changed(images: Path, tmp_path: Path) -> None:
    """What the margin forgives is no change of the class, and the table must not deny that another one comes first."""

    def undecided(pixels: np.ndarray) -> Labels:
        darker = pixels.mean() < 100
        return Labels.from_scores(["disc", "bar"], [0.52, 0.48] if darker else [0.48, 0.52])

    tested = instar.run(undecided, "gamma(5)", images, out=tmp_path / "run", workers=0)
    assert class_changes(tested).select("pairs", "differs", "changed").row(0) == (9, 9, 0)
    (near, *_) = remarks(tested, "default")
    assert near.words.replace("\xa0", " ").startswith(
        "In 9 of 9 pairs another class comes first, in none of them by more than the margin of near ties (20 % of the "
        "score): none counts as changed. No class ever leads"
    )
    assert nothing_to_tell(tested) == "most pairs are near ties, which the judging forgives, and no rule is violated"
    strict = tested.judge(margin=0)
    assert class_changes(tested, judging=strict).select("differs", "changed").row(0) == (9, 9)
    assert not tested.answers(strict).undecided


def test_who_names_no_class_any_more_has_lost_the_whole_score(images: Path, tmp_path: Path) -> None:
    """Such pairs have no second score: left out of the median, they would make silence look like certainty."""

    def silent_in_the_dark(pixels: np.ndarray) -> Labels:
        return Labels.from_scores([] if pixels.mean() < 60 else ["disc"])

    tested = instar.run(silent_in_the_dark, "gamma(5)", images, out=tmp_path / "run", workers=0)
    assert class_changes(tested).select("pairs", "changed", "median_fall").row(0) == (9, 9, 1.0)


def test_rules_that_change_as_many_classes_are_in_the_order_of_what_they_take(images: Path, tmp_path: Path) -> None:
    """They were in the order in which they were asked, which is drawn."""

    def less_sure_in_the_dark(pixels: np.ndarray) -> Labels:
        return Labels.from_scores(["disc", "none"], [0.6 + pixels.mean() / 1000, 0.1])

    suite = "mirror(v) + gamma(3) + mirror(h) + gamma(2)"
    tested = instar.run(less_sure_in_the_dark, suite, images, out=tmp_path / "run", workers=0)
    assert class_changes(tested)["name"].to_list() == ["gamma(3)", "gamma(2)", "mirror(h)", "mirror(v)"]


def test_a_score_that_falls_is_a_severity_below_one(images: Path, tmp_path: Path) -> None:
    tested = run("unsure_in_the_dark", images, tmp_path / "run", "gamma(2)")
    severities = tested.verdicts()["severity"]
    assert ((severities > 0.3) & (severities < 1)).all()
    assert tested.rates()["violated"].sum() == 9 and tested.rates(threshold=1)["violated"].sum() == 0


def test_nothing_named_is_not_judged(images: Path, tmp_path: Path) -> None:
    tested = run("nothing", images, tmp_path / "run", "mirror(h)")
    assert tested.verdicts()["severity"].is_null().all()
    assert tested.rates()["judged"].sum() == 0


def test_the_second_best_class_may_be_allowed(images: Path, tmp_path: Path) -> None:
    tested = run("hates_mirrors", images, tmp_path / "run", "mirror(h)")
    judging = tested.judge(top=3)
    assert tested.rates(judging=judging)["violated"].sum() == 0 < tested.rates()["violated"].sum()


def test_classes_of_folders_are_the_truth(images: Path, tmp_path: Path) -> None:
    opened = dataset(f'class-folders("{images}")')
    assert {case.id: case.truth.classes for case in opened.cases()}["disc/0.png"] == ("disc",)  # type: ignore[attr-defined]
    tested = instar.run(f"{HERE}:right", "mirror(h)", opened, out=tmp_path / "run", workers=0)
    assert correct(tested).select("cases", "top_1").rows() == [(9, 1.0), (9, 1.0)]
    with pytest.raises(ValueError, match="one sub-folder per class"):
        dataset(f'class-folders("{images / "disc"}")')


def test_classes_of_coco_by_the_space_they_take() -> None:
    opened = dataset(f'coco-classes("{shared("data/coco-mini/annotations/instances_train2017.json")}")')
    truths = [case.truth for case in opened.cases()]
    assert len(truths) == 80 and all(truth is None or isinstance(truth, Labels) for truth in truths)
    assert any(isinstance(truth, Labels) and len(truth) > 2 for truth in truths)


def test_tables_and_report(images: Path, tmp_path: Path) -> None:
    run("hates_mirrors", images, tmp_path / "run", "mirror(h)+gamma(0.5)")
    printed = CliRunner().invoke(app, ["tables", str(tmp_path / "run")])
    assert printed.exit_code == 0, printed.output
    assert "no near ties" in " ".join(printed.output.split()) and "mirror(h)" in printed.output
    written = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "--out", str(tmp_path / "report.html")])
    assert written.exit_code == 0, written.output
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(words in page for words in ("Which classes change", "first class differs", "changed beyond the margin"))


def classifier_file(path: Path, *, softmax: bool) -> Path:
    """A real ONNX file: the mean colour of the image, weighed into three scores."""
    onnx = module("onnx")
    helper, numbers = onnx.helper, onnx.numpy_helper.from_array
    weights = np.array([[3, -1, -1], [-1, 3, -1], [-1, -1, 3]], np.float32).T
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["row"]),
        helper.make_node("MatMul", ["row", "weights"], ["logits" if softmax else "scores"]),
    ]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["logits"], ["scores"], axis=1))
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [1, 3])],
        [numbers(weights, "weights")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("softmax", [False, True])
def test_a_classifier_in_an_onnx_file(softmax: bool, images: Path, tmp_path: Path) -> None:
    module("onnxruntime")
    model = classifier_file(tmp_path / "model.onnx", softmax=softmax)
    (tmp_path / "names.txt").write_text("disc\nsquare\nbar\n")
    colours = "mean=(128, 128, 128), std=(64, 64, 64)"
    spelling = f'onnx-classifier("{model}", names="{tmp_path / "names.txt"}", {colours})'
    loaded = system(spelling)
    answers = loaded.answer([instar.Image(painted(number)) for number in range(3)], [0] * 3)
    assert [answer.classes[0] for answer in answers] == list(COLOURS)  # type: ignore[union-attr]
    assert all(abs(float(answer.scores.sum()) - 1) < 1e-4 for answer in answers)  # type: ignore[union-attr]
    tested = instar.run(spelling, "mirror(h)+gamma(0.5)", images, out=tmp_path / "run", workers=1)
    assert tested.rates()["violated"].sum() == 0


def test_names_that_do_not_fit_are_told(tmp_path: Path) -> None:
    module("onnxruntime")
    model = classifier_file(tmp_path / "model.onnx", softmax=True)
    (tmp_path / "names.txt").write_text("disc\nsquare\n")
    loaded = system(f'onnx-classifier("{model}", names="{tmp_path / "names.txt"}")')
    with pytest.raises(ValueError, match="returns 3 scores, and names has 2 classes"):
        loaded.predict([instar.Image(painted(0))], [0])


@pytest.mark.parametrize(
    ("most", "left_out"),
    [
        (20, ""),
        (
            2,
            ". There are 5 combinations of an expected class and what comes first, of which the most frequent 2 are "
            "shown",
        ),
    ],
)
def test_the_table_of_classes_says_how_many_of_them_it_shows(
    most: int, left_out: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty of nineteen cannot be shown: where all are there, none is left out."""
    monkeypatch.setattr("instar.tasks.classification.panel.MOST_CONFUSIONS", most)
    tested = run("hates_mirrors", images, tmp_path / "run", "mirror(h)")
    tables = PANELS["classes"].tables
    assert tables is not None
    content = tables([tested], "default", 0.05)
    assert content is not None
    captions = [table.caption for table in content.tables if table.caption.startswith("Which class comes")]
    assert captions == [
        "Which class comes first in the place of the expected one, and in how many pairs of all rules, most frequent "
        f"first{left_out}"
    ]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images with a bright left half, in a folder of that name, and one with a bright right half."""
    root = tmp_path_factory.mktemp("sides")
    for number, name in enumerate(("left", "left", "left", "right")):
        pixels = np.full((40, 60, 3), 40 + number, np.uint8)
        pixels[:, slice(0, 30) if name == "left" else slice(30, 60)] = 200
        (root / name).mkdir(exist_ok=True)
        cv2.imwrite(str(root / name / f"{number}.png"), pixels)
    return root


@pytest.mark.parametrize(("name", "source", "mirrored"), [("side", 1.0, 1.0), ("always_left", 0.75, 0.25)])
def test_the_true_side_is_exchanged_in_a_mirror(
    name: str, source: float, mirrored: float, sides: Path, tmp_path: Path
) -> None:
    """An exact classifier was 0 % right of mirrored images, and a constant one as right as of the sources."""
    opened = dataset(f'class-folders("{sides}")')
    tested = instar.run(f"{HERE}:{name}", "mirror(h)+gamma(0.9)", opened, out=tmp_path / "run", workers=0)
    right = dict(correct(tested).select("follow_up", "top_1").rows())
    assert right == {"source": source, "mirror(h)": mirrored, "gamma(0.9)": source}
    assert correct(tested)["cases"].to_list() == [4, 4, 4]


def test_who_keeps_the_side_in_a_mirror_is_told_what_was_expected(sides: Path, tmp_path: Path) -> None:
    """`left still comes first` stood under each violation, and a class that no source had was said to change."""
    tested = run("always_left", sides, tmp_path / "run", "mirror(h)")
    assert tested.verdicts().select("kind", "source_class", "exchanged", "first_class").unique().rows() == [
        ("side", "left", "right", "left")
    ]
    assert confusions(tested).rows() == [("right", "left", 4)]
    shown = CliRunner().invoke(app, ["show", str(tested.folder)], env={"COLUMNS": "200"}).output
    assert "left and right of the class are not exchanged in the mirrored image (side)" in shown
    assert (
        "right was expected of the mirrored image, with the score 0.80 of left in the source; it has 0.20, and left "
        "comes first"
    ) in shown
    assert "still comes first" not in shown
    printed = CliRunner().invoke(app, ["tables", str(tested.folder)], env={"COLUMNS": "200"}).output
    assert re.search(r"expected +first instead +pairs\nright +left +4", printed)
    (relation, verdict) = relations()["class_kept"], tested.verdicts().row(0, named=True)
    assert detail_words(relation, verdict) == [
        "left comes first in the source, left in the follow-up",
        "right was expected of the mirrored image",
    ]


def test_a_pair_in_which_the_sides_change_places_is_no_change(sides: Path, tmp_path: Path) -> None:
    tested = run("side", sides, tmp_path / "run", "mirror(h)")
    assert tested.rates()["violated"].sum() == 0
    (pair, *_) = marked_pairs(tested.store, tested.verdicts().to_dicts())
    assert pair is not None
    assert pair.sentences == (
        "right was expected of the mirrored image, with the score 0.90 of left in the source; it comes first",
    )
    assert {part.role for part in (*pair.source, *pair.follow_up) if part.role} == {"kept"}


def test_the_other_side_is_known_from_the_whole_run(sides: Path, tmp_path: Path) -> None:
    """The two answers of a pair need not name it."""
    black = sides / "left" / "black.png"
    cv2.imwrite(str(black), np.zeros((40, 60, 3), np.uint8))
    tested = run("always_left_alone", sides, tmp_path / "run", "mirror(h)")
    black.unlink()
    verdict = tested.verdicts().filter(case="left/0.png").row(0, named=True)
    assert verdict["kind"] == "side" and verdict["severity"] == 2
    (pair,) = marked_pairs(tested.store, [verdict])
    assert pair is not None and pair.sentences[0].startswith("right was expected of the mirrored image")


@pytest.mark.parametrize(
    ("classes", "nearest"),
    [
        (("LEFTS", "middle"), " The nearest are 'LEFTS' of the system and 'left' of the dataset."),
        (("1", "toilet"), ""),
        (("left", "middle"), None),
    ],
)
def test_a_classifier_of_other_classes_than_the_dataset(
    classes: tuple[str, str], nearest: str | None, sides: Path, tmp_path: Path
) -> None:
    """0 % right of everything stood there without a word of why."""

    def answer(pixels: np.ndarray) -> dict[str, float]:
        return dict(zip(classes, (0.7, 0.3), strict=True))

    opened = dataset(f'class-folders("{sides}")')
    tested = instar.run(answer, "gamma(0.9)", opened, out=tmp_path / "run", workers=0)
    words = (
        "No class that the system names is a class of the dataset, so that no answer counts as right: it names "
        f"{classes[0]} and {classes[1]}; the dataset has left and right.{nearest}"
    )
    for command in ("tables", "show"):
        output = " ".join(CliRunner().invoke(app, [command, str(tested.folder)]).output.split())
        assert ("No class that the system names" in output) == (nearest is not None)
        assert nearest is None or words in output


def test_a_classifier_that_is_never_right_is_told(images: Path, tmp_path: Path) -> None:
    """Its list of names begins at the wrong place: steady, and 0 % right."""
    following = dict(zip(COLOURS, [*COLOURS][1:] + [*COLOURS][:1], strict=True))

    def off_by_one(pixels: np.ndarray) -> Labels:
        answer = right(pixels)
        return Labels.from_scores([following[name] for name in answer.classes], answer.scores)

    opened = dataset(f'class-folders("{images}")')
    tested = instar.run(off_by_one, "gamma(0.9)", opened, out=tmp_path / "run", workers=0)
    (words,) = (each.words.replace("\xa0", " ") for each in findings(tested) if each.against)
    assert words == (
        "The class that comes first is right in 0 of 9 labelled source images (0 %, 95 % interval 0–30), no more than "
        "by guessing among 3 names. It is 'disc' in the place of 'bar', 'square' in the place of 'disc' and 'bar' in "
        "the place of 'square': the list of names may be in another order than the model's classes."
    )
    output = CliRunner().invoke(app, ["tables", str(tested.folder)]).output
    assert "no more than by guessing" in " ".join(output.replace("\xa0", " ").split())


@pytest.mark.parametrize("wrong", [0, 3, 5])
def test_a_classifier_that_is_right_more_often_than_a_guess_is_not_accused(
    wrong: int, images: Path, tmp_path: Path
) -> None:
    known = {painted(number).tobytes() for number in range(wrong)}

    def fair(pixels: np.ndarray) -> Labels:
        answer = right(pixels)
        return Labels.from_scores(["bar"]) if pixels.tobytes() in known else answer

    opened = dataset(f'class-folders("{images}")')
    tested = instar.run(fair, "gamma(0.9)", opened, out=tmp_path / "run", workers=0)
    assert not any("comes first is right" in each.words for each in findings(tested))


@pytest.mark.parametrize("suite", ["labels", "segmentation"])
def test_a_suite_of_another_task_is_judged_and_shown_without_its_tables(
    suite: str, images: Path, tmp_path: Path
) -> None:
    """Its rules ask any system; its panel read columns that a captioner's answers do not have, and `run` crashed."""

    def caption(image: np.ndarray) -> str:
        return "a dog on a bench"

    tested = instar.run(caption, suite, images, out=tmp_path / "run", workers=0)
    assert tested.rates().height == len(instar.suite(suite))
    for command in ("show", "tables", "report"):
        options = ["--out", str(tmp_path / "page.html")] if command == "report" else []
        done = CliRunner().invoke(app, [command, str(tested.folder), *options])
        assert done.exit_code == (2 if command == "tables" else 0), done.output
    assert "Instar" in (tmp_path / "page.html").read_text(encoding="utf-8")
