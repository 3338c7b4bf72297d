"""The network: a small U-Net from a patch of the map and the past to two probability maps.

Inputs, all in units of half a patch with the present in its middle (x right, y down):

* `classes` (N, 6, 64, 64): area fractions of background, pavement, road, structure, terrain, tree;
* `past` (N, 8, 3): the last positions, oldest first, as x, y, 1; rows of zeros where fewer are known;
* `motion` (N, 2, 2): where the mean of the last 2, and of the last 5 steps would lead in all future steps.

Outputs `goal` and `waypoint` (N, 64, 64): probabilities that sum to 1, of the position at the last step and half-way.
How the past becomes planes is part of the graph, so that training and use cannot differ in it.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SIDE = 64
_GROWTH = (1, 2, 4, 6, 8)
"""Channels from the finest level to the coarsest, in units of the width."""
_PLANES = 22
"""6 classes, 3 of the past, 8 of where it leads, 2 coordinates, distance to the present, and 2 constants."""


class Block(nn.Sequential):
    def __init__(self, given: int, made: int) -> None:
        layers: list[nn.Module] = []
        for width in (given, made):
            layers += [nn.Conv2d(width, made, 3, padding=1, bias=False), nn.BatchNorm2d(made), nn.ReLU(inplace=True)]
        super().__init__(*layers)


class GoalMap(nn.Module):
    """Logits (N, 2, 64, 64) of goal and waypoint."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.wide = False
        """Whether pictures are kept channels last, which a GPU likes."""
        centres = (torch.arange(SIDE) + 0.5) * 2 / SIDE - 1
        y, x = torch.meshgrid(centres, centres, indexing="ij")
        self.register_buffer("centres", centres)
        self.register_buffer("grid", torch.stack([x, y, torch.hypot(x, y)])[None])
        channels = [width * n for n in _GROWTH]
        down = [_PLANES, *channels]
        self.down = nn.ModuleList(Block(a, b) for a, b in pairwise(down))
        upwards = list(zip(channels[:0:-1], channels[-2::-1], strict=True))
        self.narrow = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in upwards)
        self.up = nn.ModuleList(Block(2 * b, b) for _, b in upwards)
        self.head = nn.Conv2d(width, 2, 1)

    def planes(self, classes: Tensor, past: Tensor, motion: Tensor) -> Tensor:
        """Everything the network sees, as pictures."""

        def away(points: Tensor) -> Tensor:  # (N, K, 2) → squared distances (N, K, 64, 64)
            across, down = ((self.centres - points[..., axis, None]) ** 2 for axis in (0, 1))
            return across[..., None, :] + down[..., :, None]

        def plane(value: Tensor) -> Tensor:  # (N,) → a constant (N, 1, 64, 64)
            return value[:, None, None, None].expand(-1, 1, SIDE, SIDE)

        trace = torch.exp(away(past[..., :2]) * (-0.5 / 0.03**2)) * past[..., 2, None, None]
        heat = torch.stack([trace.sum(1), trace[:, 4:].sum(1), trace[:, 6:].sum(1)], 1)
        ends = away(torch.cat([motion, motion / 2], 1))
        leads = torch.cat([torch.exp(ends * (-0.5 / 0.12**2)), torch.sqrt(ends + 1e-4)], 1)
        speed = torch.sqrt((motion[:, 1] ** 2).sum(1) + 1e-6)
        grid = self.grid.expand(classes.shape[0], -1, -1, -1)
        return torch.cat([classes, heat, leads, grid, plane(past[..., 2].mean(1)), plane(speed)], 1)

    def forward(self, classes: Tensor, past: Tensor, motion: Tensor) -> Tensor:
        x = self.planes(classes, past, motion)
        if self.wide:
            x = x.contiguous(memory_format=torch.channels_last)
        kept = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for narrow, block, skip in zip(self.narrow, self.up, kept[-2::-1], strict=True):
            x = block(torch.cat([F.interpolate(narrow(x), scale_factor=2.0, mode="nearest"), skip], 1))
        return self.head(x)


class Probabilities(nn.Module):
    """What is exported: two maps that sum to 1."""

    def __init__(self, network: GoalMap) -> None:
        super().__init__()
        self.network = network

    def forward(self, classes: Tensor, past: Tensor, motion: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.network(classes, past, motion)
        maps = torch.softmax(logits.flatten(2), 2).reshape(-1, 2, SIDE, SIDE)
        return maps[:, 0], maps[:, 1]


def parameters_of(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())
