"""Filling transformers' π0 from a checkpoint folder: every key accounted for, low peak memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import PI0Config, PI0ForConditionalGeneration

from policies.checkpoint import CheckpointError, TensorFiles, check_fit
from policies.json_file import as_config_error
from policies.openvla.config import GroundedConvConfig
from policies.openvla.grounded import GroundedConvTower
from policies.pi0.keys import HEAD, is_statistic, native_names

__all__ = ["LoadedPI0", "build_model", "fill_buffers", "load_model"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedPI0:
    """A model and what its weight file held in addition to the weights.

    Attributes:
        model: filled, in evaluation mode, without the expert's language head.
        head: that head ``(V, width)`` where it was asked for, else None.
        statistics: statistics of LeRobot's first port, by key; empty for later checkpoints.
    """

    model: PI0ForConditionalGeneration
    head: Tensor | None
    statistics: Mapping[str, Tensor]


def build_model(
    config: PI0Config, tower: GroundedConvConfig | None = None
) -> PI0ForConditionalGeneration:
    """The model without memory: shapes only, on the meta device.

    Args:
        config: configuration of the model.
        tower: sizes of the small tower in SigLIP's place, or None.
    """
    with torch.device("meta"):
        model = PI0ForConditionalGeneration(config)
        if tower is not None:
            width = config.vlm_config.text_config.hidden_size
            model.model.vlm.vision_tower = GroundedConvTower(tower, width)
            model.model.vlm.multi_modal_projector.linear = nn.Linear(tower.embed, width)
    return model


def load_model(
    folder: Path,
    config: PI0Config,
    *,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    keep_head: bool = False,
    tower: GroundedConvConfig | None = None,
) -> LoadedPI0:
    """Build the model of ``config`` and fill it with the folder's weights.

    The backbone takes ``dtype``; the small projections around the action expert stay in float32 as
    upstream's do, so that the ten Euler steps add up without rounding.

    Args:
        folder: with model.safetensors or its shards.
        config: configuration of the model.
        dtype: dtype of the backbone.
        device: Torch device.
        keep_head: keep the expert's language head (0.5 GB in bfloat16), which no action needs.
        tower: sizes of the small tower in SigLIP's place, or None.

    Raises:
        CheckpointError: if a key is missing, left over, of the wrong shape or not finite.
        ConfigError: if no model can have the sizes of ``config.json``.
    """
    with as_config_error(folder / "config.json"):
        model = build_model(config, tower)
    with TensorFiles.opened(folder, device) as files:
        described = files.described()
        buffers = [key for key in described if is_statistic(key)]
        names = native_names(key for key in described if not is_statistic(key))
        check_fit(model.state_dict(), {name: described[key] for name, key in names.items()})
        source = names.pop(HEAD)
        head = files.read(source, dtype) if keep_head else None
        model.model.dit.embed_tokens = None
        placed = {
            name: files.read(key, dtype if name.startswith("model.") else torch.float32)
            for name, key in names.items()
        }
        statistics = {key: files.read(key, torch.float32, finite=False).cpu() for key in buffers}
    model.load_state_dict(placed, assign=True)
    fill_buffers(model, device)
    model.eval().requires_grad_(requires_grad=False)
    return LoadedPI0(model=model, head=head, statistics=statistics)


def fill_buffers(model: PI0ForConditionalGeneration, device: str) -> None:
    """Compute what no checkpoint holds; a buffer that is not known here is an error."""
    config = model.config
    language, vision = model.model.vlm.language_model, model.model.vlm.vision_tower
    for gemma, sizes in ((model.model.dit, config.dit_config), (language, language.config)):
        gemma.rotary_emb = type(gemma.rotary_emb)(config=sizes)
    embedding = language.embed_tokens
    embedding.embed_scale = torch.tensor(embedding.scalar_embed_scale)
    if isinstance(vision, GroundedConvTower):
        vision.fill_buffers()
    else:
        patches = vision.embeddings
        patches.position_ids = torch.arange(patches.num_positions).expand((1, -1))
    waves = model.embed_action_time.sinusoid_embeds
    waves.sinusoid_freq = _frequencies(config, device)
    left = [name for name, one in model.named_buffers() if one.is_meta]
    left += [name for name, one in model.named_parameters() if one.is_meta]
    if left:
        msg = f"transformers has tensors that are not known here: {left}; install 5.24"
        raise CheckpointError(msg)
    model.to(device)


def _frequencies(config: PI0Config, device: str) -> Tensor:
    """Angular frequencies of the time embedding, shape ``(width / 2,)``, as upstream has them.

    The fastest turns 250 times within t = 1: in float32, which transformers takes, its phase is off
    by 1e-4. LeRobot and openpi take float64 wherever the device has it.
    """
    dtype = torch.float32 if device.startswith("mps") else torch.float64
    share = torch.linspace(0.0, 1.0, config.dit_config.hidden_size // 2, dtype=dtype)
    period = config.min_period * (config.max_period / config.min_period) ** share
    return torch.as_tensor(2.0 * torch.pi / period)
