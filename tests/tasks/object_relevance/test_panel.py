"""What the report shows of object relevance, and what `instar tables` prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from instar.outputs.detections import Detections
from instar.report.findings import findings
from instar.report.section import make_section
from instar.tasks.object_relevance.analysis import object_table
from instar.tasks.object_relevance.panel import PANELS
from tests.perfect.test_object_relevance import PATCH, background_only, ran, seen

PANEL = PANELS["objects"]


def test_tables_and_figures_say_what_was_counted(tmp_path: Path) -> None:
    run = ran(background_only, tmp_path, "object-relevance/erase")
    assert PANEL.tables is not None and PANEL.of_relation is not None
    printed = PANEL.tables([run], "default", 0.05)
    assert printed is not None and printed.frames["objects"].equals(object_table(run))
    (table,) = printed.tables
    assert len(set(table.heads)) == len(table.heads), "columns of objects and of images are told apart, also in a CSV"
    rows = {row[0]: dict(zip(table.heads[1:8], row[1:8], strict=True)) for row in table.rows}
    assert rows["erase(1)"]["persists"] == "12" and rows["erase(1)"]["unreliable of found"].startswith("100")
    assert rows["erase(1)"]["of annotated"].startswith("100") and "unfound" not in rows["erase(1)"]
    assert (rows["erase(0.1)"]["annotated"], rows["erase(0.1)"]["found"]) == ("12", "0")
    assert rows["erase(0.1)"]["unreliable of found"] == rows["erase(0.1)"]["of annotated"] == "–"
    assert any("two of three follow-ups" in sentence for sentence in printed.after)
    assert any("with a score of at least 0.5" in sentence for sentence in printed.after), "the curve has no margin"
    assert {row[-2] for row in table.rows} == {"12"}, "what is still found is a share of the objects tried"
    content = PANEL.of_relation(run, make_section(run, "presence"), "default")
    assert content is not None and content.tables[0].rows == table.rows
    (chart,) = content.charts
    assert chart.title == "erase by ratio"
    points = chart.tables[chart.name]
    assert points.filter(measure="unreliable")["rate"].to_list() == [1.0, 1.0], "judged from 0.9 up"
    assert points.filter(measure="still found").height == 10


def test_a_run_without_such_rules_has_none(tmp_path: Path) -> None:
    run = ran(seen, tmp_path, "mirror(h)")
    assert PANEL.tables is not None and PANEL.of_relation is not None
    assert PANEL.tables([run], "default", 0.05) is None
    assert PANEL.of_relation(run, make_section(run, "detections"), "default") is None


NEXT = dict(zip(PATCH, [*PATCH][1:] + [*PATCH][:1], strict=True))


def off_by_one(pixels: np.ndarray) -> Detections:
    """Finds every object, and calls it by the next name of its list."""
    answer = seen(pixels)
    return Detections.from_xyxy(answer.boxes, [NEXT[label] for label in answer.labels], answer.scores)


def one_confused(pixels: np.ndarray) -> Detections:
    """Calls what is blue green, and everything else what it is."""
    answer = seen(pixels)
    return Detections.from_xyxy(
        answer.boxes, [{"blue": "green"}.get(each, each) for each in answer.labels], answer.scores
    )


def test_a_list_of_names_that_is_off_by_one_is_told(tmp_path: Path) -> None:
    """The detector answers in every image: what it never says is what the rules ask about."""
    sentences = findings(ran(off_by_one, tmp_path, "object-relevance/background"))
    empty = (
        "The system finds something in every source image, but in 4 of 4 cases nothing that the rules ask about, in "
        "either image, so that nothing could be judged."
    )
    assert sentences[0].words == empty
    (renamed,) = (each for each in sentences if "annotated objects" in each.words)
    assert renamed.against and renamed.words.startswith(
        "12 of 12 annotated objects have a box on them that is of another class, and none of their own: 'blue' is "
        "called 'red' (4 times), 'green' is called 'blue' (4 times) and 'red' is called 'green' (4 times). No object "
        "is found under its name."
    )


def test_a_detector_that_confuses_a_class_has_its_names_right(tmp_path: Path) -> None:
    for system in (one_confused, seen):
        sentences = findings(ran(system, tmp_path / system.__name__, "object-relevance/background"))
        assert not any("annotated objects" in each.words for each in sentences)
