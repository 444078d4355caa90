"""Depth of an image by ZoeDepth, prepared as SpatialVLA prepares it."""

from __future__ import annotations

from typing import Final

from torch import Tensor, nn
from torch.nn import functional

__all__ = ["estimate_depth", "for_depth"]

PAD: Final = 31
"""Pixels reflected around the image, so that the estimate holds up to its border."""
SIDE: Final = 384
"""Side of ZoeDepth's input, pixels."""


def for_depth(pixels: Tensor) -> Tensor:
    """ZoeDepth's input: reflect, resize, then to [-1, 1].

    Args:
        pixels: pixels in [0, 1], ``(B, 3, S, S)``, S above 31.

    Returns:
        Shape ``(B, 3, 384, 384)``.
    """
    padded = functional.pad(pixels, (PAD, PAD, PAD, PAD), mode="reflect")
    resized = functional.interpolate(padded, size=(SIDE, SIDE), mode="bicubic", align_corners=True)
    return (resized - 0.5) / 0.5


def estimate_depth(model: nn.Module, pixels: Tensor) -> Tensor:
    """Depth of every pixel.

    Args:
        model: ``ZoeDepthForDepthEstimation``.
        pixels: pixels in [0, 1], ``(B, 3, S, S)``.

    Returns:
        Metres, ``(B, 1, S, S)``.
    """
    height, width = pixels.shape[-2:]
    raw = model(pixel_values=for_depth(pixels)).predicted_depth[:, None]
    size = (height + 2 * PAD, width + 2 * PAD)
    whole = functional.interpolate(raw, size=size, mode="bicubic", align_corners=True)
    return whole[..., PAD:-PAD, PAD:-PAD]
