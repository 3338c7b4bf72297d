"""TensorImage: an image whose pixels lie on a device, and are made when somebody wants them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from instar.image import Image, Pixels
from instar.tensors import operations
from instar.tensors.operations import Operation
from instar.warp import Resampling, Size, Warp


class TensorImage(Image):
    """An image on a device. A system that takes tensors is given its `plain()`: uint8 (H, W, 3), RGB.

    A follow-up is the image it comes from (`base`), an operation and, where it changes a zone alone, a mask, until
    somebody wants its pixels: `make` makes many at once, those that are alike by one launch. `pixels` are fetched for
    what works on arrays: families that have no operation, and functions of users.
    """

    __slots__ = ("_base", "_fetched", "_mask", "_operation", "_sent", "_size", "_tensor", "device")

    deferred: ClassVar[bool] = True

    __setattr__ = object.__setattr__  # an image is frozen; what this one shows is too, and what is made of it is kept

    def __init__(
        self,
        size: Size,
        device: torch.device,
        *,
        tensor: Tensor | None = None,
        pixels: Pixels | None = None,
        base: TensorImage | None = None,
        operation: Operation | None = None,
        mask: Pixels | None = None,
    ) -> None:
        self.device = device
        self._size, self._tensor, self._fetched = size, tensor, pixels
        self._base, self._operation, self._mask = base, operation, mask
        self._sent: dict[int, tuple[Pixels, Tensor]] = {}

    @classmethod
    def of(cls, image: Image, device: str) -> TensorImage:
        """An image sent to a device; one that lies on a device is taken as it is."""
        if isinstance(image, TensorImage):
            return image
        place = torch.device(device)
        return cls(image.size, place, tensor=_sent(image.pixels, place), pixels=image.pixels)

    # -- as an image

    @property
    def size(self) -> Size:
        return self._size

    @property
    def nbytes(self) -> int:
        return 3 * self._size[0] * self._size[1]

    @property
    def pixels(self) -> Pixels:
        if self._fetched is None:
            array = self.tensor.cpu().numpy().copy()
            array.setflags(write=False)
            self._fetched = array
        return self._fetched

    def warped(self, warp: Warp, resampling: Resampling = "linear") -> TensorImage:
        if resampling == "nearest":  # for class maps; no family asks it of an image
            return TensorImage.of(super().warped(warp, resampling), str(self.device))
        numbers = warp.matrix.tobytes()
        return self.changed(operations.warp(numbers, warp.source, warp.target, resampling == "area"), warp.target)

    def plain(self) -> Tensor:
        """A tensor that is the caller's: who writes into it changes neither the source nor another follow-up."""
        tensor = self.tensor
        if self._operation is None:
            return tensor.clone()
        self._tensor = None  # made anew for who asks again
        return tensor

    def part(self, place: tuple[slice, slice]) -> Image:
        made = self.tensor[place].contiguous()
        return TensorImage((made.shape[1], made.shape[0]), self.device, tensor=made)

    def covered(self, other: Image, mask: Pixels, place: tuple[slice, slice] | None = None) -> Image:
        whole = place is None
        if whole and isinstance(other, TensorImage) and other._base is self and other._mask is None:
            return TensorImage(self._size, self.device, base=self, operation=other._operation, mask=mask)
        tensor = self.tensor.clone()
        part = tensor if place is None else tensor[place]
        covering = TensorImage.of(other, str(self.device)).tensor
        part.copy_(torch.where(self._sent_mask(mask)[..., None] != 0, covering, part))
        return TensorImage(self._size, self.device, tensor=tensor)

    # -- on its device

    def changed(self, operation: Operation, size: Size | None = None) -> TensorImage:
        """What an operation makes of it, not made yet."""
        return TensorImage(size or self._size, self.device, base=self, operation=operation)

    def operated(self, name: str, rng: np.random.Generator, values: Mapping[str, Any]) -> TensorImage:
        """What a family makes of it, by the name of the function that makes its operation."""
        return self.changed(operations.operation(name, rng, values))

    @property
    def tensor(self) -> Tensor:
        """Its pixels, shared by whoever asks."""
        if self._tensor is None:
            make([self])
        assert self._tensor is not None
        return self._tensor

    def _sent_mask(self, mask: Pixels) -> Tensor:
        """A mask on the device: once for all rules that have it, of which there are often many."""
        if id(mask) not in self._sent:
            self._sent[id(mask)] = mask, _sent(mask, self.device)  # the array stays, and with it its id
        return self._sent[id(mask)][1]


def make(images: Iterable[object]) -> None:
    """Make what is not made yet of some images: all follow-ups of one image together."""
    waiting: dict[int, list[TensorImage]] = {}
    for image in images:
        if isinstance(image, TensorImage) and image._tensor is None:
            waiting.setdefault(id(image._base), []).append(image)
    if not waiting:
        return
    make([alike[0]._base for alike in waiting.values()])
    for alike in waiting.values():
        base = alike[0]._base
        assert base is not None and base._tensor is not None
        todo = [operation for image in alike if (operation := image._operation) is not None]
        masks = [None if image._mask is None else base._sent_mask(image._mask) for image in alike]
        for image, made in zip(alike, operations.together(base._tensor[None], todo, masks), strict=True):
            image._tensor = made[0]


def _sent(array: Pixels, device: torch.device) -> Tensor:
    """A copy on a device, through pinned memory where that lets the copy and the work overlap."""
    host = torch.empty(array.shape, dtype=torch.uint8, device="cpu", pin_memory=device.type == "cuda")
    host.numpy()[...] = array
    return host.to(device, non_blocking=True)
