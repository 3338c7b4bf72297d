"""The report: its numbers are those of the analysis, its texts stay texts, and odd runs have one too."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
import pytest

import instar
from instar.analysis import classic_table
from instar.case import Case
from instar.datasets import Dataset
from instar.image import read_image
from instar.registry import BrokenPlugin
from instar.report import write_report
from instar.report.chart import columns, printed
from instar.report.compared_figures import comparison
from instar.report.matrices import covered
from instar.report.page import Report, make_report, page, script_json
from instar.report.section import make_section, start_of
from instar.spelling import UnknownName
from instar.store import Store
from tests.browser.conftest import RULES, wobbly
from tests.missing import module
from tests.toys import _centres, _pose, rectangles, scene, steady, write_scenes

HOSTILE = "eine <b>große<b> & 'böse' 100% Datei.png"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import cv2

    folder = tmp_path_factory.mktemp("pictures")
    for number in range(8):
        pixels = cv2.cvtColor(scene(number, (160, 120)).pixels, cv2.COLOR_RGB2BGR)
        (folder / (HOSTILE if number == 3 else f"{number:02d}.png")).write_bytes(
            cv2.imencode(".png", pixels)[1].tobytes()
        )
    return folder


def run(system: Any, rules: tuple[str, ...], pictures: Path, out: Path) -> instar.Run:
    suite = instar.Suite("looks", tuple(map(instar.rule, rules)))
    return instar.run(system, suite, pictures, out=out, workers=0, zones="none")


@pytest.fixture(scope="module")
def poses(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> instar.Run:
    rules = (*RULES, "filtered(gamma(0.5), skin)", "brightness(30, 1.15)")
    return run(wobbly, rules, pictures, tmp_path_factory.mktemp("runs") / "poses")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> instar.Run:
    return run(steady, RULES, pictures, tmp_path_factory.mktemp("runs") / "steady")


@pytest.fixture(scope="module")
def made(poses: instar.Run) -> Report:
    return make_report([poses], images=6)


@pytest.fixture(scope="module")
def html(made: Report) -> str:
    module("vl_convert")
    return page(made)


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', html, re.S)
    assert found
    read: dict[str, Any] = json.loads(found[1])
    return read


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    whole = {
        name: [column["texts"][i] for i in column["at"]] if isinstance(column, dict) else column
        for name, column in table.items()
    }
    return [dict(zip(whole, values, strict=True)) for values in zip(*whole.values(), strict=True)]


def without_bundle(html: str) -> str:
    """The page without the chart library's own code."""
    longest = max(re.findall(r"<script>(.*?)</script>", html, re.S), key=len)
    return html.replace(longest, "")


# --- what it says


def test_the_numbers_are_those_of_the_analysis(poses: instar.Run, html: str) -> None:
    tables = data_of(html)["tables"]
    grid = poses.grids()["poses"]
    names = dict(poses.rules().select("rule", "name").iter_rows())
    shown = {(row["name"], row["t"]): row for row in rows(tables["poses-rates"])}
    heat = {(row["name"], row["t"]): row["rate"] for row in rows(tables["poses-heat"])}
    for t, threshold in enumerate(grid):
        for row in poses.rates(threshold).iter_rows(named=True):
            if names[row["rule"]] == "identity":
                continue
            bar = shown[names[row["rule"]], t]
            assert bar["count"] == f"{row['violated']}/{row['judged']}"
            for end in ("low", "high", "rate"):
                assert bar[end] == pytest.approx(row[end], abs=1e-6)
            assert heat[names[row["rule"]], t] == pytest.approx(row["rate"], abs=1e-6)
    curves = {(row["group"], row["t"]): row for row in rows(tables["poses-curves"])}
    for number, row in enumerate(poses.curves("poses").iter_rows(named=True)):
        if row["judged"]:
            assert curves[row["group"], number % len(grid)]["rate"] == pytest.approx(row["rate"], abs=1e-6)
    coverage = {(row["of"], row["by"], row["t"]): row for row in rows(tables["poses-coverage"])}
    for row in poses.coverage(grid[3], relation="poses").iter_rows(named=True):
        cell = coverage[names[row["of"]], names[row["by"]], 3]
        assert cell["count"] == f"{row['both']}/{row['violated']}"


def test_the_headline_changes_with_the_threshold(poses: instar.Run, html: str) -> None:
    lead = re.search(r'<div class="card lead".*?</section>', html, re.S)
    assert lead
    for t, threshold in enumerate(poses.grids()["poses"]):
        curve = poses.curves("poses").filter((pl.col("group") == "any rule") & (pl.col("threshold") == threshold))
        violated = curve["violated"][0]
        verb = "violates" if violated == 1 else "violate"
        expected = f"{violated} of {curve['judged'][0]} cases {verb} at least one of"
        step = re.search(rf'<div data-t="{t}"[^>]*>(.*?)</div>', lead[0], re.S)
        assert step and expected in step[1]


def test_advice_in_a_headline_is_spelled_as_code(pictures: Path, tmp_path: Path) -> None:
    """A headline stands above the slider, and beside the rates of each of several runs."""

    def weak(pixels: np.ndarray) -> instar.Detections:
        answer = rectangles(pixels)
        return instar.Detections.from_xyxy(answer.boxes, answer.labels, 0.15 * answer.scores)

    runs = [run(system, ("mirror(h)",), pictures, tmp_path / system.__name__) for system in (weak, rectangles)]
    for shown in (runs[:1], runs):
        lead = re.search(r'<div class="card lead".*?</section>', page(make_report(shown, images=0)), re.S)
        assert lead and "<code>--set confidence=" in lead[0] and "`" not in lead[0]


def test_a_threshold_given_joins_the_grid(poses: instar.Run) -> None:
    section = make_report([poses], threshold=0.15, images=0).runs[0].parts[0].section
    assert section.grid[section.start] == 0.15
    assert (
        section.at(section.start)["violated"].sum()
        == poses.rates(0.15).filter(pl.col("rule") != "identity => poses")["violated"].sum()
    )


@pytest.mark.parametrize(("wanted", "place"), [(0.2, 1), (0.26, 2), (float("inf"), 3), (90.0, 2), (0.0, 0)])
def test_the_start_is_the_nearest_threshold(wanted: float, place: int) -> None:
    assert start_of((0.1, 0.2, 0.3, float("inf")), [wanted]) == place


def test_the_first_pairs_are_violated_and_vary(made: Report, poses: instar.Run) -> None:
    pairs, section = made.runs[0].parts[0].pairs, made.runs[0].parts[0].section
    violated = section.at(section.start).filter(pl.col("violated") > 0)["rule"].to_list()
    assert len(pairs) == 6
    assert all(pair.last >= section.start for pair in pairs), "all of them are seen where the page starts"
    assert {pair.verdict["rule"] for pair in pairs} == set(violated)
    assert len({pair.verdict["case"] for pair in pairs}) == 6
    assert [pair.verdict for pair in pairs] == poses.worst(6).to_dicts(), "they are those that `show` lists"


def test_pairs_of_all_rules_are_shown_where_all_are_violated(poses: instar.Run) -> None:
    pairs = make_report([poses], images=6, threshold=1e-6).runs[0].parts[0].pairs
    assert len({pair.name for pair in pairs}) == 6


# --- hostile names, and requests


def test_names_stay_text(html: str) -> None:
    assert "<b>große" not in without_bundle(html)
    assert "große" in html and HOSTILE in unescape(without_bundle(html))


def test_data_in_a_script_stays_data() -> None:
    nasty = {"</script><script>alert(1)</script>": "<!--\u2028 & ]]>"}
    text = script_json(nasty)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == nasty


def test_nothing_is_fetched(html: str) -> None:
    rest = without_bundle(html)
    assert "http://" not in rest and "https://" not in rest and "//cdn" not in rest
    assert not re.search(r'(?:src|href)="(?!data:|#)', rest)
    assert "default-src 'none'" in rest


def test_columns_hold_what_tables_hold() -> None:
    table = pl.DataFrame({"name": ["a", "b", "a"], "rate": [0.25, None, 1.0], "t": [0, 1, 2]})
    assert rows(columns(table)) == table.to_dicts()


# --- odd runs


def nobody(pixels: np.ndarray) -> instar.Poses:
    return instar.Poses.from_array([], skeleton="coco-17")


def sometimes(pixels: np.ndarray, seed: int) -> instar.Poses:
    return _pose(_centres(pixels)) if seed % 2 else nobody(pixels)


def never(pixels: np.ndarray) -> instar.Poses:
    raise RuntimeError("<i>no</i>")


ODD: dict[str, tuple[Any, tuple[str, ...], str]] = {
    "everything failed": (never, ("identity", "mirror(h)"), "Every pair failed, so that nothing could be judged"),
    "nothing applies": (steady, ("filtered(gamma(0.5), skin)",), "nothing was judged"),
    "nothing found": (
        nobody,
        ("identity", "mirror(h)"),
        "has no severity|nothing was judged|nothing could be judged|0 of",
    ),
    "no identity": (wobbly, ("mirror(h)", "rotation(5)"), "no rule identity"),
    "only identity": (wobbly, ("identity",), "no rule of this relation but identity"),
    "one rule": (wobbly, ("rotation(5)",), "violates? the only rule"),
    "no violations": (steady, ("identity", "mirror(h)"), "No rule is violated|violated by 0|0 of 8"),
    "all infinite": (sometimes, ("identity", "mirror(h)", "rotation(5)"), "∞"),
    "detections": (rectangles, ("identity", "mirror(h)", "gamma(0.5)"), "of 8 cases"),
}


def test_a_difference_stands_beside_its_interval(poses: instar.Run, other: instar.Run) -> None:
    module("vl_convert")
    report = make_report([poses, other], images=0)
    ((_, one, _),) = report.comparisons
    for row in one.differences[one.section.start].to_dicts():
        assert row["difference"] is None or row["low"] <= row["difference"] <= row["high"]
    text = page(report).partition('aria-label="Differences from')[2].partition("</table>")[0].replace("\xa0", " ")
    assert re.search(r"<th[^>]*>difference</th><th[^>]*>95 % interval</th>", text)
    assert re.search(r"[+−]\d+ points?</td>\s*<td[^>]*>[+−]?\d+ to [+−]?\d+</td>", re.sub(r"</?span[^>]*>", "", text))


@pytest.mark.parametrize("name", ODD)
def test_odd_runs_have_a_report(name: str, pictures: Path, tmp_path: Path) -> None:
    module("vl_convert")
    system, rules, said = ODD[name]
    odd = run(system, rules, pictures, tmp_path / "run")
    html = page(make_report([odd], images=4))
    assert re.search(said, unescape(without_bundle(html)))
    assert "<i>no</i>" not in without_bundle(html)
    data_of(html)


def test_a_single_case(pictures: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(pictures / "00.png", alone)
    report = make_report([run(wobbly, ("identity", "mirror(h)", "rotation(5)"), alone, tmp_path / "run")])
    assert report.runs[0].parts[0].section.whole(0)["judged"] == 1


def test_moved_pictures_say_why(pictures: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(pictures, tmp_path / "pictures")
    moved = run(wobbly, ("rotation(5)",), copied, tmp_path / "run")
    copied.rename(tmp_path / "elsewhere")
    pairs = make_report([moved], images=3).runs[0].parts[0].pairs
    assert len(pairs) == 3 and all("no such file" in pair.why for pair in pairs)
    found = make_report([moved], images=3, dataset=tmp_path / "elsewhere").runs[0].parts[0].pairs
    assert not any(pair.why for pair in found)


def test_unknown_panels_are_named(poses: instar.Run, tmp_path: Path) -> None:
    copied = shutil.copytree(poses.folder, tmp_path / "run")
    Store(copied).write_manifest(replace(poses.manifest, panels=("landmark",)))
    with pytest.warns(BrokenPlugin, match="names a panel 'landmark', which nothing that is installed brings"):
        assert make_report([instar.open_run(copied)], images=0).runs


def test_rules_over_many_cases_stand_for_themselves(pictures: Path, tmp_path: Path) -> None:
    module("vl_convert")
    rules = ("identity", "mirror(h)", "noise(10..12) => correlation(severity)")
    over = run("tests.toys:shaky", rules, pictures, tmp_path / "run")
    report = make_report([over], images=4)
    (row,) = report.runs[0].over_cases
    assert row["rule"] == "noise(10..12) => correlation"
    assert [part.section.relation for part in report.runs[0].parts] == ["poses"]
    assert "Rules over many cases" in page(report)


def test_classic_testing_where_there_is_a_truth(pictures: Path, tmp_path: Path) -> None:
    module("vl_convert")
    cases = [
        Case(path.name, path=str(path), truth=steady(read_image(path).pixels)) for path in sorted(pictures.iterdir())
    ]
    annotated = Dataset("annotated", str(pictures), lambda: iter(cases), "poses")
    suite = instar.Suite("looks", tuple(map(instar.rule, ("identity", "gamma(0.5)", "rotation(5)"))))
    done = instar.run(wobbly, suite, annotated, out=tmp_path / "run", workers=0, zones="none")
    report = make_report([done], images=0)
    panel = next(one for one in report.runs[0].parts[0].panels if one.title == "Beside classic testing")
    expected = classic_table(done)
    assert [row[1] for row in panel.tables[0].rows] == [str(number) for number in expected["both"]]
    tables = data_of(page(report))["tables"]
    shares = {(row["measure"], row["t"]): row["rate"] for row in rows(tables["poses-shares"])}
    for t, row in enumerate(expected.iter_rows(named=True)):
        for measure in ("precision", "recall"):
            assert shares.get((measure, t)) == pytest.approx(row[measure], abs=1e-6)


# --- several runs


def test_runs_are_compared_on_common_cases(poses: instar.Run, other: instar.Run) -> None:
    report = make_report([poses, other], images=0)
    assert report.common == 8
    ((_, one, charts),) = report.comparisons
    t = one.section.start
    row = one.differences[t].filter(rule="rotation(5)").row(0, named=True)
    mine = poses.rates(one.section.grid[t]).filter(rule="rotation(5) => poses").row(0, named=True)
    assert row["first"] == mine["violated"] and row["other"] == 0
    assert row["first_only"] - row["other_only"] == row["first"] - row["other"]
    assert [chart.name for chart in charts] == ["compare-curves", "compare-rates"]
    legend = charts[0].spec["layer"][0]["encoding"]["color"]
    assert legend["legend"]["labelLimit"] == 0, "a name that is cut may be that of the other run"
    lines = [layer["mark"] for layer in charts[0].spec["layer"] if layer["mark"]["type"] == "rule"]
    assert [line["color"] for line in lines] == ["var(--ink)"] and "var(--ink)" not in legend["scale"]["range"]


def test_the_counts_of_a_single_rule_do_not_lie_over_each_other(poses: instar.Run, other: instar.Run) -> None:
    convert = module("vl_convert")
    ((_, one, _),) = make_report([poses, other], images=0).comparisons
    alone = replace(one, rates=one.rates.filter(name="rotation(5)"))
    rates = comparison(alone, ["poses", "steady"])[1]
    svg = convert.vegalite_to_svg(printed(rates))
    places = [float(y) for y in re.findall(r'translate\([\d.]+,([\d.]+)\)"[^>]*>\d+/\d+<', svg)]
    assert len(places) == 2 and abs(places[0] - places[1]) >= 11.5, "the height of their letters"


def test_equal_curves_of_two_runs_are_both_seen(poses: instar.Run, tmp_path: Path) -> None:
    convert = module("vl_convert")
    shutil.copytree(poses.folder, tmp_path / "again")
    ((_, one, _),) = make_report([poses, instar.open_run(tmp_path / "again")], images=0).comparisons
    names = one.curves["run"].unique(maintain_order=True).to_list()
    chart = comparison(one, names)[0]
    only = {**chart.spec, "layer": [layer for layer in chart.spec["layer"] if layer["mark"]["type"] == "line"]}
    drawn = convert.vegalite_to_png(printed(replace(chart, spec=only)))
    pixels = np.asarray(cv2.imdecode(np.frombuffer(drawn, np.uint8), cv2.IMREAD_COLOR))[:300, :, ::-1].astype(int)
    blue, orange = (int((abs(pixels - colour).max(-1) < 12).sum()) for colour in ((0, 114, 178), (213, 94, 0)))
    assert min(blue, orange) > 0.2 * max(blue, orange)


def test_the_matrix_of_families_has_a_head_over_its_numbers_of_cases(
    poses: instar.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("instar.report.section.MANY", 1)
    section = make_section(poses, "poses")
    assert section.by_family
    svg = module("vl_convert").vegalite_to_svg(printed(covered(section)))
    assert ">cases<" in svg


def test_matrices_have_room_for_their_numbers(made: Report) -> None:
    """On a phone cells without numbers are colours that nobody can compare."""
    section = made.runs[0].parts[0].section
    for chart in (chart for chart in made.runs[0].parts[0].charts if chart.name in ("heat", "coverage")):
        across = len(section.grid) if chart.name == "heat" else section.coverage["of"].n_unique()
        assert chart.least > 17 * across
        (numbers,) = [
            layer for layer in chart.spec["layer"] if layer.get("encoding", {}).get("text") == {"field": "text"}
        ]
        assert "opacity" not in numbers["encoding"]


def test_runs_without_common_cases_say_so(poses: instar.Run, tmp_path: Path) -> None:
    module("vl_convert")
    folder = tmp_path / "others"
    folder.mkdir()
    import cv2

    cv2.imwrite(str(folder / "another.png"), scene(90, (160, 120)).pixels)
    stranger = run(steady, ("identity", "mirror(h)"), folder, tmp_path / "run")
    assert "cannot be compared" in page(make_report([poses, stranger], images=0))


# --- files


def test_every_format_is_written(poses: instar.Run, tmp_path: Path) -> None:
    module("vl_convert")
    files = write_report([poses], tmp_path / "deep" / "report.html", formats=("html", "md", "svg", "png"), images=2)
    assert all(path.stat().st_size > 300 for path in files)
    assert {path.suffix for path in files} == {".html", ".md", ".svg", ".png"}
    assert not list((tmp_path / "deep").rglob("*.part"))
    markdown = (tmp_path / "deep" / "report.md").read_text("utf-8")
    for name in re.findall(r"!\[.*?\]\((.*?)\)", markdown):
        assert (tmp_path / "deep" / name).is_file()
    assert (tmp_path / "deep" / "report-figures" / "poses-rates.svg").read_text("utf-8").count("rotation(5)")
    assert "violate at least one of" in markdown
    svg = (tmp_path / "deep" / "report-figures" / "poses-curves.svg").read_text("utf-8")
    assert "var(--" not in svg


def test_unknown_formats_are_errors(poses: instar.Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="pdf"):
        write_report([poses], tmp_path / "report.html", formats=("pdf",))


def test_a_suite_for_poses_on_a_detector(tmp_path: Path) -> None:
    suite = instar.Suite(
        "mixed",
        tuple(map(instar.rule, ("identity", "mirror(h)", "greyscale"))),
        output="poses",
        panels=("violated-counts", "classic", "landmarks"),
    )
    run = instar.run(
        "tests.toys:rectangles", suite, write_scenes(tmp_path / "pictures", 3), out=tmp_path / "run", workers=0
    )
    part = make_report([run], images=2).runs[0].parts[0]
    assert [panel.title for panel in part.panels] == ["How many rules a case violates"]
    assert part.section.relation == "detections"
