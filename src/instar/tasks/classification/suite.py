"""What a photograph shows does not depend on these changes. Colours are left alone: an orange is no lemon."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from instar.suites import Suite, listed_suite

# fmt: off
RULES = (
    "identity", "mirror(h)", "rotation(5)", "stretch(1, 0.8)", "stretch(1.25, 1)", "resolution(0.5)",
    "gamma(0.5)", "gamma(1.5)", "brightness(20, 0.8)", "contrast(0.7)", "blur(1)", "motion(5, 0)", "noise(8)",
)
# fmt: on

SUITES: Mapping[str, Callable[[], Suite]] = {
    "classification": lambda: listed_suite(
        "classification",
        RULES,
        "A classifier of photographs: geometry, light, blur and noise.",
        "labels",
        panels=("classes",),
    )
}
