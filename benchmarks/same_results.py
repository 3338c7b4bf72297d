"""Whether two versions of Instar give the same results: the predictions and verdicts of runs made with each.

    python -m benchmarks.same_results BEFORE AFTER [--renamed old=new ...]

BEFORE and AFTER are folders of run folders with the same names, made by the same commands on the same machine. Only
the Parquet tables and the list of rules are read, so that any version's folder can be compared. Times are left out.
The last line is a JSON object. The exit code is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl

NOT_COMPARED = ("seconds",)
TABLES = {"predictions": ["case", "follow_up", "draw", "repeat"], "cases": ["case"]}
VERDICT_KEY = ["rule", "case", "target"]


def table(folder: Path, renamed: Mapping[str, str]) -> pl.DataFrame:
    """The live parts of a table, with the columns that both versions may call differently under one name."""
    parts = sorted(folder.glob("*.parquet"))
    live: list[Path] = []
    for part in sorted(parts, key=lambda path: (path.stem[:10], -int(path.stem[11:21]))):  # the checksum follows
        if not live or part.stem[11:21] > live[-1].stem[11:21]:
            live.append(part)
    if not live:
        return pl.DataFrame()
    frame = pl.concat([pl.read_parquet(part, glob=False) for part in live], how="diagonal")
    frame = frame.drop([name for name in NOT_COMPARED if name in frame.columns])
    return frame.rename({old: new for old, new in renamed.items() if old in frame.columns})


def difference(before: pl.DataFrame, after: pl.DataFrame, key: list[str]) -> str | None:
    """The first difference of two tables in words; None where they are equal."""
    if before.height != after.height:
        return f"{before.height} rows before, {after.height} after"
    if set(before.columns) != set(after.columns):
        return f"columns: {sorted(set(before.columns) ^ set(after.columns))}"
    if not before.width:
        return None
    before, after = (frame.select(sorted(before.columns)).sort(key, nulls_last=True) for frame in (before, after))
    for name in before.columns:
        if not before[name].equals(after[name].cast(before[name].dtype), null_equal=True):
            rows = [n for n in range(before.height) if str(before[name][n]) != str(after[name][n])]
            place = before.select(key).row(rows[0]) if rows else "?"
            return f"column {name} differs in {len(rows)} rows, first at {place}"
    return None


def compared(before: Path, after: Path, renamed: Mapping[str, str]) -> dict[str, str]:
    """What differs between two run folders, by table."""
    rules = [json.loads((folder / "manifest.json").read_text("utf-8"))["rules"] for folder in (before, after)]
    differences = (
        {} if rules[0] == rules[1] else {"rules": f"{len(set(rules[0]) ^ set(rules[1]))} differ, or the order"}
    )
    tables = [(name, name, key) for name, key in TABLES.items()]
    tables += [
        (f"verdicts/{path.name}", f"verdicts/{path.name}", VERDICT_KEY) for path in (before / "verdicts").iterdir()
    ]
    for label, name, key in tables:
        words = difference(table(before / name, renamed), table(after / name, {}), key)
        if words:
            differences[label] = words
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--renamed", nargs="*", default=[], metavar="OLD=NEW", help="columns that were renamed")
    options = parser.parse_args()
    renamed = dict(pair.split("=", 1) for pair in options.renamed)
    results: dict[str, dict[str, str]] = {}
    for folder in sorted(path.parent for path in options.before.glob("*/manifest.json")):
        other = options.after / folder.name
        results[folder.name] = (
            compared(folder, other, renamed) if (other / "manifest.json").is_file() else {"run": "there is none after"}
        )
        print(f"{folder.name}: {results[folder.name] or 'equal'}")
    different = {name: differences for name, differences in results.items() if differences}
    print(json.dumps({"runs": len(results), "equal": len(results) - len(different), "different": different}))
    return 1 if different or not results else 0


if __name__ == "__main__":
    sys.exit(main())
