"""What a π0 checkpoint's ``config.json`` says, in any of the four forms that are published.

Three fields go beyond those forms: ``vlm_config`` and ``dit_config`` next to LeRobot's own (widths
of small models without a published variant name), and ``grounded_conv`` (the small tower of
``pi0-mini``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from transformers import PI0Config

from monitor.errors import ConfigError, unknown_name
from policies.json_file import as_config_error, read_json
from policies.openvla.config import GroundedConvConfig

__all__ = ["Layout", "PI0CheckpointConfig", "config_of", "read_config"]

VARIANTS: Final[Mapping[str, str]] = {
    "paligemma_variant": "gemma_2b",
    "action_expert_variant": "gemma_300m",
}
"""The sizes of every published π0; transformers' defaults are the same."""

PROMPT: Final = 48
"""Longest prompt, tokens, where a checkpoint does not say."""
LEAST_PROMPT: Final = 2

_SIZES: Final = ("chunk_size", "max_state_dim", "max_action_dim", "num_inference_steps")
_FLOW: Final = ("min_period", "max_period")
_TOWERS: Final = ("vlm_config", "dit_config")
_FOREIGN: Final = (
    "adapt_to_pi_aloha",
    "use_delta_joint_actions_aloha",
    "use_relative_actions",
    "pi05",
)
"""Switches of upstream that change what the numbers mean; a checkpoint with one is refused."""


class Layout(str, Enum):
    """Who wrote the checkpoint; this fixes how images are resized and statistics applied."""

    LEROBOT = "lerobot"
    """LeRobot since 0.4, as ``lerobot/pi0_base``."""
    LEROBOT_V1 = "lerobot-v1"
    """LeRobot before 0.4, as ``lerobot/pi0`` and the fine-tunes of the SimplerEnv evaluations."""
    OPENPI = "openpi"
    """openpi's own PyTorch export."""
    TRANSFORMERS = "transformers"
    """``save_pretrained`` of transformers; treated as LeRobot's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PI0CheckpointConfig:
    """Everything that fixes a model's shape and the meaning of its numbers.

    Attributes:
        layout: who wrote the checkpoint.
        model: transformers' configuration.
        cameras: names of the images, in the order of the prefix.
        state_dim: numbers of the robot's state that the checkpoint was trained with.
        action_dim: numbers of its actions; None where only the statistics know.
        norm_modes: ``MEAN_STD``, ``QUANTILES``, ``MIN_MAX`` or ``IDENTITY``, each for ``STATE``
            and ``ACTION``.
        prompt_tokens: longest prompt, tokens.
        grounded_conv: sizes of the small tower that takes SigLIP's place, or None.
    """

    layout: Layout
    model: PI0Config
    cameras: tuple[str, ...]
    state_dim: int
    action_dim: int | None
    norm_modes: Mapping[str, str]
    prompt_tokens: int = 48
    grounded_conv: GroundedConvConfig | None = None

    @property
    def image_size(self) -> int:
        """Side of the square input, pixels."""
        if self.grounded_conv is not None:
            return self.grounded_conv.image_size
        return int(self.model.vlm_config.vision_config.image_size)


def read_config(folder: Path) -> PI0CheckpointConfig:
    """Read ``config.json`` of a checkpoint folder.

    Raises:
        ConfigError: if it is missing, is not a π0, or changes the action space in a way that is not
            supported here.
    """
    path = folder / "config.json"
    if not path.is_file():
        msg = f"{folder} holds no config.json; give the folder of a π0 checkpoint"
        raise ConfigError(msg)
    data = read_json(path)
    with as_config_error(path):
        return config_of(data, path)


def config_of(data: Mapping[str, Any], path: Path = Path("config.json")) -> PI0CheckpointConfig:
    """What a parsed ``config.json`` says.

    Args:
        data: the file's content.
        path: that errors name.

    Raises:
        ConfigError: as :func:`read_config`.
    """
    layout = _layout(data)
    for name in _FOREIGN:
        if data.get(name):
            msg = f"{path}: {name} is {data[name]!r}; such checkpoints are not supported here"
            raise ConfigError(msg)
    for name, size in VARIANTS.items():
        if data.get(name, size) != size and not data.keys() & set(_TOWERS):
            msg = f"{path}: {name} is {data[name]!r}; only {size!r} is published and supported"
            raise ConfigError(msg)
    model = PI0Config(**_model_fields(data, layout))
    for name in ("chunk_size", "num_inference_steps"):
        if getattr(model, name) < 1:
            msg = f"{path}: {name} is {getattr(model, name)}, must be at least 1"
            raise ConfigError(msg)
    prompt_tokens = _prompt_tokens(path, data)
    inputs = data.get("input_features") or {}
    cameras = tuple(name for name, one in inputs.items() if one.get("type") == "VISUAL")
    return PI0CheckpointConfig(
        layout=layout,
        model=model,
        cameras=cameras or ("base_0_rgb",),
        state_dim=_size(inputs, "observation.state") or int(model.max_state_dim),
        action_dim=_size(data.get("output_features") or {}, "action"),
        norm_modes=_norm_modes(data),
        prompt_tokens=prompt_tokens,
        grounded_conv=_grounded_conv(data),
    )


def _grounded_conv(data: Mapping[str, Any]) -> GroundedConvConfig | None:
    given = data.get("grounded_conv")
    return None if given is None else GroundedConvConfig(**given)


def _prompt_tokens(path: Path, data: Mapping[str, Any]) -> int:
    for name in ("tokenizer_max_length", "max_token_len"):
        if (given := data.get(name)) is not None:
            if int(given) < LEAST_PROMPT:
                msg = f"{path}: {name} is {given}, must be at least {LEAST_PROMPT}: BOS and a word"
                raise ConfigError(msg)
            return int(given)
    return PROMPT


def _layout(data: Mapping[str, Any]) -> Layout:
    kind = data.get("type") or data.get("model_type")
    if kind is None and "action_horizon" in data:
        return Layout.OPENPI
    if kind != "pi0":
        msg = f"config.json is of type {kind!r}, expected 'pi0'"
        raise ConfigError(msg)
    if "type" not in data:
        return Layout.TRANSFORMERS
    # LeRobot's first port knew no variants and called the denoising steps otherwise.
    old = "num_steps" in data or "resize_imgs_with_padding" in data
    return Layout.LEROBOT_V1 if old else Layout.LEROBOT


def _model_fields(data: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    given = {name: data[name] for name in (*_SIZES, *_FLOW, *_TOWERS) if data.get(name) is not None}
    if layout is Layout.LEROBOT_V1:
        # That port plans as many actions as it executes, whatever chunk_size says.
        given["chunk_size"] = data.get("n_action_steps", data.get("chunk_size", 50))
        given.setdefault("num_inference_steps", data.get("num_steps", 10))
    if layout is Layout.OPENPI:
        given["chunk_size"] = data["action_horizon"]
        given["max_action_dim"] = given["max_state_dim"] = data.get("action_dim", 32)
    resolution = data.get("image_resolution") or data.get("resize_imgs_with_padding")
    if resolution is not None and "vlm_config" not in given and list(resolution) != [224, 224]:
        msg = f"config.json asks for images of {list(resolution)}; only [224, 224] is published"
        raise ConfigError(msg)
    return given


def _size(features: Mapping[str, Any], name: str) -> int | None:
    shape = (features.get(name) or {}).get("shape")
    return int(shape[0]) if shape else None


def _norm_modes(data: Mapping[str, Any]) -> dict[str, str]:
    given = data.get("normalization_mapping") or {}
    known = ("MEAN_STD", "QUANTILES", "MIN_MAX", "IDENTITY")
    modes = {name: str(given.get(name, "MEAN_STD")) for name in ("STATE", "ACTION")}
    for mode in modes.values():
        if mode not in known:
            raise ConfigError(unknown_name("normalization", mode, known))
    return modes
