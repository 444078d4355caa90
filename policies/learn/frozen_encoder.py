"""The frozen vision encoder of ``openvla-mini``, with which the other small policies start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from policies.checkpoint import read_tensors
from policies.openvla.config import OpenVLAConfig
from policies.openvla.grounded import GroundedConvTower
from policies.openvla.prompt import prompt_ids
from policies.registry import packaged_checkpoint
from policies.tokenizer import load_tokenizer

__all__ = ["FrozenEncoder"]

_TOWER: Final = "vision_backbone."
_WORDS: Final = "language_model.model.embed_tokens.weight"


class FrozenEncoder:
    """Vision tower and words of a trained ``openvla-mini``.

    The tower reads the words of OpenVLA's question; anyone who reuses it asks the same.

    Args:
        folder: its checkpoint; by default the one of the package.
    """

    def __init__(self, folder: Path | None = None) -> None:
        folder = packaged_checkpoint("openvla-mini") if folder is None else folder
        tensors = read_tensors(folder)
        config = OpenVLAConfig.from_folder(folder)
        assert config.grounded_conv is not None, f"{folder} has no small tower"
        self.config = config.grounded_conv
        self.tokenizer: Tokenizer = load_tokenizer(folder)
        self._words = tensors[_WORDS]
        self.tower = GroundedConvTower(self.config, self._words.shape[1])
        self.tower.load_state_dict(
            {
                key.removeprefix(_TOWER): value
                for key, value in tensors.items()
                if key.startswith(_TOWER)
            }
        )
        self.tower.eval().requires_grad_(requires_grad=False)

    @property
    def width(self) -> int:
        """Channels of a word."""
        return int(self._words.shape[1])

    def ids(self, instruction: str) -> list[int]:
        """Ids of the question about an instruction, BOS first."""
        return prompt_ids(self.tokenizer, instruction)

    def embedded(self, instructions: Iterable[str]) -> Tensor:
        """What the tower reads of instructions of one length, ``(n, words, width)``."""
        return self._words[torch.tensor([self.ids(text) for text in instructions])]

    @torch.no_grad()
    def spell(self, table: nn.Embedding, scale: Tensor | float) -> None:
        """Write the words into a table whose rows a language model multiplies by ``scale``."""
        count = self.tokenizer.get_vocab_size()
        table.weight[:count] = self._words[:count] / scale
