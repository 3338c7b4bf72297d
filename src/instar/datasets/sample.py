"""Sample photos: public-domain pictures of people that come inside installed packages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from instar.case import Case
from instar.datasets.dataset import Dataset, DatasetFamily

PHOTOS = (
    ("astronaut.png", "skimage", "data/astronaut.png", "Eileen Collins, NASA, public domain (scikit-image)"),
    ("cameraman.png", "skimage", "data/camera.png", "Cameraman, Lav Varshney, CC0 (scikit-image)"),
    (
        "grace_hopper.jpg",
        "matplotlib",
        "mpl-data/sample_data/grace_hopper.jpg",
        "Grace Hopper, James S. Davis, United States Navy, public domain (Matplotlib)",
    ),
)


def _there() -> list[tuple[str, Path, str]]:
    """Id, path and credit of the photos that are installed. The packages are looked into, not imported."""
    photos = []
    for name, package, inside, credit in PHOTOS:
        spec = find_spec(package)
        places = [Path(folder) / inside for folder in (spec.submodule_search_locations or ())] if spec else []
        photos += [(name, place, credit) for place in places if place.is_file()]
    return photos


def _open(name: str) -> Dataset:
    there = _there()
    if not there:
        raise FileNotFoundError(
            "the sample photos come inside other packages, none of which is installed: pip install 'instar[demo]'"
        )

    def cases() -> Iterator[Case]:
        for photo, path, credit in there:
            yield Case(photo, path=str(path), attributes={"credit": credit})

    return Dataset(name, str(there[0][1].parent), cases, notes=tuple(f"{p}: {credit}" for p, _, credit in there))


SAMPLE = DatasetFamily("sample-photos", _open, (), "Public-domain photos of people, out of installed packages.")
