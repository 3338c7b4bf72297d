"""What is read is what was written, whoever writes, moves or damages the folder meanwhile."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import xxhash

from instar.files import Elsewhere, place_file
from instar.store import VERDICT, Busy, Damaged, DatasetInfo, Gone, JudgingInfo, NoRun, Store, repair, rows_frame
from tests.manifests import manifest_of

INFO = JudgingInfo("0", {}, ("mirror(h) => poses",), (), ())
UNFINISHED = f".{'0c' * 16}.part"
"""What `place_file` calls a file that it has not finished."""


def a_run(folder: Path) -> Store:
    """A run folder with something in each of its tables, and verdicts."""
    store = Store(folder)
    store.write_manifest(manifest_of())
    for number in range(3):
        rows = [{"case": f"c{number}", "follow_up": "source", "draw": 0, "repeat": 0, "status": "ok"}]
        store.append_predictions(rows, "poses")
        store.append_cases([{"case": f"c{number}", "status": "ok"}], None)
    store.append_apart({"h": b"content"})
    name = xxhash.xxh3_128_hexdigest(b"mask")
    store.put_blob(name, b"mask")
    store.append_needs([{"case": "c0", "need": "zones", "status": "ok", "hash": name}])
    store.replace_verdicts("default", iter([verdicts(0.5), verdicts(0.25)]), INFO)
    return store


def verdicts(severity: float) -> pl.DataFrame:
    return rows_frame([{"case": "c0", "rule": "mirror(h) => poses", "severity": severity}], VERDICT)


def flip(path: Path, place: float = 0.5) -> None:
    """Change one bit, as a bad disk does."""
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def part_of(folder: Path) -> Path:
    return min(folder.glob("*.parquet"))


# --- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0.3, 0.9])
@pytest.mark.parametrize("table", ["predictions", "cases", "apart", "needs", "verdicts/default"])
def test_a_bit_that_changed_is_an_error_that_names_the_file_and_what_to_do(
    tmp_path: Path, table: str, place: float
) -> None:
    """Four of five flipped bits in a Parquet file are read without any complaint by polars."""
    store = a_run(tmp_path)
    path = part_of(tmp_path / table)
    flip(path, place)
    reads: dict[str, Callable[[], object]] = {
        "predictions": store.predictions,
        "cases": store.cases,
        "apart": lambda: store.read("apart", {}),
        "needs": store.needs,
        "verdicts/default": lambda: store.verdicts("default"),
    }
    with pytest.raises(Damaged) as error:
        reads[table]()
    assert str(path) in str(error.value) and f"`instar repair-run {tmp_path}`" in str(error.value)


def test_a_damaged_part_is_not_merged_into_a_whole_one(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    flip(part_of(tmp_path / "predictions"))
    for keep in (None, pl.col("status") == "error"):
        with pytest.raises(Damaged):
            store.merge("predictions", keep=keep)
    assert len(store.state("predictions")) == 3


def test_blobs_manifest_and_judgings_are_checked_too(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    (blob,) = (tmp_path / "blobs").glob("*/*")
    flip(blob)
    with pytest.raises(Damaged, match=blob.name):
        store.blob(blob.name)
    blob.unlink()
    with pytest.raises(Damaged, match="No such file"):
        store.blob(blob.name)
    text = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"seed": 0', '"seed": 1'))
    with pytest.raises(
        NoRun, match=r"manifest\.json is damaged .*does not fit its checksum.*restore it.*delete its entry"
    ):
        store.manifest()
    values = json.loads(text.replace('"seed": 0', '"seed": 1'))
    del values["checksum"]
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    assert store.manifest().seed == 1, "whoever edits it may say so"
    judging = tmp_path / "verdicts" / "default" / "judging.json"
    judging.write_text(judging.read_text().replace('"instar": "0"', '"instar": "1"'))
    assert store.judging_info("default") is None, "it is judged anew"


def test_a_folder_of_the_format_without_checksums_is_read_and_goes_on(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    for path in tmp_path.rglob("*.parquet"):
        path.rename(path.with_name(f"{path.name.partition('.')[0]}.parquet"))
    values = json.loads((tmp_path / "manifest.json").read_text())
    del values["checksum"]
    (tmp_path / "manifest.json").write_text(json.dumps({**values, "format": 2}))
    assert store.manifest() == manifest_of()
    assert store.predictions().height == 3 and store.verdicts("default").height == 2
    store.append_predictions([{"case": "d", "follow_up": "source", "draw": 0, "repeat": 0, "status": "ok"}], "poses")
    store.merge("predictions")
    assert store.predictions().height == 4
    cases = part_of(tmp_path / "cases")
    cases.write_bytes(cases.read_bytes()[:-20])
    with pytest.raises(Damaged, match=cases.name):
        store.cases()


def test_repair_sets_damage_aside_says_what_is_lost_and_forgets_what_stood_on_it(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    assert repair(store) == [] and not (tmp_path / "damaged").exists(), "a whole run stays as it is"
    row = {"case": "c9", "follow_up": "noise(1)", "draw": 0, "repeat": 0, "status": "ok", "mask": "h"}
    store.append_predictions([row], "poses")
    (blob,) = (tmp_path / "blobs").glob("*/*")
    damaged = [part_of(tmp_path / name) for name in ("predictions", "apart", "verdicts/default")] + [blob]
    for path in damaged:
        flip(path)
    repairs = {one.file: one for one in repair(store)}
    assert set(repairs) == {str(path.relative_to(tmp_path)) for path in damaged}
    for one in repairs.values():
        assert one.aside is not None and (tmp_path / one.aside).is_file()
    assert repairs[str(damaged[0].relative_to(tmp_path))].content == "1 predictions; the next run makes them again"
    assert store.predictions()["case"].sort().to_list() == ["c1", "c2"], "c9 named a content that is gone"
    assert store.needs().is_empty(), "it named a blob that is gone"
    info = store.judging_info("default")
    assert info is not None and info != INFO, "it is not up to date any more"
    assert repair(store) == [], "nothing is wrong that was not said"


def rows_of(*cases: str) -> pl.DataFrame:
    rows = [{"case": case, "follow_up": "source", "draw": 0, "repeat": 0, "status": "ok"} for case in cases]
    return rows_frame(rows, Store.prediction_schema(Store(Path()), "poses"))


@pytest.mark.parametrize(
    ("late", "kept"),
    [
        (("c2", "c3"), ["c0", "c1", "c2", "c3"]),  # the larger one
        (("c1", "c2", "c3"), ["c0", "c1", "c2"]),  # c1 is elsewhere, too
    ],
)
def test_two_parts_of_one_range_are_an_error_and_one_of_them_is_set_aside(
    tmp_path: Path, late: tuple[str, ...], kept: list[str]
) -> None:
    """A writer that slept wrote a part after another one had taken its place."""
    store = a_run(tmp_path)
    store.place.add("predictions", 2, 2, lambda path: rows_of(*late).write_parquet(path))
    first, second = sorted((tmp_path / "predictions").glob("0000000002-*"))
    for read in (store.predictions, lambda: store.merge("predictions"), lambda: store.state("predictions")):
        with pytest.raises(Damaged) as error:
            read()
        assert str(first) in str(error.value) and second.name in str(error.value)
    (one,) = repair(store)
    assert Path(one.file) in (first.relative_to(tmp_path), second.relative_to(tmp_path))
    assert one.aside is not None and (tmp_path / one.aside).is_file()
    assert (first.name if one.file.endswith(second.name) else second.name) in one.fault
    assert store.predictions()["case"].sort().to_list() == kept
    assert repair(store) == []


def test_without_a_part_that_repeats_nothing_all_of_a_range_are_set_aside(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    for late in ("c0", "c1"):
        store.place.add("predictions", 2, 3, lambda path, late=late: rows_of(late, "c3").write_parquet(path))  # type: ignore[misc]
    assert len(repair(store)) == 2
    assert store.predictions()["case"].sort().to_list() == ["c0", "c1", "c2"]


def test_ranges_that_overlap_are_an_error_and_one_that_lies_inside_another_is_merged_away(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    store.place.add("predictions", 0, 1, lambda path: rows_of("c0", "c1").write_parquet(path))
    assert store.predictions().height == 3
    store.place.add("predictions", 1, 3, lambda path: rows_of("c9").write_parquet(path))
    with pytest.raises(Damaged, match="0000000001-0000000003"):
        store.predictions()


def test_verdicts_of_one_range_are_judged_again(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    info = store.judging_info("default")
    assert info is not None and store.holds_verdicts("default", info)
    store.place.add("verdicts/default", 0, 0, lambda path: verdicts(0.75).write_parquet(path))
    assert not store.holds_verdicts("default", info)
    with pytest.raises(Damaged):
        store.verdicts("default")


# --- who else writes -------------------------------------------------------------------------------


def test_taking_the_lock_touches_nothing_that_is_not_ours(tmp_path: Path) -> None:
    users = [tmp_path / "photos" / UNFINISHED, tmp_path / ".film.part", tmp_path / UNFINISHED]
    (tmp_path / "photos").mkdir()
    for path in users:
        path.touch()
    with Store(tmp_path).lock():
        pass
    assert all(path.exists() for path in users), "a folder that is no run is somebody's own"
    store = a_run(tmp_path)
    under_way = tmp_path / "verdicts" / "default" / UNFINISHED
    under_way.touch()
    with store.lock():
        pass
    assert [path.exists() for path in (*users, under_way)] == [True, True, False, True], "a judge has its own lock"
    with store.judging_lock("default"):
        assert not under_way.exists()


def test_a_judge_goes_on_while_others_take_the_lock(tmp_path: Path) -> None:
    store = a_run(tmp_path)

    def slow(place: Path) -> None:
        place.write_bytes(b"half")
        with Store(tmp_path).lock():
            pass
        place.write_bytes(place.read_bytes() + b"whole")

    with store.judging_lock("default"):
        assert place_file(tmp_path / "verdicts" / "default" / "x", slow).read_bytes() == b"halfwhole"


def test_who_reads_verdicts_reads_those_of_one_judging(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    reading = store.verdict_parts("default")
    severities = [next(reading)["severity"][0]]
    store.replace_verdicts("default", iter([verdicts(0.75)]), INFO)
    assert store.verdicts("default")["severity"].to_list() == [0.75]
    severities += [part["severity"][0] for part in reading]
    assert severities == [0.5, 0.25]
    store.replace_verdicts("default", iter([verdicts(1.0)]), INFO)
    assert len(list((tmp_path / "verdicts" / "default").glob("*.parquet"))) == 1, "nobody reads the others any more"


def test_verdicts_that_are_gone_are_not_taken_for_none(tmp_path: Path) -> None:
    store = a_run(tmp_path)
    part_of(tmp_path / "verdicts" / "default").unlink()
    with pytest.raises(Damaged, match="part 0 of its verdicts is gone"):
        store.verdicts("default")


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_folder_that_goes_while_it_is_written_stops_the_writer(tmp_path: Path, how: str) -> None:
    store = a_run(tmp_path / "run")
    with store.lock():
        if how == "deleted":
            shutil.rmtree(store.folder)
        else:
            store.folder.rename(tmp_path / "elsewhere")
        if how == "replaced":
            a_run(tmp_path / "run")
            with Store(tmp_path / "run").lock(), pytest.raises(Busy), Store(tmp_path / "run").lock():
                pass
        writes: list[Callable[[], object]] = [
            lambda: store.append_apart({"x": b""}),
            lambda: store.write_manifest(manifest_of()),
            lambda: store.put_blob("ab", b""),
        ]
        for write in writes:
            with pytest.raises(Gone, match="moved, deleted or replaced while it was written to"):
                write()
    assert (tmp_path / "run").exists() is (how == "replaced")


# --- texts -----------------------------------------------------------------------------------------


def test_every_text_of_a_table_and_of_a_manifest_can_be_stored(tmp_path: Path) -> None:
    frame = rows_frame([{"a": "x\ud800", "b": ["\udce9", "y"]}, {}], {"a": pl.String, "b": pl.List(pl.String)})
    assert frame.rows() == [("x<U+D800>", ["<U+DCE9>", "y"]), (None, [])]
    store = Store(tmp_path)
    where = DatasetInfo.of("caf\udce9", "/photos/caf\udce9")
    store.write_manifest(manifest_of(suites=("s\ud800",), datasets=(where,)))
    assert store.manifest().suites == ("s<U+D800>",) and store.manifest().datasets == (where,)
    assert store.manifest().datasets[0].folder == "/photos/caf\udce9"


def test_a_run_folder_whose_name_is_no_text_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"caf<U\+DCE9>: a run folder has a name in UTF-8"):
        Store(tmp_path / "caf\udce9")


# --- what is no file of the run's own ---------------------------------------------------------------


def written(store: Store) -> None:
    """All that is written to a run folder when a run goes on and is judged."""
    with store.lock():
        store.append_predictions([{"case": "d", "follow_up": "source", "repeat": 0, "status": "ok"}], "poses")
    with store.judging_lock("default"):
        store.replace_verdicts("default", iter([verdicts(1.0)]), INFO)


@pytest.mark.parametrize(
    "name", ["predictions", "cases", "needs", "apart", "blobs", "verdicts", "verdicts/default", "lock", "manifest.json"]
)
def test_nothing_is_written_or_read_through_a_link(tmp_path: Path, name: str) -> None:
    """A run folder that somebody sent must not have us write, clear up or delete in a folder of the user's own."""
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    a_run(folder)
    (folder / name).replace(elsewhere) if (folder / name).exists() else elsewhere.touch()
    if elsewhere.is_dir():
        (elsewhere / UNFINISHED).write_text("somebody's own")
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    (folder / name).symlink_to(elsewhere)
    store = Store(folder)
    message = rf"{folder / name} is a link: nothing of a run .* put what it leads to in its place, or delete it"
    with pytest.raises(Elsewhere, match=message):
        written(store)
    with pytest.raises(Elsewhere, match=message):
        repair(store)
    reads: dict[str, Callable[[], object]] = {
        "predictions": store.predictions,
        "cases": store.cases,
        "needs": store.needs,
        "apart": lambda: store.read("apart", {}),
        "blobs": lambda: store.blob(xxhash.xxh3_128_hexdigest(b"mask")),
        "verdicts": lambda: store.verdicts("default"),
        "verdicts/default": lambda: store.verdicts("default"),
        "manifest.json": store.manifest,
    }
    if name in reads:
        with pytest.raises(Elsewhere, match=message):
            reads[name]()
    assert before == {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}


@pytest.mark.parametrize("what", ["link", "pipe"])
@pytest.mark.parametrize("table", ["predictions", "verdicts/default"])
def test_a_part_that_is_no_regular_file_is_damage_that_is_set_aside(tmp_path: Path, table: str, what: str) -> None:
    """A pipe would be waited for; what a link leads to is not the run's."""
    folder = tmp_path / "run"
    store = a_run(folder)
    part = part_of(folder / table)
    part.replace(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere") if what == "link" else os.mkfifo(part)
    content = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(Damaged, match="it is not a regular file"):
        store.predictions() if table == "predictions" else store.verdicts("default")
    assert [one.fault for one in repair(store)] == ["it is not a regular file"]
    assert (tmp_path / "elsewhere").read_bytes() == content


def test_a_run_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    """Whoever names `runs/latest` means where it leads."""
    a_run(tmp_path / "run")
    (tmp_path / "latest").symlink_to("run")
    store = Store(tmp_path / "latest")
    with store.lock():
        store.append_predictions([{"case": "d", "follow_up": "source", "repeat": 0, "status": "ok"}], "poses")
    assert store.predictions().height == 4
