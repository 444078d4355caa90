"""From an instruction to token ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.tokenizer import MissingTokenizerError, load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["MissingTokenizerError", "build_prompt", "load_tokenizer", "prompt_ids"]

TEMPLATE: Final = "In: What action should the robot take to {instruction}?\nOut:"
"""OpenVLA's prompt; the first release (v01) used a Vicuna dialogue instead."""


def build_prompt(instruction: str) -> str:
    r"""The text that the model was trained on.

    >>> build_prompt("Put the carrot on the plate")
    'In: What action should the robot take to put the carrot on the plate?\nOut:'
    """
    return TEMPLATE.format(instruction=instruction.strip().lower())


def prompt_ids(tokenizer: Tokenizer, instruction: str) -> list[int]:
    """Ids of the prompt, beginning with BOS."""
    return list(tokenizer.encode(build_prompt(instruction)).ids)
