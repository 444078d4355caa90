"""Sizes of an OpenVLA model, read from ``config.json`` in the format of the published checkpoints.

Two kinds of field go beyond that format: ``tiny_dims`` (widths of towers that no published name
stands for) and ``vision_config`` with ``space_token_id`` (the small tower of ``openvla-mini``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from monitor.errors import ConfigError
from policies.json_file import as_config_error, read_json
from policies.openvla.llama import LlamaSizes, llama_sizes

__all__ = [
    "GROUNDED_CONV",
    "TOWERS",
    "GroundedConvConfig",
    "LlamaSizes",
    "OpenVLAConfig",
    "ViTConfig",
    "grounded_conv_json",
]

GROUNDED_CONV: Final = "grounded-conv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViTConfig:
    """One pretrained tower.

    Attributes:
        family: ``"dino"`` (DINOv2 with registers) or ``"siglip"``.
        image_size: side of the square input, pixels.
        patch_size: side of a patch, pixels.
        width: channels.
        depth: blocks in the checkpoint; features leave after the last but one.
        heads: attention heads.
        mlp_width: hidden channels of each block's MLP.
    """

    family: str
    image_size: int
    patch_size: int = 14
    width: int
    depth: int
    heads: int
    mlp_width: int

    @property
    def patches(self) -> int:
        """Number of patches of one image."""
        return (self.image_size // self.patch_size) ** 2


def _dino(image_size: int) -> ViTConfig:
    return ViTConfig(
        family="dino", image_size=image_size, width=1024, depth=24, heads=16, mlp_width=4096
    )


def _siglip(image_size: int) -> ViTConfig:
    return ViTConfig(
        family="siglip", image_size=image_size, width=1152, depth=27, heads=16, mlp_width=4304
    )


TOWERS: Final[dict[str, ViTConfig]] = {
    "vit_large_patch14_reg4_dinov2.lvd142m": _dino(224),
    "vit_so400m_patch14_siglip_224": _siglip(224),
    "vit_so400m_patch14_siglip_384": _siglip(384),
}
"""Towers by their timm name, which is how the published configuration names them."""


_BACKBONES: Final[dict[str, tuple[str, ...]]] = {
    "dinov2-vit-l": ("vit_large_patch14_reg4_dinov2.lvd142m",),
    "siglip-vit-so400m": ("vit_so400m_patch14_siglip_224",),
    "siglip-vit-so400m-384px": ("vit_so400m_patch14_siglip_384",),
    "dinosiglip-vit-so-224px": (
        "vit_large_patch14_reg4_dinov2.lvd142m",
        "vit_so400m_patch14_siglip_224",
    ),
}
"""Towers by Prismatic's name for them, where a configuration leaves timm's names out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundedConvConfig:
    """The small tower of ``openvla-mini``: convolutions, keypoints and word-conditioned points.

    Attributes:
        image_size: side of the square input, pixels; a multiple of 16.
        stem: channels after the 8x8 convolution of stride 4.
        width: channels of the fine map, one cell per 4 pixels.
        coarse: channels of the coarse map, one cell per 8 pixels.
        embed: channels of a visual token.
        keypoints: points found without words; the first two are the tool and the target.
        grounded: points that the instruction asks for; the first three are the named object, the
            other object and the target.
        readout: channels read at each point.
        summary: tokens that hold all points together.
    """

    image_size: int = 96
    stem: int = 48
    width: int = 64
    coarse: int = 96
    embed: int = 128
    keypoints: int = 16
    grounded: int = 4
    readout: int = 32
    summary: int = 4

    @property
    def patch_size(self) -> int:
        """Side of the square of pixels behind one patch token."""
        return 16

    @property
    def patches(self) -> int:
        """Number of patch tokens."""
        return (self.image_size // self.patch_size) ** 2

    @property
    def tokens(self) -> int:
        """Number of visual tokens."""
        return self.patches + self.summary


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVLAConfig:
    """Everything that fixes the shape and the action space of a model.

    Attributes:
        towers: pretrained towers in the order of the concatenation, empty for the small tower.
        grounded_conv: the small tower, or None.
        fused: the projector has three layers, as behind two fused towers.
        llm: sizes of the language model.
        pad_to_multiple_of: unused rows at the end of the vocabulary, after the action ids.
        n_action_bins: bin edges of the action tokens.
        norm_stats: statistics by dataset name.
        space_token_id: id that upstream appends to the prompt (29871), or None.
        source: the JSON that it was read from, kept to write it again.
    """

    towers: tuple[ViTConfig, ...] = ()
    grounded_conv: GroundedConvConfig | None = None
    fused: bool = False
    llm: LlamaSizes = field(default_factory=LlamaSizes)
    pad_to_multiple_of: int = 64
    n_action_bins: int = 256
    norm_stats: Mapping[str, Any] = field(default_factory=dict)
    space_token_id: int | None = 29871
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def token_base(self) -> int:
        """Vocabulary size without padding: action id = ``token_base`` - bin number."""
        return self.llm.vocab_size - self.pad_to_multiple_of

    @property
    def action_token_range(self) -> tuple[int, int]:
        """Half-open range of the action ids."""
        return self.token_base - self.n_action_bins, self.token_base

    @property
    def image_size(self) -> int:
        """Side of the square input, pixels."""
        return (self.grounded_conv or self.towers[0]).image_size

    @property
    def visual_tokens(self) -> int:
        """Tokens that the image takes in the language model's sequence."""
        return self.grounded_conv.tokens if self.grounded_conv else self.towers[0].patches

    @property
    def visual_width(self) -> int:
        """Channels that enter the projector."""
        if self.grounded_conv:
            return self.grounded_conv.embed
        return sum(tower.width for tower in self.towers)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OpenVLAConfig:
        """Read a parsed ``config.json``.

        Raises:
            ConfigError: if it names a tower or a language model that is not known here.
        """
        text = dict(data.get("text_config") or {})
        if text.get("model_type", "llama") != "llama":
            msg = f"text_config.model_type is {text['model_type']!r}; only 'llama' is supported"
            raise ConfigError(msg)
        if data.get("pad_token_id") is not None:
            text.setdefault("pad_token_id", data["pad_token_id"])
        small = data.get("vision_backbone_id") == GROUNDED_CONV
        config = cls(
            towers=() if small else _towers(data),
            grounded_conv=GroundedConvConfig(**data["vision_config"]) if small else None,
            fused=_fused(data),
            llm=llama_sizes(text),
            pad_to_multiple_of=int(data.get("pad_to_multiple_of", 64)),
            n_action_bins=int(data.get("n_action_bins", 256)),
            norm_stats=data.get("norm_stats") or {},
            space_token_id=data.get("space_token_id", 29871),
            source=dict(data),
        )
        config._check_action_ids()
        return config

    def _check_action_ids(self) -> None:
        """Refuse numbers that would shift every action by some bins, or leave no room for them."""
        vocabulary, pad = self.llm.vocab_size, self.pad_to_multiple_of
        if pad < 0 or (pad and vocabulary % pad):
            msg = (
                f"text_config.vocab_size {vocabulary} is not a multiple of "
                f"pad_to_multiple_of {pad}, so "
                "the ids of the actions are not known"
            )
            raise ConfigError(msg)
        if self.n_action_bins < 2 or self.action_token_range[0] < 0:
            msg = (
                f"n_action_bins is {self.n_action_bins}; it must be from 2 to the "
                f"{self.token_base} "
                "ids of the vocabulary"
            )
            raise ConfigError(msg)

    @classmethod
    def from_folder(cls, folder: Path) -> OpenVLAConfig:
        """Read ``config.json`` of a checkpoint folder.

        Fine-tuned checkpoints keep their statistics in ``dataset_statistics.json``; where that file
        exists its entries come on top.
        """
        path = folder / "config.json"
        if not path.is_file():
            msg = f"{folder} holds no config.json; give the folder of an OpenVLA checkpoint"
            raise ConfigError(msg)
        data = read_json(path)
        extra = folder / "dataset_statistics.json"
        if extra.is_file():
            data["norm_stats"] = {**(data.get("norm_stats") or {}), **read_json(extra)}
        with as_config_error(path):
            return cls.from_json(data)


def grounded_conv_json(
    tower: GroundedConvConfig, llm: LlamaSizes, *, pad_to_multiple_of: int
) -> dict[str, Any]:
    """The ``config.json`` of a model with the small tower, without statistics."""
    return {
        "model_type": "openvla",
        "architectures": ["OpenVLAForActionPrediction"],
        "vision_backbone_id": GROUNDED_CONV,
        "vision_config": asdict(tower),
        "use_fused_vision_backbone": False,
        "image_resize_strategy": "resize-naive",
        "image_sizes": [tower.image_size, tower.image_size],
        "text_config": {"model_type": "llama", **asdict(llm)},
        "pad_to_multiple_of": pad_to_multiple_of,
        "pad_token_id": llm.pad_token_id,
        "n_action_bins": 256,
        "space_token_id": None,
    }


def _fused(data: Mapping[str, Any]) -> bool:
    given = data.get("use_fused_vision_backbone")
    if given is None:
        return len(_tower_names(data)) > 1
    return bool(given)


def _tower_names(data: Mapping[str, Any]) -> tuple[str, ...]:
    given = data.get("timm_model_ids")
    return tuple(given or _BACKBONES.get(str(data.get("vision_backbone_id")), ()))


def _image_size(data: Mapping[str, Any], index: int, tower: ViTConfig) -> int:
    sizes = data.get("image_sizes") or []
    return int(sizes[index]) if index < len(sizes) else tower.image_size


def _towers(data: Mapping[str, Any]) -> tuple[ViTConfig, ...]:
    tiny = data.get("tiny_dims") or {}
    towers: list[ViTConfig] = []
    for name, part in zip(_tower_names(data), ("featurizer", "fused_featurizer"), strict=False):
        if name not in TOWERS:
            msg = f"vision tower {name!r} is not known; known: {', '.join(sorted(TOWERS))}"
            raise ConfigError(msg)
        tower = replace(TOWERS[name], image_size=_image_size(data, len(towers), TOWERS[name]))
        if part in tiny:
            own = tiny[part]
            tower = ViTConfig(
                family=tower.family,
                image_size=own["image_size"],
                patch_size=own["patch_size"],
                width=own["embed_dim"],
                depth=own["depth"],
                heads=own["num_heads"],
                mlp_width=own["mlp_hidden_dim"],
            )
        if tower.family == "dino" and tower.mlp_width % tower.width:
            msg = f"a DINOv2 tower's MLP must be a multiple of its {tower.width} channels"
            raise ConfigError(msg)
        towers.append(tower)
    if not towers:
        msg = "config.json names no vision tower (timm_model_ids is missing or empty)"
        raise ConfigError(msg)
    return tuple(towers)
