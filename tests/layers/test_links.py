"""Links in README and docs lead somewhere: to a file of the repository, and to a heading that the page has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that a renderer of Markdown gives to headings: lower case, hyphens for spaces, no other signs."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}, which has no such heading"


def test_every_picture_has_a_source_and_a_licence() -> None:
    folder = ROOT / "docs" / "images"
    rows = re.findall(
        r"^\| `([^`]+)` \|.* \| .+ \| .+ \| .+ \|$", (folder / "SOURCES.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(path.name for path in folder.iterdir() if path.name != "SOURCES.md")


def test_every_page_is_linked() -> None:
    """From README, or from a page that README leads to."""
    links = set(re.findall(r"\]\(docs/([\w-]+\.md)", prose(ROOT / "README.md")))
    pages = {page.name for page in PAGES if page.parent.name == "docs"}
    linked = links | {link for page in PAGES for link in re.findall(r"\]\(([\w-]+\.md)", prose(page))}
    assert pages <= linked, f"no page links to {sorted(pages - linked)}"
