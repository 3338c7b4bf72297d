"""A folder that somebody sent: whatever it names, no command imports or starts what the user did not name."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest
import uvicorn
from starlette.testclient import TestClient

import instar
from instar import registry
from instar.api import export_inputs, import_outputs
from instar.files import Elsewhere
from instar.registry import NotLoaded
from instar.viewer import application
from tests.cli.conftest import Typed, typed
from tests.cli.test_app import paths
from tests.toys import write_scenes

EVIL = "evil_code:fade(2)"
CODE = """
from pathlib import Path
Path({mark!r}).touch()

def fade(pixels, by: float):
    return pixels

def predict(pixels):
    return []
"""
ARGUMENTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("run",): ("tests.toys:rectangles", "mirror(h)", "PHOTOS", "--out", "RUN", "--workers", "0"),
    ("boundary",): ("tests.toys:rectangles", "gamma", "PHOTOS", "--out", "RUN", "--workers", "0", "--steps", "4"),
    ("search",): (
        *("tests.toys:rectangles", "mirror(h)+gamma(2)", "PHOTOS", "--out", "RUN", "--workers", "0", "--budget", "60"),
    ),
    ("merge",): ("RUN", "--out", "OUT/all"),
    ("judge",): ("RUN", "--set", "confidence=0.1"),
    ("show",): ("RUN",),
    ("tables",): ("RUN",),
    ("report",): ("RUN", "--out", "OUT/report.html", "--images", "4"),
    ("view",): ("RUN", "--no-browser"),
    ("draw",): ("RUN", "--out", "OUT"),
    ("compare",): ("RUN", "RUN"),
    ("history",): ("RUN",),
    ("marks",): ("RUN",),
    ("gate",): ("RUN", "--init", "--policy", "OUT/instar.toml"),
    ("check",): ("tests.toys:rectangles", "PHOTOS/000.png", "--out", "OUT"),
    ("rules",): (),
    ("suites",): (),
    ("systems",): (),
    ("datasets",): (),
    ("preview",): ("mirror(h)", "PHOTOS", "--out", "OUT/sheet.png"),
    ("select",): ("RUN",),
    ("slices",): ("RUN",),
    ("export",): ("PHOTOS", "mirror(h)", "--kind", "detections", "--out", "EXPORT"),
    ("import",): ("TABLE", "--export", "EXPORT", "--out", "OUT/imported"),
    ("numerics",): ("RUN/manifest.json", "--input", "0..255"),
    ("models",): (),
    ("models", "pull"): ("evil_code:fade",),
    ("models", "verify"): ("evil_code:fade",),
    ("models", "use"): ("evil_code:fade", "RUN/manifest.json"),
    ("repair-run",): ("RUN",),
    ("captions", "words"): ("a dog",),
    ("captions", "labels"): ("RUN",),
    ("captions", "suspicious"): ("RUN", "--out", "OUT"),
    ("pool", "make"): ("PHOTOS", "--out", "OUT/pool"),
    ("objects", "explain"): ("RUN", "000.png", "--out", "OUT/why.png"),
    ("objects", "evaluate"): ("tests.toys:rectangles", "PHOTOS"),
    ("objects", "repair"): ("RUN", "--train", "PHOTOS", "--out", "OUT/repaired", "--export-only"),
}
"""How every command is typed at a received folder: a new command has to be added here."""
ASKS = {("run",), ("export",)}
"""What needs the code that the folder names, and says so."""
WORK = {
    (name,)
    for name in ("show", "judge", "report", "view", "draw", "compare", "history", "marks", "gate", "select", "slices")
}
"""What works without it."""


def darker(pixels: np.ndarray, by: float) -> np.ndarray:
    """A transformation of the user's own."""
    return (pixels / by).astype(np.uint8)


def rewrite(part: Path, column: pl.Expr) -> None:
    """Another column in a part of a table; its new name has no checksum, which whoever makes a folder may leave out."""
    pl.read_parquet(part).with_columns(column).write_parquet(part.with_name(f"{part.name.split('.')[0]}.parquet"))
    part.unlink()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The photos, and a run and an export of them whose every name is code: a module, a program, a path."""
    folder = tmp_path_factory.mktemp("received")
    photos = write_scenes(folder / "photos", 2)
    (folder / "evil_code.py").write_text(CODE.format(mark=str(folder / "touched")))
    (folder / "evil.toml").write_text(f'rules = ["{EVIL}"]')
    instar.run("tests.engine.zones:forgetful", "mirror(h)+gamma(2)", photos, out=folder / "run", workers=0)
    shutil.rmtree(folder / "run/verdicts")
    for part in folder.glob("run/predictions/*.parquet"):
        rewrite(part, pl.col("follow_up").replace("gamma(2)", EVIL))
    program = {"name": f'process("touch {folder / "touched"}")', "fingerprint": "x"}
    code = {"name": "evil_code:predict", "fingerprint": "x"}
    manifest = json.loads((folder / "run/manifest.json").read_text())
    manifest["system"]["name"] = code["name"]
    manifest |= {
        "rules": ["mirror(h) => detections", f"{EVIL} => detections"],
        "suites": ["evil_code:suite", "boundary(evil_code:fade)", EVIL, f"mirror(h) + {EVIL}", "evil.toml"],
        "panels": [],
        "providers": {"zones": program, "objects": code},
        "datasets": [{"name": "evil_code:data", "root": "/"}],
    }
    del manifest["checksum"]  # who makes a hostile folder can make its checksum, too
    (folder / "run/manifest.json").write_text(json.dumps(manifest))
    export_inputs(photos, "mirror(h)", kind="detections", out=folder / "export")
    exported = json.loads((folder / "export/export.json").read_text())
    exported |= {"rules": [*exported["rules"], f"{EVIL} => detections"], "providers": {"zones": program}}
    del exported["checksum"]
    (folder / "export/export.json").write_text(json.dumps(exported))
    lines = [
        {"case": "000.png", "follow_up": name, "boxes": [], "labels": []} for name in ("source", "mirror(h)", EVIL)
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def received(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in a place where its code could be imported; nothing has happened yet."""
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.delitem(sys.modules, "evil_code", raising=False)
    (here / "touched").unlink(missing_ok=True)
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: None)
    for name in ("run", "export"):
        shutil.copytree(here / name, tmp_path / name)
    return tmp_path


def typed_at(received: Path, path: tuple[str, ...], here: Path, *more: str) -> Typed:
    meant = {"PHOTOS": here / "photos", "RUN": received / "run", "EXPORT": received / "export", "OUT": received / "out"}
    arguments = [
        str(Path(meant[first], *rest)) if (first := argument.split("/")[0]) in meant else argument
        for argument in (*ARGUMENTS[path], *more)
        for rest in [argument.split("/")[1:]]
    ]
    (received / "out").mkdir(exist_ok=True)
    return typed(*path, *(str(here / "answers.jsonl") if one == "TABLE" else one for one in arguments))


def test_every_command_is_tried() -> None:
    assert not set(paths()) - set(ARGUMENTS), "a new command has to be typed at the received folder, too"


@pytest.mark.parametrize("path", [path for path in paths() if path in ARGUMENTS], ids=" ".join)
def test_no_command_runs_what_a_received_folder_names(path: tuple[str, ...], received: Path, here: Path) -> None:
    ended = typed_at(received, path, here)
    assert not (here / "touched").exists() and "evil_code" not in sys.modules
    assert ended.code in ((0,) if path in WORK else (0, 1, 2)), ended.stderr
    if path in ASKS:
        assert ended.code == 2
        assert "zones came from process" in ended.stderr and "give --trust" in ended.stderr
        ended = typed_at(received, path, here, "--zones", "none", "--objects", "none")
        assert "made by evil_code:fade" in ended.stderr and "give --trust" in ended.stderr
        assert not (here / "touched").exists()


def test_what_is_not_loaded_is_shown_as_a_name(received: Path) -> None:
    run = instar.open_run(received / "run")
    assert run.unloaded() == ["evil_code:fade"]
    rates = run.rates()
    assert rates.select("rule", "judged", "violated").rows() == [
        ("mirror(h) => detections", 2, 2),
        (f"{EVIL} => detections", 2, 2),
    ], "verdicts need no code"
    assert EVIL in typed("show", received / "run").stdout
    drawn = typed("draw", received / "run", "--out", received / "out")
    assert "evil_code:fade is code, and was not loaded" in drawn.stdout
    assert "follow-ups that evil_code:fade made are not drawn" in drawn.stderr and "--trust loads it" in drawn.stderr


def test_the_viewer_runs_nothing_either(received: Path, here: Path) -> None:
    made = application([received / "run"], port=8000)
    with TestClient(made, base_url="http://127.0.0.1:8000") as client:
        rule = quote(f"{EVIL} => detections")
        for address in (
            "/",
            "/gallery",
            f"/rule?rule={rule}",
            f"/case?case=000.png&shown={rule}",
            "/explain?case=000.png",
        ):
            assert client.get(address).status_code < 500, address
        picture = client.get(f"/picture?case=000.png&rule={rule}&side=follow-up")
        assert "evil_code:fade is code" in " ".join(picture.text.split("<title>")[1].split())
        assert client.get(f"/rule?rule={quote('evil_code:other(1)')}").status_code in (200, 404)
    assert not (here / "touched").exists()


@pytest.mark.parametrize("where", ["system", "truth", "output", "panels"])
def test_a_kind_or_panel_that_nobody_registered_is_only_a_name(received: Path, here: Path, where: str) -> None:
    path = received / "run/manifest.json"
    manifest = json.loads(path.read_text())
    kind = {**(manifest[where] or {}), "kind": "evil_code:fade"} if where != "panels" else ["evil_code:fade"]
    path.write_text(json.dumps({**manifest, where: kind}))
    for command in (("show",), ("draw",), ("slices",)):
        typed_at(received, command, here)
    assert not (here / "touched").exists()


def test_a_panel_that_nobody_registered_is_left_out_with_one_line(received: Path, here: Path) -> None:
    """A run of a colleague whose plug-in is not installed here is shown, reported and viewed all the same."""
    path = received / "run/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "panels": ["objects", "colleague"]}))
    shown = typed_at(received, ("show",), here)
    assert shown.code == 0 and EVIL in shown.stdout
    assert shown.stderr.count("names a panel 'colleague', which nothing that is installed brings; it is left out") == 1
    for command in (("report",), ("view",)):
        assert typed_at(received, command, here).code == 0, command


def test_a_table_names_no_code_either(received: Path, here: Path) -> None:
    lines = [json.loads(line) | {"width": 160, "height": 120} for line in (here / "answers.jsonl").open()]
    (received / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    refused = typed("import", received / "answers.jsonl", "--out", received / "out")
    assert "evil_code:fade, which makes it, is not loaded because a file names it" in refused.stderr
    assert not (here / "touched").exists()


def test_who_trusts_a_folder_has_its_code_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own run: shown without a word, drawn and continued with their own function once they say so."""
    monkeypatch.setattr(registry, "_loaded", {})
    photos = write_scenes(tmp_path / "photos", 1)
    darker = "tests.cli.test_trust:darker(2)"
    run = instar.run("tests.engine.zones:forgetful", darker, photos, out=tmp_path / "run", workers=0)
    assert run.unloaded() == [], "the user named it in this process"
    monkeypatch.setattr(registry, "_loaded", {})
    assert typed("show", tmp_path / "run").code == 0
    refused = typed("draw", tmp_path / "run", "--out", tmp_path / "none")
    assert "not drawn" in refused.stdout and not list((tmp_path / "none").glob("*.png"))
    with pytest.raises(
        NotLoaded, match=r"made by tests.cli.test_trust:darker.* name its rules in `suite`, or give `trust`"
    ):
        instar.run("tests.engine.zones:forgetful", "mirror(h)", photos, out=tmp_path / "run", workers=0)
    trusted = typed("draw", tmp_path / "run", "--out", tmp_path / "pics", "--trust")
    assert "not drawn" not in trusted.stdout and list((tmp_path / "pics").glob("*.png"))
    monkeypatch.setattr(registry, "_loaded", {})
    more = instar.run("tests.engine.zones:forgetful", "mirror(h)", photos, out=tmp_path / "run", workers=0, trust=True)
    assert more.predictions().height == 3


def test_a_provider_that_a_folder_names_is_named_again(tmp_path: Path) -> None:
    photos, zones = write_scenes(tmp_path / "photos", 1), "tests.engine.zones:painted"
    rules, out = "colour_wheel(90, red)", tmp_path / "run"
    instar.run("tests.toys:rectangles", rules, photos, out=out, workers=0, zones=zones)
    with pytest.raises(NotLoaded, match=f"zones came from {zones}.*name it again as `zones`, or give `trust`"):
        instar.run("tests.toys:rectangles", rules, photos, out=out, workers=0)
    for more in ({"zones": zones}, {"trust": True}):
        assert instar.run("tests.toys:rectangles", rules, photos, out=out, workers=0, **more).outcome.fresh == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["seed", "thresholds"])
def test_a_number_of_400_digits_in_a_manifest_is_damage(received: Path, field: str) -> None:
    path = received / "run/manifest.json"
    manifest = json.loads(path.read_text())
    manifest[field] = 10**400 if field == "seed" else {"*": 10**400}
    path.write_text(json.dumps(manifest))
    refused = typed("show", received / "run")
    assert refused.code == 2 and "manifest.json is damaged (a number has 401 digits" in refused.stderr


# --- files elsewhere


def test_a_picture_is_drawn_only_where_its_content_is_known(received: Path, here: Path) -> None:
    """Whoever makes a run may name any file of the user's in it; without the hash of its content it is not shown."""
    for part in (received / "run/cases").glob("*.parquet"):
        rewrite(part, pl.lit(None, pl.String).alias("hash"))
    drawn = typed_at(received, ("draw",), here, "--rule", "mirror(h)")
    assert drawn.stdout.count("not the input that was tested") == 2 and not list((received / "out").glob("*.png"))


@pytest.mark.parametrize("what", ["blob", "image", "mask"])
def test_an_export_reads_and_writes_nothing_elsewhere(received: Path, here: Path, what: str) -> None:
    """Names in an export are no paths out of it: not to write what it needs, nor to take a photo of the user's."""
    secret = here / "photos/001.png"
    for file in (received / "export/inputs").glob("000*/case.json"):
        record = json.loads(file.read_text())
        del record["checksum"]
        content = {"base64": base64.b64encode(b"x").decode()}
        if what == "blob":
            target = f"../../../{received.name}/planted"
            need = {"need": "zones", "provider": "x", "fingerprint": "x", "status": "ok", "message": None}
            record["needs"] = [{**need, "hash": target, "header": '{"kind": "zones"}', "data": content}]
        if what == "image":
            record["case"]["path"] = None
            record["inputs"][0]["file"] = str(secret)
        if what == "mask":
            record["inputs"][1]["change"] |= {"mask": str(secret)}
        file.write_text(json.dumps(record))
    lines = (here / "answers.jsonl").read_text().splitlines()[:2]
    (received / "answers.jsonl").write_text("\n".join(lines))
    with pytest.raises((ValueError, Elsewhere), match=r"no hash of its content|lies elsewhere"):
        import_outputs(received / "answers.jsonl", out=received / "imported", export=received / "export")
    assert not list(received.rglob("planted")) and not list(received.parent.rglob("planted"))
