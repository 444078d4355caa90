"""Where the patches of an image lie in space: from depth and camera to an encoding of points.

Source: Qu et al. 2025, "SpatialVLA", section III-A (Ego3D position encoding), and its public code.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Ego3DPositionEmbedding", "back_project", "patch_centres"]


class Ego3DPositionEmbedding(nn.Module):
    """Points of a patch to the channels of its features.

    Args:
        channels: coordinates of a patch's points together, three a point.
        width: channels of the features.
        frequencies: each coordinate enters also as sine and cosine of 1, 2, 4, ... times itself.
    """

    def __init__(self, channels: int, width: int, frequencies: int) -> None:
        super().__init__()
        self.frequencies = frequencies
        self.position_embedding_head = nn.Sequential(
            nn.Linear(channels * (2 * frequencies + 1), width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, width),
        )

    def forward(self, points: Tensor) -> Tensor:
        """Encode points.

        Args:
            points: metres, camera frame, ``(B, n, channels)``.

        Returns:
            Shape ``(B, n, width)``.
        """
        dtype = next(self.parameters()).dtype
        # Two metres ahead of the camera is the middle of what the encoding was made for.
        centre = points.new_tensor([0.0, 0.0, 2.0]).repeat(points.shape[-1] // 3)
        scaled = ((points - centre) / 2.0).to(dtype)[..., None]
        powers = torch.arange(self.frequencies, device=points.device)
        waves = scaled * (2.0**powers).to(dtype)
        encoded = torch.cat([scaled, waves.sin(), waves.cos()], dim=-1)
        out: Tensor = self.position_embedding_head(encoded.flatten(start_dim=-2))
        return out


def patch_centres(image_size: int, patch_size: int, per_side: int) -> Tensor:
    """Homogeneous pixels at which the points of all patches are taken, ``(3, points)``, row by row.

    >>> patch_centres(4, 2, 1)[:2].tolist()
    [[1.0, 3.0, 1.0, 3.0], [1.0, 1.0, 3.0, 3.0]]
    """
    line = torch.arange(0, image_size, patch_size // per_side) + patch_size / per_side / 2
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x, y, torch.ones_like(x)]).reshape(3, -1)


def back_project(
    depth: Tensor, intrinsic: Tensor, centres: Tensor, *, patch_size: int, per_side: int
) -> Tensor:
    """Points in space of every patch.

    Args:
        depth: metres along the optical axis, ``(B, 1, S, S)``.
        intrinsic: camera matrix for this image's size, pixels, ``(3, 3)``.
        centres: result of :func:`patch_centres`.
        patch_size: side of a patch, pixels.
        per_side: points along each side of a patch.

    Returns:
        Metres, camera frame: x right, y down, z ahead; ``(B, patches, 3 * per_side ** 2)``.
    """
    batch, _, height, width = depth.shape
    rows, columns = height // patch_size, width // patch_size
    size = (rows * per_side, columns * per_side)
    near = functional.interpolate(depth, size=size, mode="area").reshape(batch, 1, -1)
    points = (torch.linalg.inv(intrinsic.float()) @ centres.float()) * near
    cells = points.reshape(batch, 3, rows, per_side, columns, per_side)
    out: Tensor = cells.permute(0, 2, 4, 3, 5, 1).reshape(batch, rows * columns, -1)
    return out
