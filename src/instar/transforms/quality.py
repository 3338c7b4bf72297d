"""Image quality: what cameras and codecs do. Every point stays where it was, relative to the frame."""

from __future__ import annotations

from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from instar.image import bgr_to_rgb
from instar.levels import brightness_table, contrast_table, gamma_table, motion_kernel
from instar.spelling import Parameter, Scale
from instar.transforms.family import TransformationFamily
from instar.transforms.lookup import looked_up
from instar.transforms.spatial import rescale
from instar.transforms.words import counted, digits, percentage

Pixels = npt.NDArray[np.uint8]


def gamma(pixels: Pixels, *, gamma: float) -> Pixels:
    return looked_up(pixels, gamma_table(gamma))


def brightness(pixels: Pixels, *, add: float, multiply: float, overflow: Literal["saturate", "absolute"]) -> Pixels:
    return looked_up(pixels, brightness_table(add, multiply, overflow))


def contrast(pixels: Pixels, *, factor: float) -> Pixels:
    return looked_up(pixels, contrast_table(factor))


_INTELS_SIZE = 5
"""Up to this size Intel's library, which OpenCV asks where it has it, filters in half the time of OpenCV's own code;
beyond, in twice the time. They differ in rounding: by one grey level, in ten of a million values."""


def bilateral(pixels: Pixels, *, strength: float, size: int) -> Pixels:
    allowed = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(allowed and size <= _INTELS_SIZE)  # for this thread alone
    try:
        return np.asarray(cv2.bilateralFilter(pixels, size, strength, strength), dtype=np.uint8)
    finally:
        cv2.ipp.setUseIPP(allowed)


def blur(pixels: Pixels, *, sigma: float) -> Pixels:
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101), np.uint8)


def jpeg(pixels: Pixels, *, quality: int) -> Pixels:
    """Encoded and decoded by OpenCV, with the chroma at half the resolution as most encoders have it."""
    bgr = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = bgr_to_rgb(cv2.imdecode(encoded, cv2.IMREAD_COLOR))
    assert decoded is not None  # it was encoded just now
    return decoded


def motion(
    pixels: Pixels, *, size: int, direction: float, kernel: Literal["centred", "unnormalised", "square"]
) -> Pixels:
    line = motion_kernel(size, direction, kernel)
    return np.asarray(cv2.filter2D(pixels, -1, line), dtype=np.uint8)


def _has_square_kernel(kernel: str, direction: float, **_: object) -> None:
    if kernel == "square" and direction not in (0, 45, 90, 135):
        raise ValueError(
            f"transformation motion: kernel=square takes the directions 0, 45, 90 and 135, not {direction:g}"
        )


def _gamma_words(gamma: float) -> str:
    effect = "brighter, " if gamma < 1 else "darker, " if gamma > 1 else ""
    return f"{effect}gamma {digits(gamma)}"


def _brightness_words(add: float, multiply: float) -> str:
    factor = f"brightness at {percentage(multiply)}" if multiply != 1 or not add else "brightness"
    if not add:
        return factor
    return f"{factor} {'plus' if add > 0 else 'minus'} {counted(abs(add), 'grey level')}"


# fmt: off
FAMILIES = (
    TransformationFamily("resolution", "quality", "spatial", rescale, (
        Parameter("factor", "float", low=0, open_low=True, high=1, open_high=True, ordered=True,
                  help="of both sides", scale=Scale(1, 0.02, steps="log")),
    ), help="Fewer pixels by area resampling, not scaled back: the system sees a smaller image.", resampling="area",
        words="shrunk to {factor:%} of both sides"),
    TransformationFamily("gamma", "quality", "photometric", gamma, (
        Parameter("gamma", "float", low=0, open_low=True, high=100, ordered=True,
                  help="below 1 brightens, above 1 darkens", scale=Scale(1, 0.1, 10, "log")),
    ), help="Gamma correction: 255·(v/255)^γ.", words=_gamma_words, pointwise=True, device="gamma"),
    TransformationFamily("brightness", "quality", "photometric", brightness, (
        Parameter("add", "float", low=-255, high=255, ordered=True, help="grey levels added",
                  scale=Scale(0, -240, 240)),
        Parameter("multiply", "float", low=0, high=255, ordered=True, help="factor before adding",
                  scale=Scale(1, 0.02, 20, "log")),
        Parameter("overflow", "choice", "saturate", choices=("saturate", "absolute"),
                  help="what becomes of values below 0"),
    ),
        help="add + multiply·v, saturated.", words=_brightness_words, pointwise=True, device="brightness"),
    TransformationFamily("contrast", "quality", "photometric", contrast,
        (Parameter("factor", "float", low=0, high=255, ordered=True, help="below 1 flattens",
                   scale=Scale(1, 0.02, 20, "log")),),
        help="Differences from middle grey (127.5) times a factor, saturated.",
        words="contrast at {factor:%}", pointwise=True, device="contrast"),
    TransformationFamily("bilateral", "quality", "photometric", bilateral, (
        Parameter("strength", "float", low=0, open_low=True, high=1000, ordered=True,
                  help="both sigmas: grey levels and pixels", scale=Scale(0, above=300, steps="square", beside=80)),
        Parameter("size", "int", low=1, high=99, ordered=True,
                  help="diameter in pixels; an even one counts as the next odd one",
                  scale=Scale(1, above=31, beside=9)),
    ), help="Bilateral filter: textures go, edges stay.",
        words="smoothed but for its edges, strength {strength}, over {size:pixel}", device="bilateral"),
    TransformationFamily("blur", "quality", "photometric", blur, (
        Parameter("sigma", "float", low=0, open_low=True, high=100, ordered=True, help="standard deviation in pixels",
                  scale=Scale(0, above=32, steps="square")),
    ), help="Gaussian blur: out of focus.", words="blurred by {sigma:pixel}", device="blur"),
    TransformationFamily("jpeg", "quality", "photometric", jpeg, (
        Parameter("quality", "int", low=1, high=100, ordered=True, help="of the encoder: 100 is nearly lossless",
                  scale=Scale(100, 1, steps="log")),
    ), help="Compressed as a JPEG file and decoded again.", words="JPEG compression, quality {quality}"),
    TransformationFamily("motion", "quality", "photometric", motion, (
        Parameter("size", "int", low=1, high=999, ordered=True, help="length of the line in pixels",
                  scale=Scale(1, above=99, steps="square")),
        Parameter("direction", "float", low=-360, high=360, help="degrees, counter-clockwise as seen; 0 is horizontal"),
        Parameter("kernel", "choice", "centred", choices=("centred", "unnormalised", "square"),
                  help="an exact line, or as MET-POSE's code had it"),
    ),
        help="Motion blur: a one-pixel-thick line through the kernel's exact centre, of sum 1.",
        check=_has_square_kernel, words="motion blur, {size:pixel}, at {direction:°}",
        device="motion"),
)
# fmt: on
