"""Sizes of a SpatialVLA model, read from ``config.json`` in the published format.

The nested configurations become those of transformers; a field that they do not know is bookkeeping
of the library that wrote the file and is left out. A size that the file leaves out has the default
of transformers, as it had when the file was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from transformers import BeitConfig, Gemma2Config, SiglipVisionConfig, ZoeDepthConfig

from monitor.errors import ConfigError
from policies.json_file import as_config_error, read_json
from policies.openvla.config import GROUNDED_CONV, GroundedConvConfig
from policies.spatialvla.conv_depth import CONV_DEPTH, ConvDepthConfig

__all__ = ["SpatialVLAConfig"]

_LEGACY_ROPE: Final = ("rope_theta", "rope_scaling")
"""Older names that transformers still turns into ``rope_parameters``."""
_BOOKKEEPING: Final = frozenset(
    {
        "architectures",
        "dtype",
        "id2label",
        "label2id",
        "output_hidden_states",
        "problem_type",
        "return_dict",
        "transformers_version",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpatialVLAConfig:
    """Everything that fixes the shape of a model.

    Attributes:
        vision: configuration of the SigLIP tower, or of the small tower of ``spatialvla-mini``.
        text: configuration of the Gemma 2 language model.
        depth: configuration of ZoeDepth, or of the small network of ``spatialvla-mini``; None for
            a model without positions in space.
        projection_width: channels that leave the projector.
        image_token_id: stands for one patch in the prompt.
        action_token_begin: first of the action ids.
        action_tokens: how many action ids there are.
        spatial_tokens: their embeddings are a table of their own.
        bos_token_id: begins the text after the image.
        eos_token_ids: end the answer; they are not actions.
        points_per_side: points in space per patch, along each of its sides.
        frequencies: frequencies of the encoding of these points.
    """

    vision: SiglipVisionConfig | GroundedConvConfig
    text: Gemma2Config
    depth: ZoeDepthConfig | ConvDepthConfig | None
    projection_width: int
    image_token_id: int
    action_token_begin: int
    action_tokens: int
    spatial_tokens: bool
    bos_token_id: int
    eos_token_ids: tuple[int, ...]
    points_per_side: int
    frequencies: int

    @property
    def action_token_range(self) -> tuple[int, int]:
        """Half-open range of the action ids."""
        return self.action_token_begin, self.action_token_begin + self.action_tokens

    @property
    def image_size(self) -> int:
        """Side of the square input, pixels."""
        return int(self.vision.image_size)

    @property
    def patch_size(self) -> int:
        """Side of a patch, pixels."""
        return int(self.vision.patch_size)

    @property
    def visual_tokens(self) -> int:
        """Tokens that the image takes in the language model's sequence."""
        if isinstance(self.vision, GroundedConvConfig):
            return self.vision.tokens
        return int((self.vision.image_size // self.vision.patch_size) ** 2)

    @property
    def visual_width(self) -> int:
        """Channels that enter the projector."""
        if isinstance(self.vision, GroundedConvConfig):
            return self.vision.embed
        return int(self.vision.hidden_size)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SpatialVLAConfig:
        """Read a parsed ``config.json``.

        Raises:
            ConfigError: if it is of another kind of model, or lacks what has no default.
        """
        if data.get("model_type") != "spatialvla":
            msg = f"config.json is of a {data.get('model_type')!r} model; expected 'spatialvla'"
            raise ConfigError(msg)
        text = _sub(data, "text_config", Gemma2Config, "gemma2", keep=_LEGACY_ROPE)
        eos = data.get("eos_token_id", text.eos_token_id)
        return cls(
            vision=_vision(data),
            text=text,
            depth=_depth(data) if data.get("use_vision_zoe", True) else None,
            projection_width=int(_needed(data, "projection_dim")),
            image_token_id=int(_needed(data, "image_token_index")),
            action_token_begin=int(_needed(data, "action_token_begin_idx")),
            action_tokens=int(_needed(data, "spatial_token_num")),
            spatial_tokens=bool(data.get("use_spatial_token", False)),
            bos_token_id=int(data.get("bos_token_id", text.bos_token_id)),
            eos_token_ids=tuple(eos) if isinstance(eos, list | tuple) else (int(eos),),
            points_per_side=int(data.get("ego3d_patch_reso", 4)),
            frequencies=int(data.get("n_freqs", 8)),
        )

    @classmethod
    def from_folder(cls, folder: Path) -> SpatialVLAConfig:
        """Read ``config.json`` of a checkpoint folder.

        Raises:
            ConfigError: if there is none, or as :meth:`from_json`.
        """
        path = folder / "config.json"
        if not path.is_file():
            msg = f"{folder} holds no config.json; give the folder of a SpatialVLA checkpoint"
            raise ConfigError(msg)
        with as_config_error(path):
            return cls.from_json(read_json(path))


def _needed(data: Mapping[str, Any], key: str) -> Any:
    if data.get(key) is None:
        msg = f"config.json lacks {key!r}, which has no default"
        raise ConfigError(msg)
    return data[key]


def _sub(
    data: Mapping[str, Any], key: str, kind: Any, model_type: str, keep: tuple[str, ...] = ()
) -> Any:
    """One nested configuration; attention is eager wherever transformers offers a choice here."""
    given = dict(_needed(data, key))
    if given.get("model_type", model_type) != model_type:
        msg = f"{key}.model_type is {given['model_type']!r}; only {model_type!r} is supported"
        raise ConfigError(msg)
    known = {one.name for one in fields(kind)} - _BOOKKEEPING | set(keep)
    return kind(**{name: value for name, value in given.items() if name in known})


def _vision(data: Mapping[str, Any]) -> SiglipVisionConfig | GroundedConvConfig:
    given = dict(_needed(data, "vision_config"))
    if given.get("model_type") == GROUNDED_CONV:
        del given["model_type"]
        return GroundedConvConfig(**given)
    tower: SiglipVisionConfig = _sub(
        data, "vision_config", SiglipVisionConfig, "siglip_vision_model"
    )
    return tower


def _depth(data: Mapping[str, Any]) -> ZoeDepthConfig | ConvDepthConfig:
    given = dict(_needed(data, "vision_zoe_config"))
    if given.get("model_type") == CONV_DEPTH:
        del given["model_type"]
        return ConvDepthConfig(**given)
    # The stages are properties of transformers' configuration, not fields.
    backbone = _sub(given, "backbone_config", BeitConfig, "beit", keep=("out_features",))
    backbone._attn_implementation = "eager"
    given["backbone_config"] = backbone
    depth: ZoeDepthConfig = _sub(
        {"vision_zoe_config": given}, "vision_zoe_config", ZoeDepthConfig, "zoedepth"
    )
    return depth
