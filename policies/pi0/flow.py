"""Sampling of π0: one prefix (images and words), then a few Euler steps per draw of noise.

The prefix goes through PaliGemma once; its keys and values are then repeated for a batch of draws,
so that K further plans cost K rows of the small action expert and not K whole inferences.

Source: Black et al. 2024, "π0: A Vision-Language-Action Flow Model for General Robot Control",
arXiv 2410.24164, section IV: v is integrated from noise at t = 1 to actions at t = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PI0ForConditionalGeneration

from policies.openvla.grounded import GroundedConvTower

__all__ = ["Flow", "Prefix", "encode_prefix", "integrate", "join", "read_prefix", "velocity"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prefix:
    """Images and words as the action expert sees them.

    Attributes:
        cache: keys and values of each layer, a row an observation.
        mask: ones, shape ``(1, n)``, or a row an observation.
        first: what PaliGemma makes of the first token, shape ``(width,)``; it belongs to the first
            image and has seen the words only if attention goes both ways.
    """

    cache: Any
    mask: Tensor
    first: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flow:
    """What the integration gave, for each of B draws.

    Attributes:
        actions: normalised plans, shape ``(B, H, max_action_dim)`` float32.
        velocities: velocities of the last two steps, or of the only one, shape
            ``(2, B, H, max_action_dim)``.
        hidden: expert's output at the last step for state and actions, shape ``(B, 1 + H, width)``.
    """

    actions: Tensor
    velocities: Tensor
    hidden: Tensor


@torch.no_grad()
def encode_prefix(
    model: PI0ForConditionalGeneration, input_ids: Tensor, pixel_values: Tensor
) -> Prefix:
    """Send images and words through PaliGemma once.

    A camera that is missing is left out: upstream masks its tokens, which then count neither for
    attention nor for positions.

    Args:
        model: transformers' π0.
        input_ids: input ids of the words, shape ``(1, n)``.
        pixel_values: pixel values of the cameras that are there, shape ``(1, cameras, 3, S, S)``.
    """
    return read_prefix(model, embed(model, input_ids, pixel_values))


def embed(model: PI0ForConditionalGeneration, input_ids: Tensor, pixel_values: Tensor) -> Tensor:
    """Embeddings of images and words, ``(1, n, width)``; arguments as :func:`encode_prefix`."""
    tower = model.model.vlm.vision_tower
    if isinstance(tower, GroundedConvTower):
        words = model.model.vlm.get_input_embeddings()(input_ids)
        looks = [tower(pixel_values[:, one], words).tokens for one in range(pixel_values.shape[1])]
        return join(model, torch.cat(looks, dim=1), words)
    config = model.config.vlm_config
    vision = config.vision_config
    places = pixel_values.shape[1] * (vision.image_size // vision.patch_size) ** 2
    image_tokens = input_ids.new_full((1, places), config.image_token_id)
    ids = torch.cat([image_tokens, input_ids], dim=1)
    seen = torch.ones(pixel_values.shape[:2], dtype=torch.bool, device=ids.device)
    embedded: Tensor = model.model.embed_prefix(ids, pixel_values, seen)
    return embedded


def join(model: PI0ForConditionalGeneration, seen: Tensor, words: Tensor) -> Tensor:
    """What the small tower saw, through the projector, and the words behind it.

    Args:
        model: with the small tower.
        seen: its tokens, ``(B, n, channels)``.
        words: embedded, ``(B, m, width)``.
    """
    image_tokens = model.model.vlm.multi_modal_projector(seen.to(words.dtype))
    return torch.cat([image_tokens, words], dim=1)


def read_prefix(model: PI0ForConditionalGeneration, embedded: Tensor) -> Prefix:
    """Send embedded images and words ``(B, n, width)`` through PaliGemma."""
    mask = embedded.new_ones(embedded.shape[:2], dtype=torch.long)
    out = model.model.vlm(
        inputs_embeds=embedded,
        attention_mask=mask,
        position_ids=mask.cumsum(-1) - 1,
        # Zeros mean: one block, in which every token sees every other.
        token_type_ids=torch.zeros_like(mask),
        use_cache=True,
    )
    return Prefix(cache=out.cache, mask=mask, first=out.last_hidden_state[0, 0])


def velocity(
    model: PI0ForConditionalGeneration, prefix: Prefix, states: Tensor, x: Tensor, time: Tensor
) -> tuple[Tensor, Tensor]:
    """The field at noisy plans; keys and values of these plans stay behind in the cache.

    Args:
        model: transformers' π0.
        prefix: whose cache has B rows.
        states: normalised and padded, shape ``(B, max_state_dim)``.
        x: noisy plans, ``(B, H, max_action_dim)``.
        time: from 1 (noise) to 0 (actions), shape ``(B,)``.

    Returns:
        Velocities of ``x``'s shape, and the expert's output ``(B, 1 + H, width)``.
    """
    mask = prefix.mask[:1].expand(len(x), -1)
    suffix = model.embed_action_time(states, x, time).to(model.model.dit.norm.weight.dtype)
    hidden = model.model(
        action_embeds=suffix, attention_mask=mask, cache=prefix.cache
    ).last_hidden_state
    field: Tensor = model.action_out_proj(hidden[:, -x.shape[1] :].to(x.dtype))
    return field, hidden


@torch.no_grad()
def integrate(
    model: PI0ForConditionalGeneration, prefix: Prefix, state: Tensor, noise: Tensor, steps: int
) -> Flow:
    """Integrate draws of noise to plans; the prefix must not be used again.

    Args:
        model: transformers' π0.
        prefix: prefix of this observation, or of several.
        state: normalised and padded, a row an observation, shape ``(n, max_state_dim)``.
        noise: as many draws for each observation in turn, ``(B, H, max_action_dim)``.
        steps: steps of Euler's method.
    """
    batch = noise.shape[0]
    cache, length = prefix.cache, prefix.mask.shape[1]
    draws = batch // len(state)
    cache.batch_repeat_interleave(draws)
    states = state.repeat_interleave(draws, dim=0)
    dt = -1.0 / steps
    x = noise
    velocities: list[Tensor] = []
    for step in range(steps):
        time = torch.full((batch,), 1.0 + step * dt, dtype=torch.float32, device=x.device)
        field, hidden = velocity(model, prefix, states, x, time)
        cache.crop(length - cache.get_seq_length())
        velocities = [*velocities[-1:], field]
        x = x + dt * field
    return Flow(actions=x, velocities=torch.stack(velocities), hidden=hidden)
