"""From an instruction to token ids."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from monitor.errors import ConfigError, unknown_name
from policies.tokenizer import MissingTokenizerError, load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "PROMPTS",
    "MissingTokenizerError",
    "build_prompt",
    "load_tokenizer",
    "prompt_ids",
    "prompt_template",
]

TEMPLATE: Final = "In: What action should the robot take to {instruction}?\nOut:"
"""OpenVLA's prompt."""
PROMPTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openvla": TEMPLATE,
        "v01": (
            "A chat between a curious user and an artificial intelligence assistant. The assistant "
            "gives helpful, detailed, and polite answers to the user's questions. USER: What "
            "action should the robot take to {instruction}? ASSISTANT:"
        ),
    }
)
"""What each release was trained on, by name; ``v01`` is ``openvla/openvla-v01-7b``."""


def prompt_template(given: str) -> str:
    """The template of an option ``prompt=``: a name of :data:`PROMPTS`, or a template itself.

    Raises:
        ConfigError: if it is neither.
    """
    if given in PROMPTS:
        return PROMPTS[given]
    if "{instruction}" not in given:
        msg = f"{unknown_name('prompt', given, PROMPTS)}, or a text with {{instruction}} in it"
        raise ConfigError(msg)
    return given


def build_prompt(instruction: str, template: str = TEMPLATE) -> str:
    r"""The text that the model was trained on.

    >>> build_prompt("Put the carrot on the plate")
    'In: What action should the robot take to put the carrot on the plate?\nOut:'
    """
    return template.replace("{instruction}", instruction.strip().lower())


def prompt_ids(
    tokenizer: Tokenizer, instruction: str, *, template: str = TEMPLATE, bos: int | None = None
) -> list[int]:
    """Ids of the prompt, beginning with BOS.

    Args:
        tokenizer: tokenizer of the checkpoint.
        instruction: instruction of the task.
        template: with ``{instruction}``.
        bos: put in front where the tokenizer does not do so itself; None leaves it to that.
    """
    ids = list(tokenizer.encode(build_prompt(instruction, template)).ids)
    # The image comes right behind BOS; without it, it would come behind the first word.
    return ids if bos is None or ids[:1] == [bos] else [bos, *ids]
