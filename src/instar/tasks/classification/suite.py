"""What a photograph shows does not depend on these changes. Colours are left alone: an orange is no lemon.

The smallest set that catches every seeded fault of classifiers, and what a purpose says is kept (`studies.suites`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.suites import Suite, listed_suite

RULES = {
    "identity": "answers that change by themselves, by chance or from a memory of the image before",
    "mirror(h)": "a class that depends on which way things look, and sides that are not exchanged",
    "shift(0.1, 0.1)": "a class that depends on where things are; kept because it alone leaves the frame as it is",
    "crop(0.9)": "a class that depends on what is at the rim, or on how large things are",
    "pad(0.15)": "margins that are taken for a part of the image, and mistakes on small things",
    "stretch(1, 0.8)": "an aspect that is lost on the way into the model",
    "rotation(5)": "things that are known only upright",
    "resolution(0.5)": "a model that needs a certain size of image",
    "gamma(0.5)": "mistakes on bright images",
    "gamma(1.5)": "mistakes on dark images",
    "contrast(0.7)": "mistakes on flat images",
    "blur(1)": "a class that depends on fine texture",
    "noise(8)": "a class that noise turns into another",
    "jpeg(30)": "a class that compression turns into another",
}

SUITES: Mapping[str, Callable[[], Suite]] = {
    "labels": lambda: listed_suite(
        "labels",
        tuple(RULES),
        "A classifier of photographs: place, geometry, light, blur, noise and compression.",
        "labels",
        panels=("classes",),
        purposes=RULES,
    )
}
