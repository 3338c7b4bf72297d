"""The report of one or several runs as one page that needs nothing but itself."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from markupsafe import Markup

from instar import __version__
from instar.analysis import Run
from instar.analysis.boundary import searched_grids
from instar.analysis.rejections import LEVEL
from instar.engine import DEFAULT, stored_judging
from instar.report.chart import PAGE_FONT, STATIC, Chart, columns, config
from instar.report.combinations import combination_pairs, combinations_panel
from instar.report.compared import Comparison, common_cases, common_words, compare, run_names
from instar.report.compared_figures import comparison
from instar.report.figures import charts
from instar.report.finding import Finding
from instar.report.findings import findings
from instar.report.flipped import FlippedPair, flipped_pairs
from instar.report.gallery import Example, PairShown, examples, pairs_shown
from instar.report.glossary import glossary
from instar.report.marks import roles_of
from instar.report.panels import PanelContent, panels_of_relation, panels_of_run, panels_of_runs
from instar.report.picture import LegendEntry
from instar.report.precision import MARK_MEANINGS, precision_panel
from instar.report.rebuild import run_legend
from instar.report.section import Section, make_section
from instar.report.sentences import headline, over_cases_text, rate_words, violating
from instar.report.slice_words import effect_text, slice_text, slice_words
from instar.report.tables import FORMULA, NUMBER
from instar.report.thumbnails import thumbnails
from instar.report.unbroken import unbroken
from instar.report.verdict import leading_findings
from instar.report.words import (
    INTERVAL_AND_P,
    breakable,
    commands,
    count_of,
    interval,
    kinds_text,
    landmark_words,
    listed,
    measured,
    of_total,
    p_text,
    percent,
    points,
    points_between,
    scores_text,
    severity_text,
    threshold_text,
)
from instar.spelling import spell_value
from instar.store import Row, stored_marks
from instar.suites.grid import RAYS, STEPS

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
EXAMPLES = 6
SCRIPTS = ("state.js", "tables.js", "report.js")
RESERVED = ("main", "comparison", "words", "findings", "over-cases", "unjudged", "tested", "reproduce", "large")
"""Anchors that every page may have."""


@dataclass(frozen=True, slots=True, eq=False)
class RelationPage:
    """A relation's section with its figures, panels and pairs. `thumbs` names the picture of a rule, by its name."""

    id: str
    level: int
    section: Section
    charts: Sequence[Chart]
    panels: Sequence[PanelContent]
    pairs: Sequence[PairShown]
    legend: Sequence[LegendEntry]
    thumbs: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class RunPage:
    """A run of a report. `thumbs` are the pictures of its rules, by the names that its relations have for them."""

    id: str
    name: str
    alone: bool
    thumbs: Mapping[str, str]
    meanings: Mapping[str, str]
    heads: Mapping[str, str]
    short: str
    facts: Sequence[tuple[str, str]]
    findings: Sequence[Finding]
    parts: Sequence[RelationPage]
    panels: Sequence[PanelContent]
    over_cases: Sequence[Row]
    unjudged: pl.DataFrame
    examples: Sequence[Example]
    legend: Sequence[LegendEntry]
    combinations: Sequence[PairShown]
    commands: Sequence[str]
    versions: str

    def anchor(self, name: str) -> str:
        """Where a section of this run is in the page: by its name alone where the page has no other run."""
        return name if self.alone else f"{self.id}-{name}"


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """All that a report says, ready to be written in any format; `leading` is what to read first of several runs,
    `panels` and `flipped` pairs are those of each comparison, by place."""

    title: str
    runs: Sequence[RunPage]
    names: Sequence[str]
    common: int
    leading: Sequence[Finding]
    comparisons: Sequence[tuple[str, Comparison, Sequence[Chart]]]
    panels: Mapping[str, Sequence[PanelContent]]
    flipped: Mapping[str, Sequence[FlippedPair]]

    def thumbs_of(self, relation: str) -> Mapping[str, str]:
        """The names of the pictures of a relation's rules, as the first run has them."""
        return next((part.thumbs for part in self.runs[0].parts if part.section.relation == relation), {})

    def legend_of(self, relation: str) -> Sequence[LegendEntry]:
        """What is drawn in pictures of a relation, by the run in which there is most of it."""
        legends = (part.legend for run in self.runs for part in run.parts if part.section.relation == relation)
        return max(legends, key=len, default=())


def make_report(
    runs: Sequence[Run],
    *,
    threshold: float | None = None,
    judging: str = DEFAULT,
    images: int = 24,
    dataset: str | Path | None = None,
) -> Report:
    """Ask runs everything that a report shows.

    Args:
        runs: one run, or several to compare.
        threshold: where the page starts; each relation's own by default.
        judging: which judging.
        images: how many of the worst pairs are drawn, over all runs and relations.
        dataset: where the images are now, if they were moved.
    """
    if not runs:
        raise ValueError("a report needs at least one run")
    sections = [
        [make_section(run, relation, threshold=threshold, judging=judging) for relation in run.grids()] for run in runs
    ]
    names = run_names(runs)
    places = _places(names, sections)
    share = [images // len(runs) + (number < images % len(runs)) for number in range(len(runs))]
    folder = Path(dataset) if dataset else None
    made = [
        _run_page(place, run, name, own, count, judging, folder, threshold, alone=len(runs) == 1)
        for place, run, name, own, count in zip(places, runs, names, sections, share, strict=True)
    ]
    compared = compare(runs, sections, judging=judging) if len(runs) > 1 else []
    suites = ", ".join(runs[0].manifest.suites)
    title = (
        f"{names[0]} under {suites}"
        if len(runs) == 1
        else " and ".join(names)
        if len(names) < 4
        else f"{len(names)} runs"
    )
    return Report(
        title,
        made,
        names,
        len(common_cases(runs, judging)) if len(runs) > 1 else 0,
        leading_findings(runs, threshold=threshold, judging=judging),
        [(_compared(one), one, comparison(one, names)) for one in compared],
        {_compared(one): panels_of_runs(runs, names, one.section, judging) for one in compared},
        {
            _compared(one): flipped_pairs(
                runs, names, _rule_names(one.section), threshold=threshold, judging=judging, dataset=folder
            )
            for one in (compared if images else ())
        },
    )


def _rule_names(section: Section) -> dict[str, str]:
    """The rules of a relation that change something, by id, with their names."""
    return {rule: section.names[rule] for rules in section.families.values() for rule in rules}


def slug(name: str) -> str:
    """A name as an address has it.

    >>> slug("Which landmarks stray"), slug("yolox (first)"), slug("手")
    ('which-landmarks-stray', 'yolox-first', 'x')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"


def _compared(one: Comparison) -> str:
    return f"comparison-{slug(one.section.relation)}"


def _places(names: Sequence[str], sections: Sequence[Sequence[Section]]) -> list[tuple[str, list[str]]]:
    """The anchors of runs and of their relations: names that stay the same when a page is made anew, each once."""
    taken = set(RESERVED)

    def free(wanted: str) -> str:
        others = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
        place = next(name for name in (wanted, *others) if name not in taken)
        taken.add(place)
        return place

    places = []
    for name, own in zip(names, sections, strict=True):
        run = free(slug(name)) if len(names) > 1 else "run"
        before = f"{run}-" if len(names) > 1 else ""
        places.append((run, [free(f"{before}{slug(section.relation)}") for section in own]))
    return places


def _run_page(
    places: tuple[str, list[str]],
    run: Run,
    name: str,
    sections: Sequence[Section],
    images: int,
    judging: str,
    dataset: Path | None,
    threshold: float | None,
    *,
    alone: bool,
) -> RunPage:
    pairs = pairs_shown(run, sections, images, threshold=threshold, judging=judging, dataset=dataset)
    pictures = thumbnails(run, judging=judging, dataset=dataset) if images else {}
    addresses = list(dict.fromkeys(pictures.values()))
    thumbs = {rule: f"of-{places[0]}-{addresses.index(address)}" for rule, address in pictures.items()}
    parts = [
        RelationPage(
            place,
            2 if len(sections) == 1 else 3,
            section,
            charts(section),
            [one if images else replace(one, pictures=()) for one in panels_of_relation(run, section, judging)],
            pairs[section.relation],
            run_legend(run, relation=section.relation, judging=judging, dataset=dataset) if images else [],
            {shown: thumbs[rule] for rule, shown in section.names.items() if rule in thumbs},
        )
        for place, section in zip(places[1], sections, strict=True)
    ]
    unjudged = run.unjudged(judging)
    manifest = run.manifest
    return RunPage(
        places[0],
        name,
        alone,
        {f"of-{places[0]}-{number}": address for number, address in enumerate(addresses)},
        *_meanings(run, sections),
        _short(run),
        _facts(run, judging),
        findings(run, threshold=threshold, judging=judging),
        parts,
        [
            *combinations_panel(run),
            *precision_panel(run, threshold=threshold, judging=judging),
            *panels_of_run(run, judging),
        ],
        _over_cases(run, judging),
        unjudged,
        examples(run, unjudged, EXAMPLES if images else 0, judging=judging, dataset=dataset),
        run_legend(run, alone=True, judging=judging, dataset=dataset) if images and unjudged.height else [],
        combination_pairs(run, judging, dataset) if images else [],
        _commands(run, judging),
        ", ".join(f"{name} {version}" for name, version in manifest.packages.items()),
    )


def _over_cases(run: Run, judging: str) -> list[Row]:
    """The verdicts over many cases, with their units, thresholds and what was measured."""
    units, limits = run.units(judging), run.thresholds()
    relations = dict(run.rules().select("rule", "relation").iter_rows())
    return [
        {
            **row,
            "unit": units[relations[row["rule"]]],
            "threshold": limits[row["rule"]],
            "measured": over_cases_text(row),
        }
        for row in run.over_cases(judging).iter_rows(named=True)
        if row["rule"] in relations
    ]


def _rules(run: Run) -> int:
    """How many rules were asked for: those that a search tried are its own."""
    search = run.manifest.search
    return len(run.manifest.rules if search is None else search.members)


def _short(run: Run) -> str:
    """What was tested, in a line."""
    manifest = run.manifest
    names = [source.name for source in manifest.datasets]
    alone = re.sub(r'[^"(]*/(?=[^/",)])', "", names[0]) if len(names) == 1 else ""
    datasets = alone if 0 < len(alone) < 60 else count_of(len(names), "dataset")
    rules, cases = count_of(_rules(run), "rule"), count_of(run.cases().height, "case")
    return f"{rules} on {cases} of {datasets}, {manifest.created[:10]}"


def _meanings(run: Run, sections: Sequence[Section]) -> tuple[dict[str, str], dict[str, str]]:
    """What the run's relations and the kinds of its violations mean; and what all kinds of its relations do."""
    relations = {one.relation.relation.name: one.relation.relation for one in run.bound_rules()}
    meanings = {name: each.help.partition("⚠")[0].strip() for name, each in relations.items() if each.help}
    kinds = {kind: meaning for each in relations.values() for kind, meaning in each.meanings.items()}
    for section in sections:
        own = relations[section.relation].meanings
        meanings |= {kind: f"a kind of violation: {own[kind]}" for kind in section.kinds if kind in own}
    marked = MARK_MEANINGS if stored_marks(run.store) else {}
    return meanings, {**marked, **kinds}


def _facts(run: Run, judging: str) -> list[tuple[str, str]]:
    """What was tested, from named fields of the manifest only."""
    manifest, cases = run.manifest, run.cases()
    system, machine = manifest.system, manifest.machine
    unreadable = cases.filter(pl.col("status") != "ok").height
    options = {**manifest.options, **stored_judging(run.store, judging).options}
    spelled = ", ".join(f"{key}={value}" for key, value in sorted(options.items())) or "no options"
    facts = [
        *([("Name", manifest.name)] if manifest.name else []),
        ("System", f"{system.name} (it answers with {system.kind}; fingerprint {system.fingerprint})"),
        ("Suite", f"{', '.join(manifest.suites)} ({count_of(_rules(run), 'rule')})"),
        ("Dataset", ", ".join(source.name for source in manifest.datasets)),
        ("Cases", f"{len(cases):,}" + (f", {unreadable:,} of them unreadable" if unreadable else "")),
        *([] if manifest.shard is None else [("Shard", f"{manifest.shard.number} of {manifest.shard.total}")]),
        ("Judging", f"{judging}, {spelled}"),
        ("Seed", str(manifest.seed)),
    ]
    if run.store.state("needs"):
        facts += [(f"Finds {need}", provider.name) for need, provider in manifest.providers.items()]
    return [
        *facts,
        ("Made", f"{manifest.created[:10]} with Instar {manifest.instar}"),
        ("Machine", f"{machine.system} {machine.machine}, Python {machine.python}, {count_of(machine.cores, 'core')}"),
    ]


def _commands(run: Run, judging: str) -> list[str]:
    """What made this run, and this page."""
    manifest, folder = run.manifest, run.folder.name
    if manifest.recorded is not None:
        tables = [table.name for table in manifest.recorded.tables]
        return [shlex.join(["instar", "import", *tables, "--out", folder]), shlex.join(["instar", "report", folder])]
    search = manifest.search
    start = ["instar", "run" if search is None else "search", manifest.system.name, "+".join(manifest.suites)]
    if grids := searched_grids(run):
        usual_ones = {"--steps": (grids[0].steps, STEPS), "--rays": (grids[0].between, RAYS)}
        more = [part for flag, (value, usual) in usual_ones.items() if value != usual for part in (flag, str(value))]
        start = ["instar", "boundary", manifest.system.name, "+".join(grid.family for grid in grids), *more]
    shard = [] if manifest.shard is None else ["--shard", str(manifest.shard)]
    called = ["--name", manifest.name] if manifest.name and search is None else []
    needs = [part for need, provider in manifest.providers.items() for part in (f"--{need}", provider.name)]
    limits = [] if search is None else ["--budget", str(search.budget), "--visual", str(search.visual or 1)]
    end = [*shard, *needs, *limits, *called, "--out", folder, "--seed", str(manifest.seed)]
    commands = [
        shlex.join([*start, source.name, *(["--limit", str(source.limit)] if source.limit else []), *end])
        for source in manifest.datasets
    ]
    if judging != DEFAULT:
        options = stored_judging(run.store, judging).options
        texts = {name: value if isinstance(value, str) else spell_value(value) for name, value in options.items()}
        choices = [part for name, text in texts.items() for part in ("--set", f"{name}={text}")]
        commands.append(shlex.join(["instar", "judge", folder, *choices]))
    chosen = ["--judging", judging] if judging != DEFAULT else []
    return [*commands, shlex.join(["instar", "report", folder, *chosen, "--out", "report.html"])]


# --- the page --------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def template(name: str) -> Template:
    """A page's template, which takes longer to compile than most reports to fill in."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["tight"] = _tight
    environment.filters["commands"] = commands
    environment.filters["unbroken"] = lambda text: Markup(unbroken(str(text)))
    # fmt: off
    environment.globals.update(
        percent=percent, interval=interval, measured=measured, severity_text=severity_text, headline=headline,
        roles_of=roles_of, slice_words=slice_words, slice_text=slice_text, effect_text=effect_text,
        points=points, points_between=points_between, p_text=p_text,
        level=LEVEL, interval_and_p=INTERVAL_AND_P, listed=listed, count_of=count_of, kinds_text=kinds_text,
        scores_text=scores_text, of_total=of_total, slug=slug, violating=violating, rate_words=rate_words,
        glossary=glossary, landmark_words=landmark_words,
        threshold_text=threshold_text, common_words=common_words, breakable=breakable,
    )
    # fmt: on
    return environment.get_template(name)


def page(report: Report) -> str:
    """The report as HTML. It asks nobody for anything, and works from a file without a network."""
    styles = "".join((STATIC / name).read_text("utf-8") for name in ("base.css", "report.css"))
    styles += "".join(
        f".{name}{{background-image:url({address})}}" for run in report.runs for name, address in run.thumbs.items()
    )
    script = "".join((STATIC / name).read_text("utf-8") for name in SCRIPTS)
    meanings, heads = (
        {word: meaning for run in reversed(report.runs) for word, meaning in words(run).items()}
        for words in (attrgetter("meanings"), attrgetter("heads"))
    )
    # fmt: off
    content = {
        "report": report, "contents": [], "meanings": meanings, "heads": heads, "version": __version__,
        "styles": styles, "script": script, "library": _library(), "data": script_json(_data(report)),
    }
    # fmt: on
    return template("report.html").render(content).lstrip()


def _tight(text: Markup) -> Markup:
    """Rows without the spaces around their cells: much of a large page is rows."""
    return Markup(re.sub(r"(</?(?:table|thead|tbody|tr|th|td)(?: [^<>]*)?>)\s+", r"\1", str(text)))


def _data(report: Report) -> dict[str, object]:
    """What the page's script needs: figures, their tables, and where each slider starts."""
    tables: dict[str, pl.DataFrame] = {}
    figures: dict[str, object] = {}
    sliders: dict[str, object] = {}

    def add(place: str, section: Section, made: Sequence[Chart]) -> None:
        sliders[place] = {
            "start": section.start,
            "values": [threshold_text(value).replace("∞", "inf") for value in section.grid],
            "labels": [section.with_unit(value) for value in section.grid],
            "noise": section.below_noise,
        }
        for chart in made:
            names = {name: f"{place}-{name}" for name in chart.tables}
            for name, table in chart.tables.items():
                if tables.setdefault(names[name], table) is not table and not tables[names[name]].equals(table):
                    raise ValueError(f"two tables are called {names[name]}")
            spec = {**chart.spec, "description": f"{chart.title}. {chart.caption}"}
            figures[f"{place}-{chart.name}"] = {"spec": spec, "tables": names}

    for place, one, made in report.comparisons:
        add(place, one.section, [*made, *(c for panel in report.panels[place] for c in panel.charts)])
    for run in report.runs:
        for part in run.parts:
            add(part.id, part.section, [*part.charts, *(c for panel in part.panels for c in panel.charts)])
    return {
        "figures": figures,
        "tables": {name: columns(table) for name, table in tables.items()},
        "sliders": sliders,
        "config": config(PAGE_FONT),
        "csv": {"formula": FORMULA, "number": NUMBER.pattern},
    }


def script_json(value: object) -> str:
    """JSON that stays data inside a script element, whatever its texts are."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@lru_cache(maxsize=1)
def _library() -> str:
    """Vega, Vega-Lite and vega-embed as one script."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
