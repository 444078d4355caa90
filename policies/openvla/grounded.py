"""The small vision tower of ``openvla-mini``: convolutions, keypoints, word-conditioned points.

A policy trained from pixels on one machine does not bind the words of its instruction to a place in
the image by itself. Here the instruction asks the feature map for points, and training shows it
where they are; what it finds goes to the language model as further visual tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from policies.openvla.config import GroundedConvConfig

__all__ = ["GroundedConvTower", "VisualTokens"]

TEXT_POSITIONS = 64
HEADS = 4


@dataclass(slots=True, kw_only=True)
class VisualTokens:
    """What a tower gives to the projector, and what its training supervises.

    Attributes:
        tokens: shape ``(B, n, C)``.
        keypoints: found without words, (x, y) in [-1, 1], shape ``(B, K, 2)``; None in other
            towers.
        grounded: found by the instruction, shape ``(B, G, 2)``.
        positions: positions of tool, named object, other object and target, metres, ``(B, 4, 3)``.
        heat: log-probability over the cells for tool, target, and each grounded point,
            ``(B, 2 + G, cells)``.
    """

    tokens: Tensor
    keypoints: Tensor | None = None
    grounded: Tensor | None = None
    positions: Tensor | None = None
    heat: Tensor | None = None


class GroundedConvTower(nn.Module):
    """Image and instruction embeddings in, visual tokens out."""

    def __init__(self, config: GroundedConvConfig, text_width: int) -> None:
        super().__init__()
        c = config
        self.config = c
        self.stem = nn.Sequential(
            nn.Conv2d(3, c.stem, 8, stride=4, padding=2),
            nn.GroupNorm(8, c.stem),
            nn.SiLU(),
            nn.Conv2d(c.stem, c.width, 3, padding=1),
            nn.GroupNorm(8, c.width),
            nn.SiLU(),
        )
        self.residual = nn.Sequential(
            nn.Conv2d(c.width, c.stem, 3, padding=1),
            nn.GroupNorm(8, c.stem),
            nn.SiLU(),
            nn.Conv2d(c.stem, c.width, 3, padding=1),
            nn.GroupNorm(8, c.width),
        )
        self.coarse = nn.Sequential(
            nn.Conv2d(c.width, c.coarse, 3, stride=2, padding=1),
            nn.GroupNorm(8, c.coarse),
            nn.SiLU(),
            nn.Conv2d(c.coarse, c.embed, 2, stride=2),
        )
        self.point_maps = nn.Conv2d(c.width, c.keypoints, 1)
        self.keys = nn.Sequential(
            nn.Conv2d(c.width, c.width, 1), nn.SiLU(), nn.Conv2d(c.width, c.width, 1)
        )
        self.values = nn.Conv2d(c.width, c.readout, 1)
        self.ask = InstructionQueries(text_width, c.grounded, c.width)
        points = c.keypoints + c.grounded
        self.relate = nn.Sequential(
            nn.Linear(points * 2 + (2 + c.grounded) * c.readout, 256), nn.SiLU()
        )
        self.summary = nn.Linear(256, c.summary * c.embed)
        self.locate = nn.Linear(256, 12)
        self.grid: Tensor
        self.patch_position: Tensor
        self.fill_buffers()

    def fill_buffers(self) -> None:
        """Compute the fixed grids: cell centres (x, y) of the fine map, patch positions."""
        c = self.config
        self.register_buffer("grid", cell_centers(c.image_size // 4), persistent=False)
        position = sincos_2d(c.image_size // 16, c.embed)
        self.register_buffer("patch_position", position, persistent=False)

    def forward(
        self, pixels: Tensor, text: Tensor, text_mask: Tensor | None = None
    ) -> VisualTokens:
        """Look at the image with the instruction in mind.

        Args:
            pixels: shape ``(B, 3, S, S)``, in [-1, 1].
            text: embeddings of the prompt's tokens, shape ``(B, n, text_width)``.
            text_mask: 1 where a token is real, shape ``(B, n)``.
        """
        c = self.config
        fine = self.stem(pixels)
        fine = F.silu(fine + self.residual(fine))
        patches = self.coarse(fine).flatten(2).transpose(1, 2) + self.patch_position

        free = self.point_maps(fine).flatten(2)
        queries = self.ask(text, text_mask)
        asked = queries @ self.keys(fine).flatten(2) / math.sqrt(c.width)
        heat = torch.log_softmax(torch.cat([free, asked], dim=1).float(), dim=-1)
        weights = heat.exp()
        with torch.autocast(pixels.device.type, enabled=False):
            # In bfloat16 a point would be off by a fifth of a pixel.
            points = weights @ self.grid
        named = [0, 1, *range(c.keypoints, c.keypoints + c.grounded)]
        read = weights[:, named]
        local = read.to(fine.dtype) @ self.values(fine).flatten(2).transpose(1, 2)

        related = self.relate(
            torch.cat([points.flatten(1).to(fine.dtype), local.flatten(1)], dim=1)
        )
        summary = self.summary(related).view(-1, c.summary, c.embed)
        return VisualTokens(
            tokens=torch.cat([patches, summary], dim=1),
            keypoints=points[:, : c.keypoints],
            grounded=points[:, c.keypoints :],
            positions=self.locate(related).view(-1, 4, 3),
            heat=heat[:, named],
        )


class InstructionQueries(nn.Module):
    """Several attention pools over all words of the instruction, so that colour and shape bind."""

    def __init__(self, text_width: int, queries: int, width: int) -> None:
        super().__init__()
        self.queries = queries
        self.where = nn.Embedding(TEXT_POSITIONS, text_width)
        self.score = nn.Linear(text_width, queries * HEADS)
        self.value = nn.Linear(text_width, width)
        self.out = nn.Sequential(
            nn.Linear(HEADS * width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )
        self.scale = nn.Parameter(torch.tensor(4.0))

    def forward(self, text: Tensor, mask: Tensor | None) -> Tensor:
        """Queries of shape ``(B, queries, width)``."""
        batch, length = text.shape[:2]
        index = torch.arange(length, device=text.device).clamp(max=TEXT_POSITIONS - 1)
        scores = self.score(text + self.where(index))
        if mask is not None:
            scores = scores.masked_fill(mask[..., None] == 0, -1e4)
        weights = torch.softmax(scores * 2.0, dim=1).transpose(1, 2)
        pooled = weights @ self.value(text)
        out: Tensor = self.out(pooled.reshape(batch, self.queries, -1)) * self.scale
        return out


def cell_centers(side: int) -> Tensor:
    """Centres (x, y) of a square grid of cells over [-1, 1], row by row, ``(side * side, 2)``.

    >>> cell_centers(2).tolist()
    [[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]]
    """
    line = torch.linspace(-1.0 + 1.0 / side, 1.0 - 1.0 / side, side)
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], dim=-1)


def sincos_2d(side: int, width: int) -> Tensor:
    """Fixed positions of a square grid, shape ``(side * side, width)``.

    >>> sincos_2d(3, 8).shape
    torch.Size([9, 8])
    """
    rate = torch.exp(-math.log(100.0) * torch.arange(width // 4) / (width // 4))
    line = torch.arange(side)[:, None] * rate[None, :]
    waves = torch.cat([line.sin(), line.cos()], dim=-1)
    y = waves[:, None, :].expand(side, side, -1)
    x = waves[None, :, :].expand(side, side, -1)
    return torch.cat([y, x], dim=-1).reshape(side * side, width)
