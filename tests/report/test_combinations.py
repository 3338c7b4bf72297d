"""What a search for combinations found, in the report."""

from __future__ import annotations

from pathlib import Path

from instar.combining import search
from instar.report.page import make_report, page
from tests.missing import module
from tests.quality.combined_faults import dark_and_soft
from tests.quality.combined_faults import photos as paint


def test_the_legend_stands_before_the_pictures_of_combinations(tmp_path: Path) -> None:
    """It stood after all of them."""
    module("vl_convert")
    rules = "mirror(h)+brightness(0, 0.75)+blur(1)+noise(4)"
    photos = paint(tmp_path / "photos", 8)
    run = search(dark_and_soft, rules, photos, out=tmp_path / "run", budget=120, visual=0.5, workers=0)
    report = make_report([run], images=2)
    assert any(pair.draws for pair in report.runs[0].combinations)
    html = page(report)
    part = html[html.index("Combinations in pictures</h2>") :]
    assert part.index('class="legend"') < part.index('class="pairs"')
