"""What the processor's file of a checkpoint says: grids, chunks, statistics and cameras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from monitor.errors import ConfigError
from policies.json_file import as_config_error, read_json
from policies.spatialvla.grid import ActionGrid

__all__ = ["Recipe"]

_STATISTICS: Final = ("statistics.json", "dataset_statistics.json", "ds_stats.json")
"""Files in which fine-tuning may leave statistics; their entries come on top."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """How tokens become actions and images become points.

    Attributes:
        grid: cells of the action space.
        chunk_steps: actions of an answer.
        statistics: statistics of the actions, by dataset.
        cameras: matrix and image size, by dataset.
    """

    grid: ActionGrid
    chunk_steps: int
    statistics: Mapping[str, Any]
    cameras: Mapping[str, Any]

    @classmethod
    def from_folder(cls, folder: Path, action_token_range: tuple[int, int]) -> Recipe:
        """Read ``processor_config.json`` and the statistics next to it.

        Args:
            folder: folder of the checkpoint.
            action_token_range: half-open range of the model's action ids.

        Raises:
            ConfigError: if the file is missing, or its grid does not fit the ids.
        """
        path = folder / "processor_config.json"
        if not path.is_file():
            msg = f"{path} is missing; it holds the grids, statistics and cameras of the checkpoint"
            raise ConfigError(msg)
        data = read_json(path)
        statistics = dict(data.get("statistics") or {})
        for name in _STATISTICS:
            if (folder / name).is_file():
                statistics |= read_json(folder / name)
        with as_config_error(path):
            return cls.from_json(data | {"statistics": statistics}, action_token_range)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], action_token_range: tuple[int, int]) -> Recipe:
        """Read a parsed ``processor_config.json``.

        Args:
            data: what it says, statistics included.
            action_token_range: half-open range of the model's action ids.

        Raises:
            ConfigError: if its grid does not fit the ids.
        """
        begin, end = action_token_range
        return cls(
            grid=ActionGrid.from_json(data, begin, end - begin),
            chunk_steps=int(data.get("action_chunk_size", 1)),
            statistics=data.get("statistics") or {},
            cameras=data.get("intrinsic_config") or {},
        )
