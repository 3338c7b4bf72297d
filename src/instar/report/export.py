"""Writing a report: one page, Markdown with its figures beside it, or the figures alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT
from instar.files import place_file
from instar.report.chart import Chart, Spec, printed
from instar.report.compared import Comparison, common_words
from instar.report.gallery import PairShown
from instar.report.page import RelationPage, Report, RunPage, make_report, page
from instar.report.panels import PanelContent
from instar.report.section import Section
from instar.report.sentences import headline, over_cases_text
from instar.report.slice_words import slice_words
from instar.report.tables import markdown_lines
from instar.report.words import (
    interval,
    kinds_text,
    landmark_words,
    markdown_text,
    of_total,
    one_line,
    p_text,
    percent,
    severity_text,
    threshold_text,
)
from instar.spelling import unknown

FORMATS = ("html", "md", "svg", "png")


def write_report(
    runs: Sequence[Run],
    out: str | Path,
    *,
    formats: Sequence[str] = (),
    threshold: float | None = None,
    judging: str = DEFAULT,
    images: int = 24,
    dataset: str | Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> list[Path]:
    """Write the report of one or several runs; returns the files.

    `out` names the page or the Markdown; figures go into a folder beside it that ends in `-figures`, at the threshold
    at which the page starts. Formats: html, md, svg, png; by default the suffix of `out` decides, and any other suffix
    means html. `say` is given what the page lacks.
    """
    suffix = Path(out).suffix.lower().removeprefix(".")
    formats = formats or (suffix if suffix in FORMATS else "html",)
    for name in formats:
        if name not in FORMATS:
            raise unknown("format of a report", name, FORMATS)
    base = Path(out)
    base = base.with_suffix("") if base.suffix.lower() in (".html", ".htm", ".md", ".svg", ".png") else base
    drawn = images if "html" in formats else 0
    report = make_report(runs, threshold=threshold, judging=judging, images=drawn, dataset=dataset)
    base.parent.mkdir(parents=True, exist_ok=True)
    figures = base.with_name(f"{base.name}-figures")
    written: list[Path] = []
    if "html" in formats:
        named = Path(out).suffix.lower() in (".html", ".htm")
        place = Path(out) if named else base.with_name(f"{base.name}.html")
        written.append(place_file(place, page(report).encode("utf-8")))
        shown = _pairs(report)
        undrawn = [pair.why for pair in shown if pair.why]
        if undrawn:
            say(f"{of_total(len(undrawn), len(shown), 'pair')} could not be drawn on the page: {undrawn[0]}")
    wanted = [kind for kind in ("svg", "png") if kind in formats]
    if "md" in formats and not wanted:
        wanted = ["png"]
    for kind in wanted:
        written += _write_figures(report, figures, kind)
    if "md" in formats:
        text = "\n".join(_markdown(report, figures.name, wanted[-1]))
        written.append(place_file(base.with_name(f"{base.name}.md"), text.encode("utf-8")))
    return written


def _pairs(report: Report) -> list[PairShown]:
    """All pairs whose pictures a page shows."""
    pairs = [pair for run in report.runs for part in run.parts for pair in part.pairs]
    pairs += [pair for run in report.runs for pair in run.combinations]
    return pairs + [side for each in report.flipped.values() for flip in each for side in (flip.first, flip.second)]


# --- figures ---------------------------------------------------------------------------------------


def _named(report: Report) -> Iterator[tuple[str, Chart]]:
    """The figures of a report, with the names of their files: run, relation and figure."""
    for place, one, made in report.comparisons:
        for chart in (*made, *(chart for panel in report.panels[place] for chart in panel.charts)):
            yield _plain(one.section.relation, chart.name), chart
    for run in report.runs:
        own = (run.name,) if len(report.runs) > 1 else ()
        for part in run.parts:
            for chart in (*part.charts, *(chart for panel in part.panels for chart in panel.charts)):
                yield _plain(*own, part.section.relation, chart.name), chart


def _plain(*names: str) -> str:
    return "-".join(re.sub(r"\W+", "_", name)[:60] for name in names)


def _write_figures(report: Report, folder: Path, kind: str) -> list[Path]:
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    version = vl_convert.get_vegalite_versions()[-1]
    draw: dict[str, Callable[[Spec], bytes]] = {
        "svg": lambda spec: vl_convert.vegalite_to_svg(spec, vl_version=version).encode("utf-8"),
        "png": lambda spec: vl_convert.vegalite_to_png(spec, vl_version=version, scale=2),
    }
    return [place_file(folder / f"{name}.{kind}", draw[kind](printed(chart))) for name, chart in _named(report)]


# --- Markdown --------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return [*markdown_lines(heads, rows), ""]


def _markdown(report: Report, folder: str, kind: str) -> Iterator[str]:
    yield from (f"# {markdown_text(report.title)}", "")
    pictures = {id(chart): f"{folder}/{name}.{kind}" for name, chart in _named(report)}

    def figure(chart: Chart) -> list[str]:
        return [
            f"![{markdown_text(chart.title)}]({quote(pictures[id(chart)])})",
            "",
            f"*{markdown_text(chart.caption)}*",
            "",
        ]

    if report.comparisons:
        yield from ("## Comparison", "", f"On {markdown_text(common_words(report.common))}.", "")
        yield from (f"{markdown_text(finding.words)}\n" for finding in report.leading)
    for place, one, made in report.comparisons:
        yield from (f"### Relation {markdown_text(one.section.relation)}", "")
        about = {name: " ".join(note.words for note in notes) for name, notes in one.notes.items() if notes}
        yield from (f"{markdown_text(f'{name}: {words}')}\n" for name, words in about.items())
        for chart in made:
            yield from figure(chart)
        yield from _differences(one, report.names[0])
        for panel in report.panels[place]:
            yield from _panel(panel, figure)
    for run in report.runs:
        yield from _run(run, figure)


def _panel(panel: PanelContent, figure: Callable[[Chart], list[str]]) -> Iterator[str]:
    yield from (f"#### {markdown_text(panel.title)}", "", markdown_text(panel.text), "")
    for chart in panel.charts:
        yield from figure(chart)
    yield from _tables(panel)


def _tables(panel: PanelContent) -> Iterator[str]:
    for table in panel.tables:
        yield from (f"{markdown_text(table.caption)}:", "", *_table(table.heads, table.rows))


_COMPARED = ("rule", "run", "cases", "first", "other", "first_only", "other_only", "first_empty", "other_empty")


def _differences(one: Comparison, first: str) -> list[str]:
    table = one.differences[one.section.start]
    return [
        f"At a threshold of {one.section.with_unit(one.section.grid[one.section.start])}:",
        "",
        *_table(
            [
                *("rule", "run", "cases", first, "this run", f"only {first}", "only this run"),
                *(f"nothing found: {first}", "nothing found: this run", "corrected p"),
            ],
            [[*(row[name] for name in _COMPARED), p_text(row["p_corrected"])] for row in table.iter_rows(named=True)],
        ),
    ]


def _run(run: RunPage, figure: Callable[[Chart], list[str]]) -> Iterator[str]:
    yield from (f"## {markdown_text(run.name)}", "", f"{markdown_text(run.short)}.", "")
    yield from ("### What was found", "", *(f"- {markdown_text(finding.words)}" for finding in run.findings), "")
    for part in run.parts:
        yield from _relation(part, figure)
    for panel in run.panels:
        yield from (f"### {markdown_text(panel.title)}", "", *_tables(panel))
    if run.over_cases:
        rows = [
            [
                row["rule"],
                severity_text(row["severity"], row["threshold"]),
                row["unit"],
                threshold_text(row["threshold"]),
                over_cases_text(row) or row["reason"] or row["status"],
            ]
            for row in run.over_cases
        ]
        heads = ["rule", "severity", "unit", "threshold", "measured"]
        yield from ("### Rules over many cases", "", *_table(heads, rows))
    if len(run.unjudged):
        unjudged = run.unjudged.select("status", pl.col("reason").replace("", "–").fill_null("–"), "pairs", "rules")
        yield from (
            "### Not judged: nothing found, not applicable, failed",
            "",
            *_table(unjudged.columns, unjudged.rows()),
        )
    yield from ("### What was tested, and on which machine", "", *_table(["what", "which"], run.facts))
    yield from ("### How to reproduce this", "", *(f"    {one_line(line)}" for line in run.commands), "")


_RATES = ("rule", "in words", "violated", "rate", "95 % interval", "median", "worst", "kinds")
_UNJUDGED = ("nothing found in either", "not applicable", "failed")


def _rates(section: Section) -> list[str]:
    rows = [
        [
            row["name"],
            section.words[row["name"]],
            f"{row['violated']}/{row['judged']}",
            percent(row["rate"]),
            interval(row["low"], row["high"]) if row["judged"] else "–",
            severity_text(row["median"], row["threshold"]),
            severity_text(row["worst"], row["threshold"]),
            kinds_text(row["kinds"], section.counted),
            row["nothing_found"],
            row["not_applicable"],
            row["failed"],
        ]
        for row in section.rates.filter(t=section.start).iter_rows(named=True)
    ]
    return _table([*_RATES, *_UNJUDGED], rows)


def _tested(section: Section) -> list[str]:
    rows = [
        [
            section.names[row["rule"]] if row["rule"] else f"family {row['family']}" if row["family"] else "all rules",
            f"{row['rejected']}/{row['tests']}",
            percent(row["share"]),
            row["powerless"],
            "–" if row["p_corrected"] is None else p_text(row["p_corrected"]),
        ]
        for row in section.tests.iter_rows(named=True)
    ]
    table = _table(["rules", "rejected", "share", "cannot reject", "corrected p"], rows)
    return ["#### How many tests reject", "", *table] if rows else []


def _straying(section: Section) -> list[str]:
    rows = [
        [
            landmark_words(row["part"]),
            section.names[row["rule"]],
            percent(row["rate"]),
            percent(row["whole"]),
            p_text(row["p_corrected"]),
        ]
        for row in section.straying[section.start].iter_rows(named=True)
    ]
    table = _table(["part", "rule", "strays in", "pairs violated", "corrected p"], rows)
    return ["#### What the whole hides", "", *table] if rows else []


def _relation(part: RelationPage, figure: Callable[[Chart], list[str]]) -> Iterator[str]:
    section = part.section
    searched = any(panel.leads for panel in part.panels)  # its rates are not those of all cases
    words = "" if searched else markdown_text(" ".join(headline(section, section.start)))
    yield from (f"### Relation {section.heading} (`{section.relation}`), in {section.unit}", "", words, "")
    for chart in part.charts:
        yield from figure(chart)
    yield from _rates(section)
    yield from _tested(section)
    yield from _straying(section)
    sure = [row for row in section.slices[section.start].iter_rows(named=True) if row["p_corrected"] <= 0.05]
    if sure:
        rows = [[slice_words(row), p_text(row["p_corrected"])] for row in sure]
        yield from ("#### Where it breaks", "", *_table(["what differs", "corrected p"], rows))
    chosen, _ = section.selections[section.start]
    if len(chosen):
        rows = [
            [section.names[row["rule"]], row["found"], row["total"], percent(row["share"])]
            for row in chosen.iter_rows(named=True)
        ]
        yield from ("#### Which rules are enough", "", *_table(["rule", "new cases", "found so far", "share"], rows))
    for panel in part.panels:
        yield from _panel(panel, figure)
