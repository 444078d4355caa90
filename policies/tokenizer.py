"""The tokenizer of a checkpoint folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import ConfigError, MonitorError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["MissingTokenizerError", "load_tokenizer"]


class MissingTokenizerError(MonitorError, FileNotFoundError):
    """The checkpoint folder has no tokenizer, so that only ids can be given."""


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read ``tokenizer.json``.

    Raises:
        MissingTokenizerError: if the folder has none.
        ConfigError: if the file is none.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        msg = (
            f"{path} is missing, so the instruction cannot be turned into ids; copy the tokenizer "
            "of the checkpoint there, or call infer(input_ids=..., pixel_values=...)"
        )
        raise MissingTokenizerError(msg)
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no class of its own
        msg = f"{path} is not a tokenizer ({error}); copy it again from the checkpoint"
        raise ConfigError(msg) from error
