"""Pulling models, with an npm that is a small script: no network."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
import tarfile
from pathlib import Path

import pytest

from instar.systems import MissingExtra, ModelError, default_zones, model_path, models, pull, use, verify
from instar.systems.models import Model

CONTENT = b"weights" * 1000
MEMBER = "package/files/toy.tflite"
MODULE = sys.modules["instar.systems.models"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INSTAR_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Model:
    digest = hashlib.sha256(CONTENT).hexdigest()
    model = Model("toy", "tests", "toy-package@1.0.0", MEMBER, len(CONTENT), digest, "MIT")
    monkeypatch.setitem(MODULE._MODELS, "toy", model)
    return model


def archive(path: Path, *members: tuple[str, bytes | None]) -> Path:
    """A .tgz of files; None makes a link to /etc/passwd."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, packs: Path | None = None, fails: str = "") -> Path:
    """Put a fake npm first on PATH; it writes its arguments down and leaves `packs` where it was started."""
    place = tmp_path / "bin"
    place.mkdir()
    script = place / "npm"
    copy = f"import shutil; shutil.copy({str(packs)!r}, 'toy-package-1.0.0.tgz')" if packs else ""
    script.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"open({str(tmp_path / 'asked.json')!r}, 'w').write(json.dumps(sys.argv[1:]))\n{copy}\n"
        + (f"sys.stderr.write({fails!r}); sys.exit(1)\n" if fails else "")
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return place


def test_good_pull(toy: Model, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = archive(tmp_path / "a.tgz", ("package/README.md", b"hi"), (MEMBER, CONTENT))
    npm(tmp_path, monkeypatch, packs=both)
    assert verify("toy") == "missing"
    with pytest.raises(MissingExtra, match=r"instar models pull toy.*instar models use toy PATH"):
        model_path("toy")
    said: list[str] = []
    assert pull("toy", progress=said.append).read_bytes() == CONTENT
    assert verify("toy") == "ok"
    assert model_path("toy") == folder / "toy.tflite"
    assert (tmp_path / "asked.json").read_text() == '["pack", "--ignore-scripts", "toy-package@1.0.0"]'
    assert any("verified" in text for text in said)
    assert [path.name for path in folder.iterdir()] == ["toy.tflite"]  # nothing temporary is left


def test_pulled_already(toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.path.parent.mkdir(parents=True)
    toy.path.write_bytes(CONTENT)
    npm(tmp_path, monkeypatch, fails="must not be started")
    assert pull("toy") == toy.path


def test_damaged_file_is_pulled_again(toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.path.parent.mkdir(parents=True)
    toy.path.write_bytes(CONTENT[:-1] + b"x")
    assert verify("toy") == "damaged"
    with pytest.raises(MissingExtra, match="damaged"):
        model_path("toy")
    npm(tmp_path, monkeypatch, packs=archive(tmp_path / "a.tgz", (MEMBER, CONTENT)))
    pull("toy")
    assert verify("toy") == "ok"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([(MEMBER, b"x" * len(CONTENT))], "SHA-256"),
        ([(MEMBER, b"short")], "not a file of 7,000 bytes"),
        ([(MEMBER, None)], "not a file of 7,000 bytes"),
        ([("package/other", b"x")], "there is no package/files/toy.tflite"),
        ([(f"../../{MEMBER}", CONTENT)], "there is no package/files/toy.tflite"),
    ],
)
def test_wrong_content_is_not_kept(
    toy: Model,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    members: list[tuple[str, bytes | None]],
    why: str,
) -> None:
    npm(tmp_path, monkeypatch, packs=archive(tmp_path / "a.tgz", *members))
    with pytest.raises(ModelError, match=why):
        pull("toy")
    assert verify("toy") == "missing"
    assert list(folder.iterdir()) == []


def test_no_member_leaves_the_folder(toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = [("../evil", b"1"), ("../../../evil", b"1"), (str(tmp_path / "evil"), b"1")]
    npm(tmp_path, monkeypatch, packs=archive(tmp_path / "a.tgz", *evil, (MEMBER, CONTENT)))
    pull("toy")
    assert not list(tmp_path.rglob("evil"))


def test_archive_cut_short(toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = archive(tmp_path / "a.tgz", ("package/noise", os.urandom(50_000)), (MEMBER, CONTENT))
    whole.write_bytes(whole.read_bytes()[:20_000])
    npm(tmp_path, monkeypatch, packs=whole)
    with pytest.raises(ModelError, match="damaged"):
        pull("toy")


def test_without_npm(toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError, match=r"npm, which is not installed.*instar models use toy PATH"):
        pull("toy")


def test_offline(toy: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm(tmp_path, monkeypatch, fails="npm ERR! code ENOTFOUND\n")
    with pytest.raises(ModelError, match=r"(?s)offline.*ENOTFOUND.*instar models use toy PATH"):
        pull("toy")


def test_use(toy: Model, tmp_path: Path) -> None:
    given = tmp_path / "my copy.bin"
    given.write_bytes(CONTENT)
    assert use("toy", given).read_bytes() == CONTENT
    assert use("toy", toy.path) == toy.path  # itself
    given.write_bytes(b"else")
    with pytest.raises(ModelError, match="is not toy"):
        use("toy", given)
    assert verify("toy") == "ok"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        use("toy", tmp_path / "nowhere")


def test_unknown_name() -> None:
    with pytest.raises(KeyError, match="did you mean 'selfie-multiclass'"):
        pull("selfie-multiklass")


def test_the_table() -> None:
    for model in models():
        assert len(model.sha256) == 64
        assert int(model.sha256, 16)
        assert model.member.startswith("package/")
        assert "@" in model.package[1:]
        assert model.state == "missing"
    assert [model.name for model in models()] == [
        "efficientdet-lite0",
        "efficientdet-lite1",
        "efficientdet-lite2",
        "pose-landmark-heavy",
        "pose-landmark-lite",
        "selfie-multiclass",
    ]


def test_which_segmenter(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(*, model: bool, litert: bool, mediapipe: bool) -> None:
        monkeypatch.setattr(MODULE, "verify", lambda name: "ok" if model else "missing")
        monkeypatch.setattr(MODULE, "find_spec", lambda name: object() if litert else None)
        monkeypatch.setattr(MODULE, "_has_solutions", lambda: mediapipe)

    here(model=True, litert=True, mediapipe=False)
    assert default_zones() == "selfie-multiclass"
    here(model=True, litert=False, mediapipe=True)
    assert default_zones() == "mediapipe-selfie"
    here(model=False, litert=True, mediapipe=True)
    assert default_zones() == "mediapipe-selfie"
    here(model=False, litert=False, mediapipe=False)
    assert default_zones() is None
