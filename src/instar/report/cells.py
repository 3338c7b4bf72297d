"""What a notebook shows of a run, of pairs and of a preview: HTML that holds its pictures in itself.

Texts are escaped, whatever they hold. Colours are the notebook's, so that light and dark ones can both be read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import polars as pl

from instar.analysis import Run
from instar.engine import DEFAULT, error_text
from instar.image import Image
from instar.report.drawing import scaled, scaling
from instar.report.findings import findings
from instar.report.gallery import panel_address, size_words
from instar.report.limits import limit_words
from instar.report.picture import Annotated, contact_sheet, data_address, legend
from instar.report.rebuild import CannotDraw, Pair, load_pair
from instar.report.words import STRAY_MOST, commands, count_of, interval, one_line, percent, severity_text, visible
from instar.store import Row

if TYPE_CHECKING:
    from jinja2.environment import TemplateModule

TEMPLATES = Path(__file__).parent / "templates"
WORST, RULES, MOST, TILE = 6, 20, 100, 200
"""Pairs and rules that a run shows of itself; pairs that are drawn at once; pixels of a preview's pictures."""
COLUMNS = ("case", "rule", "target", "severity")
"""What a verdict must have to be drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnPair:
    """A source and its follow-up with the answers to them, as a notebook shows them; or `why` they cannot be drawn.

    `verdict` is the row that it was made of.
    """

    verdict: Row
    pair: Pair | None
    why: str = ""

    def picture(self) -> Image:
        """Both sides beside each other, as `instar draw` writes them."""
        if self.pair is None:
            raise LookupError(f"the pair {self.title} cannot be drawn; {self.facts}")
        return self.pair.picture()

    @property
    def title(self) -> str:
        """The rule, and what it does in a few words."""
        return one_line(str(self.verdict["rule"]) if self.pair is None else self.pair.title)

    @property
    def facts(self) -> str:
        """The case, what in it the verdict is about, and the severity; or why the pair cannot be drawn."""
        return one_line(f"{self.verdict['case']}: {self.why}" if self.pair is None else self.pair.facts)

    def __repr__(self) -> str:
        return f"<pair {self.title}; {self.facts}>"

    def _repr_html_(self) -> str:
        return cell_html("pairs", parts=[("", [_shown(self)])])


@dataclass(frozen=True, slots=True, eq=False)
class Pairs(Sequence[DrawnPair]):
    """Several pairs, in the order of their verdicts. It is a sequence; a notebook shows all of them."""

    drawn: tuple[DrawnPair, ...]

    def __len__(self) -> int:
        return len(self.drawn)

    @overload
    def __getitem__(self, place: int) -> DrawnPair: ...
    @overload
    def __getitem__(self, place: slice) -> Pairs: ...
    def __getitem__(self, place: int | slice) -> DrawnPair | Pairs:
        return Pairs(self.drawn[place]) if isinstance(place, slice) else self.drawn[place]

    def __iter__(self) -> Iterator[DrawnPair]:
        return iter(self.drawn)

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.drawn))}]"

    def _repr_html_(self) -> str:
        return cell_html("pairs", parts=_parts(self.drawn))


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """Every follow-up of a suite on one input, each with its spelling, the source first; `missing` are the
    transformations that do not apply to it, with why."""

    tiles: tuple[tuple[Image, str], ...]
    missing: tuple[tuple[str, str], ...]

    @property
    def sheet(self) -> Image:
        """All of them as one picture."""
        return contact_sheet(self.tiles)

    def __repr__(self) -> str:
        return f"<preview of {count_of(len(self.tiles) - 1, 'follow-up')}; {len(self.missing)} not applicable>"

    def _repr_html_(self) -> str:
        tiles = [(_thumbnail(image), name) for image, name in self.tiles]
        return cell_html("preview", tiles=tiles, missing=self.missing)


def pairs(
    run: Run,
    verdicts: pl.DataFrame | int = WORST,
    *,
    threshold: float | None = None,
    judging: str = DEFAULT,
    dataset: str | Path | None = None,
) -> Pairs:
    """The pairs of verdicts, or so many of the worst, drawn."""
    if isinstance(verdicts, int):
        if verdicts < 0:
            raise ValueError(f"how many of the worst pairs are drawn is 0 or more, got {verdicts}")
        verdicts = run.worst(verdicts, threshold=threshold, judging=judging)
    if lacking := [name for name in COLUMNS if name not in verdicts.columns]:
        raise ValueError(
            f"verdicts to draw have the columns {', '.join(COLUMNS)}; these lack {', '.join(lacking)}: take them from "
            "`run.worst()` or `run.verdicts()`"
        )
    if verdicts.height > MOST:
        raise ValueError(f"{verdicts.height:,} verdicts are too many to draw; give {MOST} or fewer, such as .head(20)")
    return Pairs(tuple(_drawn(run, row, threshold, judging, dataset) for row in verdicts.iter_rows(named=True)))


def _drawn(run: Run, verdict: Row, threshold: float | None, judging: str, dataset: str | Path | None) -> DrawnPair:
    if verdict["case"] is None:
        return DrawnPair({**verdict, "case": "all cases"}, None, "a rule over many cases has no one pair")
    try:
        return DrawnPair(verdict, load_pair(run, verdict, threshold=threshold, judging=judging, dataset=dataset))
    except CannotDraw as error:
        return DrawnPair(verdict, None, str(error))


def run_html(run: Run) -> str | None:
    """What was found of a run, the rules that are violated most, its worst pairs, and where there is more.

    None where nothing was judged yet: then the run's line of text says so. A folder that cannot be read is a sentence.
    """
    try:
        if run.store.judging_info(DEFAULT) is None:
            return None
        manifest, rates = run.manifest, _rates(run)
        return cell_html(
            "run",
            system=manifest.system.name,
            suites=", ".join(manifest.suites),
            findings=findings(run),
            limits=limit_words(run),
            rates=rates[:RULES],
            more=count_of(len(rates) - RULES, "more rule") if len(rates) > RULES else "",
            parts=_parts(pairs(run)),
            folder=str(run.folder),
            typed=shlex.quote(str(run.folder)),
        )
    except Exception as error:  # a notebook that prints a traceback in place of an object helps nobody
        return f"<p>{escape(str(run.folder))} cannot be shown: {escape(error_text(error))}</p>"


def progress_html(words: str, done: int, rows: int) -> str:
    """How far something is, in words, with a bar where it is known of how many."""
    return cell_html("progress", words=words, done=done, rows=rows)


def _rates(run: Run) -> list[Sequence[str]]:
    """A row in words for each rule, most violated first."""
    known = {row["rule"]: row for row in run.rules().iter_rows(named=True) if row["over"] == "case"}
    ranked = run.rates().sort(["rate", "median"], descending=True, nulls_last=True)
    return [
        (
            known[row["rule"]]["name"],
            known[row["rule"]]["words"],
            f"{row['violated']:,} of {row['judged']:,}",
            percent(row["rate"]),
            interval(row["low"], row["high"]) if row["judged"] else "–",
            severity_text(row["worst"], row["threshold"]),
        )
        for row in ranked.iter_rows(named=True)
        if row["rule"] in known
    ]


def _parts(drawn: Iterable[DrawnPair]) -> list[tuple[str, list[Row]]]:
    """The pairs under the heading that a terminal gives them: those that violate their rule, and those that do not. Of
    rows that do not say which they are there is one part without a heading."""
    parts: dict[str, list[Row]] = {}
    headings = {None: "", True: "Worst pairs", False: f"{STRAY_MOST[:1].upper()}{STRAY_MOST[1:]}"}
    for one in drawn:
        parts.setdefault(headings[one.verdict.get("violated")], []).append(_shown(one))
    return list(parts.items())


def _shown(drawn: DrawnPair) -> Row:
    """What the template needs of a pair."""
    words = {"title": drawn.title, "facts": drawn.facts, "sides": [], "legend": [], "answers": ()}
    pair = drawn.pair
    if pair is None:
        return words
    sides: tuple[tuple[Literal["source", "follow-up"], Annotated], ...]
    sides = ("source", pair.source), ("follow-up", pair.follow_up)
    shown = [(f"{name}, {size_words(panel)}", panel_address(panel, name)) for name, panel in sides]
    return {**words, "sides": shown, "legend": legend(pair.source, pair.follow_up), "answers": pair.answers}


@lru_cache(maxsize=1)
def _templates() -> TemplateModule:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters["commands"] = lambda text: commands(visible(text))
    return environment.get_template("cells.html").module


def cell_html(part: Literal["run", "pairs", "preview", "compared", "progress"], **content: object) -> str:
    """A part of the template of cells, filled in."""
    return str(getattr(_templates(), part)(**content))


def _thumbnail(image: Image) -> str:
    warp = scaling(image, min(1.0, TILE / max(image.size)))
    return data_address(Image(scaled(image, warp)), "webp")
