"""The data's statistics, which turn states and actions into what the model sees and back.

LeRobot, openpi and transformers keep them in different files and add different small numbers
against division by zero; here they become one affine map each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from safetensors.numpy import load_file

from monitor.errors import ConfigError, unknown_name
from policies.base import FloatArray
from policies.json_file import read_json
from policies.pi0.config import Layout, PI0CheckpointConfig

__all__ = ["NO_STATISTICS", "Affine", "PI0Statistics", "affine", "read_statistics"]

NO_STATISTICS: Final = "none"
"""Value of ``norm_stats`` that leaves states and actions as they are."""
_OPENPI_EPS: Final = 1e-6
_EPS: Final = 1e-8
SPREADS: Final = 3.0
"""Standard deviations that a usual value stays within."""
_STATE: Final = ("observation.state", "state")
_ACTION: Final = ("action", "actions")
_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "MEAN_STD": ("mean", "std"),
    "QUANTILES": ("q01", "q99"),
    "MIN_MAX": ("min", "max"),
}

Table = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Affine:
    """``(x - center) / divisor`` into the model, ``x * factor + center`` out of it.

    Attributes:
        center: shape ``(D,)``.
        divisor: shape ``(D,)``.
        factor: shape ``(D,)``; differs from ``divisor`` where upstream adds a small number to it.
        largest: largest usual magnitude of a value, shape ``(D,)``: that of the two quantiles or
            ends, or of the mean and three standard deviations; None where nothing is known.
    """

    center: FloatArray
    divisor: FloatArray
    factor: FloatArray
    largest: FloatArray | None = None

    @property
    def size(self) -> int:
        """D."""
        return len(self.center)

    @property
    def low(self) -> FloatArray:
        """What the model's -1 means, a low but usual value, shape ``(D,)``."""
        return self.center - self.factor

    def normalize(self, values: ArrayLike) -> FloatArray:
        """What the model sees of values in the data's units, shape ``(..., d)`` with d <= D."""
        x = np.asarray(values, dtype=np.float64)
        count = x.shape[-1]
        return np.asarray((x - self.center[:count]) / self.divisor[:count])

    def unnormalize(self, values: ArrayLike) -> FloatArray:
        """Values in the data's units, shape ``(..., d)`` with d <= D."""
        x = np.asarray(values, dtype=np.float64)
        count = x.shape[-1]
        return np.asarray(x * self.factor[:count] + self.center[:count])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PI0Statistics:
    """The two maps of a checkpoint."""

    state: Affine
    action: Affine


def affine(mode: str, given: Mapping[str, Any], *, layout: Layout) -> Affine:
    """The map of one set of statistics.

    Args:
        mode: ``MEAN_STD``, ``QUANTILES`` or ``MIN_MAX``.
        given: arrays ``(D,)`` by name: mean and std, q01 and q99, or min and max.
        layout: whose small numbers to add.

    Raises:
        ConfigError: if an array is missing or not finite.
    """
    low, high = (_array(given, name) for name in _FIELDS[mode])
    openpi = layout is Layout.OPENPI
    if mode == "MEAN_STD":
        divisor = high + (_OPENPI_EPS if openpi else _EPS)
        largest = np.abs(low) + SPREADS * high
        factor = divisor if openpi else high
        return Affine(center=low, divisor=divisor, factor=factor, largest=largest)
    largest = np.maximum(np.abs(low), np.abs(high))
    span = high - low
    if openpi:
        span = span + _OPENPI_EPS
    elif layout is Layout.LEROBOT_V1:
        span = span + _EPS
    else:
        span = np.where(span == 0.0, _EPS, span)
    half = span / 2.0
    return Affine(center=low + half, divisor=half, factor=half, largest=largest)


def read_statistics(
    folder: Path,
    config: PI0CheckpointConfig,
    buffers: Mapping[str, Any],
    *,
    norm_stats: str | Path | None = None,
    unnorm_key: str | None = None,
) -> PI0Statistics:
    """Find a checkpoint's statistics.

    Args:
        folder: folder of the checkpoint.
        config: configuration of its config.json.
        buffers: statistics that its weight file held.
        norm_stats: a JSON file in openpi's or LeRobot's form to use instead; ``"none"`` leaves
            states and actions as they are.
        unnorm_key: which of openpi's ``assets`` to use, where there are several.

    Raises:
        ConfigError: if there are none, or they do not fit the checkpoint's modes.
    """
    modes = dict(config.norm_modes)
    if norm_stats == NO_STATISTICS:
        modes = dict.fromkeys(modes, "IDENTITY")
        table: Table = {}
    elif norm_stats is not None:
        table = _json_table(Path(norm_stats))
    else:
        table = _own_table(folder, config, buffers, unnorm_key)
    if not table and set(modes.values()) != {"IDENTITY"}:
        msg = (
            f"{folder} carries no statistics, so its actions have no units; give norm_stats=FILE "
            "(openpi's norm_stats.json or LeRobot's stats.json of the dataset), or "
            f"norm_stats={NO_STATISTICS!r} to take the model's numbers as they are"
        )
        raise ConfigError(msg)
    dims = config.model.max_state_dim, config.model.max_action_dim
    pairs = zip((_STATE, _ACTION), ("STATE", "ACTION"), dims, strict=True)
    state, action = (_one(table, names, modes[kind], dim, config) for names, kind, dim in pairs)
    return PI0Statistics(state=state, action=action)


def _one(
    table: Table, names: tuple[str, ...], mode: str, dim: int, config: PI0CheckpointConfig
) -> Affine:
    if mode == "IDENTITY":
        one = np.ones(dim)
        return Affine(center=np.zeros(dim), divisor=one, factor=one)
    found = next((table[name] for name in names if name in table), None)
    if found is None:
        msg = f"the statistics know {sorted(table)}; expected {' or '.join(names)} among them"
        raise ConfigError(msg)
    return affine(mode, found, layout=config.layout)


def _own_table(
    folder: Path, config: PI0CheckpointConfig, buffers: Mapping[str, Any], key: str | None
) -> Table:
    if config.layout is Layout.OPENPI:
        return _assets(folder, key)
    if key is not None:
        msg = f"unnorm_key={key!r}: this checkpoint has one set of statistics; leave the key out"
        raise ConfigError(msg)
    if buffers:
        return _nested({_buffer_name(name): value for name, value in buffers.items()})
    processor = folder / "processor_config.json"
    if config.layout is Layout.TRANSFORMERS and processor.is_file():
        data = read_json(processor)
        fields = ("state_mean", "state_std", "actions_mean", "actions_std")
        return _nested({n.replace("_", "."): data[n] for n in fields if data.get(n) is not None})
    return {**_pipeline(folder, "policy_preprocessor"), **_pipeline(folder, "policy_postprocessor")}


def _pipeline(folder: Path, name: str) -> Table:
    """Statistics of LeRobot's processor pipelines: a list of steps, each with its state file."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return {}
    for step in read_json(path).get("steps", ()):
        state = step.get("state_file")
        if str(step.get("registry_name", "")).endswith("normalizer_processor") and state:
            if not (folder / state).is_file():
                msg = f"{path.name} names {state}, which is not in {folder}"
                raise ConfigError(msg)
            return _nested(load_file(folder / state))
    return {}


def _assets(folder: Path, key: str | None) -> Table:
    found = {path.parent.name: path for path in sorted(folder.glob("assets/**/norm_stats.json"))}
    if not found:
        return {}
    if key is None and len(found) > 1:
        msg = f"several sets of statistics in {folder / 'assets'}; pass unnorm_key=, one of "
        raise ConfigError(msg + str(sorted(found)))
    if key is not None and key not in found:
        raise ConfigError(unknown_name("unnorm_key", key, found))
    return _json_table(found[key] if key is not None else next(iter(found.values())))


def _json_table(path: Path) -> Table:
    if not path.is_file():
        msg = f"norm_stats: {path} is not a file"
        raise ConfigError(msg)
    data = read_json(path)
    table: Table = data.get("norm_stats", data)
    return table


def _nested(flat: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    for key, value in flat.items():
        name, _, field = key.rpartition(".")
        table.setdefault(name, {})[field] = value
    return table


def _buffer_name(key: str) -> str:
    """``normalize_inputs.buffer_observation_state.mean`` as ``observation.state.mean``."""
    _, buffer, field = key.rsplit(".", 2)
    name = buffer.removeprefix("buffer_").replace("observation_state", "observation.state")
    return f"{name}.{field}"


def _array(given: Mapping[str, Any], name: str) -> FloatArray:
    if name not in given:
        msg = f"the statistics have {sorted(given)}, but no {name!r}"
        raise ConfigError(msg)
    values = np.asarray(given[name], dtype=np.float64).reshape(-1)
    if not np.isfinite(values).all():
        msg = (
            f"the statistics' {name!r} is not finite: the checkpoint was saved without a dataset; "
            "give norm_stats=FILE"
        )
        raise ConfigError(msg)
    return values
