"""What moves the classes with the image, and what leaves them where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.suites import Suite, listed_suite

# fmt: off
RULES = (
    "identity", "mirror(h)", "rotation(5)", "stretch(1, 0.8)", "stretch(1.25, 1)", "resolution(0.7)",
    "gamma(0.5)", "gamma(1.5)", "brightness(20, 0.8)", "contrast(0.7)", "blur(1)", "motion(5, 0)", "noise(8)",
    "greyscale",
)
# fmt: on

SUITES: Mapping[str, Callable[[], Suite]] = {
    "segmentation": lambda: listed_suite(
        "segmentation",
        RULES,
        "A segmenter: geometry, light, blur, noise and colour.",
        "segmentation",
        panels=("overlaps",),
    )
}
