"""From an instruction to token ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from policies.spatialvla.config import SpatialVLAConfig

__all__ = ["BARE", "QUESTION", "build_prompt", "prompt_ids"]

BARE: Final = "{instruction}"
"""What the model is trained on, and what its evaluation on SimplerEnv asks."""
QUESTION: Final = "What action should the robot take to {instruction}?"
"""The form in upstream's README."""


def build_prompt(instruction: str, template: str = BARE) -> str:
    """The text that the model is asked, lower case as in training.

    >>> build_prompt("Put the Spoon on the towel", QUESTION)
    'What action should the robot take to put the spoon on the towel?'
    """
    return template.format(instruction=instruction.strip().lower())


def prompt_ids(tokenizer: Tokenizer, prompt: str, config: SpatialVLAConfig) -> list[int]:
    """Ids of image, BOS, prompt and a line break, in PaliGemma's order."""
    text = tokenizer.encode(f"{prompt}\n", add_special_tokens=False).ids
    image_tokens = [config.image_token_id] * config.visual_tokens
    return [*image_tokens, config.bos_token_id, *text]
