"""What moves the classes with the image, and what leaves them where they are.

The smallest set that catches every seeded fault of segmenters, and what a purpose says is kept (`studies.suites`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.suites import Suite, listed_suite

RULES = {
    "identity": "maps that change by themselves, by chance or from a memory of the image before",
    "mirror(h)": "a map that is not turned with the image or sits beside it, and sides that are not exchanged",
    "mirror(both)": "left and right named by the image, and mistakes on things upside down",
    "shift(0.1, 0.1)": "regions that are never seen, and classes that depend on their place; kept because it alone "
    "leaves size and frame as they are",
    "crop(0.8)": "a map that is stretched over the wrong frame",
    "pad(0.2, top_bottom)": "margins that are taken for a part of the image",
    "stretch(1, 0.6)": "an aspect that is lost on the way into the model",
    "rotation(5)": "things that are known only upright",
    "resolution(0.7)": "a model that needs a certain size of image",
    "gamma(0.5)": "mistakes on bright images",
    "gamma(1.5)": "mistakes on dark images",
    "contrast(0.7)": "mistakes on flat images",
    "blur(1)": "classes that depend on fine texture",
    "noise(8)": "classes that noise scatters",
    "jpeg(30)": "classes that compression turns into others",
}

SUITES: Mapping[str, Callable[[], Suite]] = {
    "segmentation": lambda: listed_suite(
        "segmentation",
        tuple(RULES),
        "A segmenter: place, geometry, light, blur, noise and compression.",
        "segmentation",
        panels=("overlaps",),
        purposes=RULES,
    )
}
