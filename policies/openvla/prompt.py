"""From an instruction to token ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from monitor.errors import MonitorError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["MissingTokenizerError", "build_prompt", "load_tokenizer", "prompt_ids"]

TEMPLATE: Final = "In: What action should the robot take to {instruction}?\nOut:"
"""OpenVLA's prompt; the first release (v01) used a Vicuna dialogue instead."""


class MissingTokenizerError(MonitorError, FileNotFoundError):
    """The checkpoint folder has no tokenizer, so that only ids can be given."""


def build_prompt(instruction: str) -> str:
    r"""The text that the model was trained on.

    >>> build_prompt("Put the carrot on the plate")
    'In: What action should the robot take to put the carrot on the plate?\nOut:'
    """
    return TEMPLATE.format(instruction=instruction.strip().lower())


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read ``tokenizer.json``.

    Raises:
        MissingTokenizerError: if the folder has none.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        msg = (
            f"{path} is missing, so the instruction cannot be turned into ids; copy the tokenizer "
            "of the checkpoint there, or call infer(input_ids=..., pixel_values=...)"
        )
        raise MissingTokenizerError(msg)
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(path))


def prompt_ids(tokenizer: Tokenizer, instruction: str) -> list[int]:
    """Ids of the prompt, beginning with BOS."""
    return list(tokenizer.encode(build_prompt(instruction)).ids)
