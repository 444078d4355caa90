"""Depth of an image by a few convolutions: what ``spatialvla-mini`` has in ZoeDepth's place.

ZoeDepth alone is 300 times as large as the whole small policy. Like it, this network is trained by
itself first and then left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from torch import Tensor, nn
from torch.nn import functional

__all__ = ["CELL_PX", "CONV_DEPTH", "ConvDepth", "ConvDepthConfig", "spread"]

CONV_DEPTH: Final = "conv-depth"
"""``model_type`` of this network in ``config.json``."""
CELL_PX: Final = 8
"""Side of the square of pixels that share one depth."""
_MIDDLE_M: Final = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvDepthConfig:
    """Sizes of the network.

    Attributes:
        stem: channels at a quarter of the image's side.
        width: channels at an eighth of it.
    """

    stem: int = 16
    width: int = 32


class ConvDepth(nn.Module):
    """Image in, metres out."""

    def __init__(self, config: ConvDepthConfig) -> None:
        super().__init__()
        stem, width = config.stem, config.width
        self.layers = nn.Sequential(
            nn.Conv2d(3, stem, 8, stride=4, padding=2),
            nn.SiLU(),
            nn.Conv2d(stem, width, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, 1, 1),
        )

    def cells(self, pixels: Tensor) -> Tensor:
        """Mean depth of every cell, metres, ``(B, 1, S / 8, S / 8)``; pixels in [0, 1]."""
        raw: Tensor = self.layers((pixels - 0.5) / 0.5)
        return _MIDDLE_M * raw.exp()

    def forward(self, pixels: Tensor) -> Tensor:
        """Depth of every pixel, that of its cell.

        Args:
            pixels: pixels in [0, 1], ``(B, 3, S, S)``, S a multiple of 8.

        Returns:
            Metres along the optical axis, ``(B, 1, S, S)``.
        """
        return spread(self.cells(pixels))


def spread(cells: Tensor) -> Tensor:
    """Depth of every pixel, ``(B, 1, S, S)``, from that of the cells ``(B, 1, S / 8, S / 8)``."""
    return functional.interpolate(cells, scale_factor=CELL_PX, mode="nearest")
