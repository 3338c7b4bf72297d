"""Figures of papers as files: drawn, as a page that needs no network, or as numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

from instar.files import place_file
from instar.report.chart import Chart, printed
from instar.report.panels import TaskTables
from instar.report.tables import write_csv
from instar.spelling import unknown

DRAWN = (".svg", ".png")
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1a1a1a }
figure { margin: 0 0 1.5rem } figure svg { max-width: 100%; height: auto }
div { overflow-x: auto }
table { border-collapse: collapse; margin: 0 0 1.5rem }
caption { text-align: left; padding: 0.4rem 0 }
th, td { padding: 0.15rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
"""


def write_figure(made: TaskTables, path: Path) -> Path:
    """Write a figure of a paper as its name ends: .svg and .png are drawn, .html has its tables too, .csv and .json
    are its numbers."""
    writers: dict[str, Callable[[TaskTables, Path], Path]] = {
        **dict.fromkeys(DRAWN, _write_drawn),
        ".html": lambda figure, file: place_file(file, "\n".join(_page(figure)).encode("utf-8")),
        ".csv": _write_numbers,
        ".json": _write_json,
    }
    kind = path.suffix.lower()
    if kind not in writers:
        raise unknown("ending of a figure's file", kind or path.name, list(writers))
    if kind in DRAWN and made.chart is None:
        raise ValueError(f"{path}: a table is not drawn; take a file that ends in .html, .csv or .json")
    return writers[kind](made, path)


def _svg(chart: Chart) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(printed(chart), vl_version=vl_convert.get_vegalite_versions()[-1])


def _write_drawn(made: TaskTables, path: Path) -> Path:
    assert made.chart is not None
    if path.suffix.lower() == ".svg":
        return place_file(path, _svg(made.chart).encode("utf-8"))
    import vl_convert

    version = vl_convert.get_vegalite_versions()[-1]
    return place_file(path, vl_convert.vegalite_to_png(printed(made.chart), vl_version=version, scale=2))


def _write_numbers(made: TaskTables, path: Path) -> Path:
    """The first frame is the figure's own."""
    frame = next(iter(made.frames.values()))
    return write_csv(path, frame.columns, frame.iter_rows(named=True))


def _write_json(made: TaskTables, path: Path) -> Path:
    def plain(value: object) -> object:
        """JSON has no ∞: it is written as the string "inf", as in what commands print."""
        return "inf" if isinstance(value, float) and math.isinf(value) else value

    frames = {
        name: [{key: plain(value) for key, value in row.items()} for row in frame.iter_rows(named=True)]
        for name, frame in made.frames.items()
    }
    return place_file(path, json.dumps(frames, ensure_ascii=False, indent=1).encode("utf-8"))


def _page(made: TaskTables) -> Iterator[str]:
    title = made.chart.title if made.chart else made.tables[0].caption
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
    yield f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
    yield from (f"<p>{escape(line)}</p>" for line in made.before)
    if made.chart is not None:
        yield f"<figure>{_svg(made.chart)}<figcaption>{escape(made.chart.caption)}</figcaption></figure>"
    for table in made.tables:
        yield f"<div><table><caption>{escape(table.caption)}</caption><thead><tr>"
        yield "".join(f"<th>{escape(head)}</th>" for head in table.heads) + "</tr></thead><tbody>"
        yield from ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
        yield "</tbody></table></div>"
    yield from (f"<p>{escape(line)}</p>" for line in made.after)
    yield "</body></html>"
