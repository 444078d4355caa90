"""From an instruction to token ids."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["build_prompt", "prompt_ids"]

log = logging.getLogger(__name__)


def build_prompt(instruction: str, *, cleaned: bool) -> str:
    r"""The text that the model was trained on: it ends with a line feed.

    Args:
        instruction: instruction of the task.
        cleaned: as openpi does, without spaces around, underscores and line feeds; LeRobot leaves
            the words as they are.

    >>> build_prompt(" put_the carrot on the plate ", cleaned=True)
    'put the carrot on the plate\n'
    """
    if cleaned:
        instruction = instruction.strip().replace("_", " ").replace("\n", " ")
    return instruction if instruction.endswith("\n") else f"{instruction}\n"


def prompt_ids(tokenizer: Tokenizer, prompt: str, *, bos: int, longest: int) -> list[int]:
    """Ids of a prompt, beginning with BOS, at most ``longest``; upstream cuts there too.

    Args:
        tokenizer: PaliGemma's, or a small one of a test.
        prompt: result of :func:`build_prompt`.
        bos: id that begins a text; put there where the tokenizer does not.
        longest: tokens.
    """
    ids: Sequence[int] = tokenizer.encode(prompt).ids
    if not ids or ids[0] != bos:
        ids = [bos, *ids]
    if len(ids) > longest:
        log.warning("the instruction has %d tokens, the model reads %d", len(ids), longest)
    return list(ids[:longest])
