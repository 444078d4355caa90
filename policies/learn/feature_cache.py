"""Precomputed vision features of demonstrations, for policies whose vision encoder is frozen.

On one core most of a training step goes into the convolutions. A policy that starts from a trained
vision encoder and keeps it frozen needs each image encoded only once per variant of its lighting
and shift.

    python -m policies.learn.feature_cache --demos data/demos --out data/features
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from policies.learn.dataset import Demonstrations, shards, shifted
from policies.learn.depth import teach_depth
from policies.learn.frozen_encoder import FrozenEncoder
from policies.learn.trainable import relit
from policies.spatialvla.conv_depth import ConvDepth, ConvDepthConfig

__all__ = ["FeatureCache"]

log = logging.getLogger(__name__)

VARIANTS: Final = 2
"""The image as it is, and one that is moved and relit."""
_BATCH: Final = 64
_ARRAYS: Final = "features.npz"
_NETWORK: Final = "depth.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureCache:
    """Tokens of every frame.

    Attributes:
        tokens: tokens by frame, variant and instruction (0 its own, 1 the other), float16, shape
            ``(n, variants, 2, tokens, channels)``.
        depth: depth of the cells by frame and variant, metres, float16, ``(n, variants, S, S)``.
        network: weights of the network that estimated it.
    """

    tokens: NDArray[np.float16]
    depth: NDArray[np.float16]
    network: Mapping[str, Tensor]

    @classmethod
    @torch.inference_mode()
    def of(
        cls, data: Demonstrations, encoder: FrozenEncoder, depth: ConvDepth, *, seed: int
    ) -> FeatureCache:
        """Look at everything.

        Args:
            data: images and instructions.
            encoder: the frozen encoder.
            depth: network of its depth.
            seed: random seed of the moved and relit variants.
        """
        rng = np.random.default_rng(seed)
        prompts = encoder.embedded(data.instructions)
        tokens, cells = [], []
        for start in range(0, len(data), _BATCH):
            rows = slice(start, start + _BATCH)
            image = data.image[rows]
            plain = _pixels(image)
            moved = relit(_pixels(shifted(image, rng)[0]), rng)
            seen = []
            for pixels in (plain, moved):
                both = [encoder.tower(pixels, prompts[data.prompt[rows, i]]).tokens for i in (0, 1)]
                seen.append(torch.stack(both, dim=1))
            tokens.append(torch.stack(seen, dim=1).half().numpy())
            maps = [depth.cells((pixels + 1.0) / 2.0)[:, 0] for pixels in (plain, moved)]
            cells.append(torch.stack(maps, dim=1).half().numpy())
            if start % (_BATCH * 20) == 0:
                log.info("looked at %d of %d frames", start, len(data))
        return cls(
            tokens=np.concatenate(tokens),
            depth=np.concatenate(cells),
            network={name: one.clone() for name, one in depth.state_dict().items()},
        )

    def save(self, folder: Path) -> None:
        """Write a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(dict(self.network), folder / _NETWORK)
        np.savez(folder / _ARRAYS, tokens=self.tokens, depth=self.depth)

    @classmethod
    def load(cls, folder: Path) -> FeatureCache:
        """Read what :meth:`save` wrote."""
        with np.load(folder / _ARRAYS, allow_pickle=False) as saved:
            tokens, depth = saved["tokens"], saved["depth"]
        return cls(tokens=tokens, depth=depth, network=load_file(folder / _NETWORK))

    def pick(
        self, rows: NDArray[np.int64], other: NDArray[np.int64], rng: np.random.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Tokens ``(B, n, C)`` and depth ``(B, 1, S, S)`` of frames, one variant of each by chance.

        Args:
            rows: rows of the demonstrations.
            other: 1 where the instruction is the other one.
            rng: picks the variants; None takes the images as they are.
        """
        which = np.zeros_like(rows) if rng is None else rng.integers(0, VARIANTS, len(rows))
        tokens = torch.from_numpy(self.tokens[rows, which, other].astype(np.float32))
        return tokens, torch.from_numpy(self.depth[rows, which].astype(np.float32))[:, None]


def _pixels(image: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(image).permute(0, 3, 1, 2).float() / 127.5 - 1.0


def main() -> None:
    """Command line: teaches the depth network, then looks at everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demos", required=True, type=Path, nargs="+", help="shards or folders")
    parser.add_argument("--out", required=True, type=Path, help="folder to write")
    parser.add_argument("--network", type=Path, help="folder whose depth network is taken instead")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    data = Demonstrations.load(shards(args.demos))
    depth = ConvDepth(ConvDepthConfig())
    if args.network is None:
        teach_depth(depth, data, seed=args.seed)
    else:
        depth.load_state_dict(load_file(args.network / _NETWORK))
    FeatureCache.of(data, FrozenEncoder(), depth, seed=args.seed).save(args.out)


if __name__ == "__main__":
    main()
