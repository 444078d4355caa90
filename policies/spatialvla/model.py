"""SpatialVLA: SigLIP patches with their positions in space, and Gemma 2 that emits action tokens.

The modules carry the names of the published checkpoints (Qu et al. 2025); towers, depth and
language model are those of transformers, without its generation: attention in the prefix is
bidirectional, which a causal mask would silently undo.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    DynamicCache,
    Gemma2ForCausalLM,
    SiglipVisionModel,
    ZoeDepthForDepthEstimation,
)

from policies.openvla.config import GroundedConvConfig
from policies.openvla.grounded import GroundedConvTower
from policies.spatialvla.config import SpatialVLAConfig
from policies.spatialvla.conv_depth import ConvDepth, ConvDepthConfig
from policies.spatialvla.depth import estimate_depth
from policies.spatialvla.space import Ego3DPositionEmbedding, back_project, patch_centres

__all__ = ["Answer", "Prefix", "SpatialVLA"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prefix:
    """What the language model made of image and prompt.

    Attributes:
        states: last hidden states, ``(1, n, width)``.
        cache: keys and values to continue from.
    """

    states: Tensor
    cache: DynamicCache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """Action tokens decoded greedily; what ends the sequence is not among them.

    Attributes:
        ids: shape ``(n,)``; fewer than were asked for where the model ended its answer.
        logits: raw, after the final soft cap, over the whole vocabulary, ``(n, V)``.
    """

    ids: Tensor
    logits: Tensor


class _Projector(nn.Module):
    def __init__(self, visual: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(visual, width)

    def forward(self, features: Tensor) -> Tensor:
        out: Tensor = self.linear(features)
        return out


class SpatialVLA(nn.Module):
    """Image, camera and prompt in, action tokens out."""

    vision_tower: SiglipVisionModel | GroundedConvTower
    vision_zoe_model: ZoeDepthForDepthEstimation | ConvDepth | None
    position_embedding_3d: Ego3DPositionEmbedding | None
    spatial_embed_tokens: nn.Embedding | None

    def __init__(self, config: SpatialVLAConfig) -> None:
        super().__init__()
        self.config = config
        visual, width = config.visual_width, config.text.hidden_size
        if isinstance(config.vision, GroundedConvConfig):
            self.vision_tower = GroundedConvTower(config.vision, width)
        else:
            self.vision_tower = SiglipVisionModel(config.vision)
        self.multi_modal_projector = _Projector(visual, config.projection_width)
        # Gemma 2 caps its attention scores, which only the eager form does.
        self.language_model = Gemma2ForCausalLM._from_config(
            config.text, attn_implementation="eager"
        )
        self.vision_zoe_model = self.position_embedding_3d = self.spatial_embed_tokens = None
        if config.depth is not None:
            self.vision_zoe_model = _depth_model(config.depth)
            self.position_embedding_3d = Ego3DPositionEmbedding(
                3 * config.points_per_side**2, visual, config.frequencies
            )
        if config.spatial_tokens:
            self.spatial_embed_tokens = nn.Embedding(config.action_tokens, width)

    @torch.no_grad()
    def finish_loading(self) -> None:
        """Compute what no checkpoint holds, after the weights were put into a model on meta."""
        if isinstance(self.vision_tower, GroundedConvTower):
            self.vision_tower.fill_buffers()
        else:
            embeddings = self.vision_tower.embeddings
            embeddings.position_ids = torch.arange(self.config.visual_tokens)[None]
        gemma = self.language_model.model
        gemma.rotary_emb = type(gemma.rotary_emb)(config=self.language_model.config)
        gemma.embed_tokens.embed_scale = torch.tensor(gemma.embed_tokens.scalar_embed_scale)
        if self.vision_zoe_model is not None:
            parts: Iterable[Any] = self.vision_zoe_model.modules()
            for module in parts:
                if hasattr(module, "k_minus_1"):
                    module.k_idx = torch.arange(module.k).view(1, -1, 1, 1)
                    module.k_minus_1 = torch.tensor([module.k - 1]).view(1, -1, 1, 1)
        if self.spatial_embed_tokens is not None:
            # The table of the action tokens wins over what the vocabulary holds for them: at its
            # end when upstream loads a model, at their ids when it runs.
            table, (low, high) = self.spatial_embed_tokens.weight, self.config.action_token_range
            gemma.embed_tokens.weight[-len(table) :] = table
            gemma.embed_tokens.weight[low:high] = table

    def depth(self, pixels: Tensor) -> Tensor:
        """Depth of every pixel, metres, ``(B, 1, S, S)``; pixels in [0, 1]."""
        assert self.vision_zoe_model is not None, "this model has no depth"
        if isinstance(self.vision_zoe_model, ConvDepth):
            shallow: Tensor = self.vision_zoe_model(pixels)
            return shallow
        return estimate_depth(self.vision_zoe_model, pixels)

    def points(self, pixels: Tensor, intrinsic: Tensor) -> Tensor:
        """Points in space of every patch, ``(B, patches, 3 * points)``, metres, camera frame."""
        return self.places(self.depth(pixels), intrinsic)

    def places(self, depth: Tensor, intrinsic: Tensor) -> Tensor:
        """The same of a known depth.

        Args:
            depth: depth of every pixel, metres, ``(B, 1, S, S)``.
            intrinsic: camera matrix for this image's size, pixels, ``(3, 3)``.
        """
        patch, per_side = self.config.patch_size, self.config.points_per_side
        centres = patch_centres(self.config.image_size, patch, per_side).to(depth)
        return back_project(
            depth, intrinsic.to(depth), centres, patch_size=patch, per_side=per_side
        )

    def look(self, pixels: Tensor, words: Tensor | None) -> Tensor:
        """Features of the image's tokens as the tower leaves them, ``(B, n, visual width)``.

        Args:
            pixels: pixels in [0, 1], ``(B, 3, S, S)``.
            words: embeddings of the text, ``(B, n, width)``; the small tower alone asks for them.
        """
        scaled = (pixels - 0.5) / 0.5
        if isinstance(self.vision_tower, GroundedConvTower):
            found: Tensor = self.vision_tower(scaled, words).tokens
        else:
            found = self.vision_tower(scaled).last_hidden_state
        return found

    def project(self, seen: Tensor, points: Tensor | None) -> Tensor:
        """Features for the language model, ``(B, n, width)``.

        Args:
            seen: result of :meth:`look`.
            points: result of :meth:`points`; None for a model without them.
        """
        if self.position_embedding_3d is not None and points is not None:
            places = self.position_embedding_3d(points)
            # Tokens that the small tower has in addition to its patches have no position.
            seen = seen + functional.pad(places, (0, 0, 0, seen.shape[1] - places.shape[1]))
        projected: Tensor = self.multi_modal_projector(seen)
        return projected

    def see(self, pixels: Tensor, intrinsic: Tensor, words: Tensor | None = None) -> Tensor:
        """Features of the image for the language model, ``(B, n, width)``."""
        seen = self.look(pixels, words)
        if self.position_embedding_3d is None:
            return self.project(seen, None)
        return self.project(seen, self.points(pixels, intrinsic))

    def embed(self, input_ids: Tensor, pixels: Tensor, intrinsic: Tensor) -> Tensor:
        """Input embeddings: the prompt with the image in the place of its image tokens.

        Raises:
            ValueError: if the prompt has not one image token for each token of the image.
        """
        text = self._text(input_ids)
        count = self.config.visual_tokens
        return self._placed(input_ids, text, self.see(pixels, intrinsic, text[:, count:]))

    def forward(
        self, input_ids: Tensor, seen: Tensor, points: Tensor | None, action_ids: Tensor
    ) -> Tensor:
        """Logits of given action tokens, for training: the prefix is read both ways.

        Args:
            input_ids: prompts of one length, shape ``(B, n)``.
            seen: result of :meth:`look`.
            points: result of :meth:`points`.
            action_ids: the true action tokens, shape ``(B, k)``.

        Returns:
            Shape ``(B, k, V)``; row i predicts token i.
        """
        prefix = self._placed(input_ids, self._text(input_ids), self.project(seen, points))
        before = self.language_model.get_input_embeddings()(action_ids[:, :-1])
        whole = torch.cat([prefix, before.to(prefix.dtype)], dim=1)
        place = torch.arange(whole.shape[1], device=whole.device)
        hidden = (place[None, :] > place[:, None]) & (place[None, :] >= prefix.shape[1])
        lowest = torch.finfo(whole.dtype).min
        mask = whole.new_zeros(hidden.shape).masked_fill(hidden, lowest)[None, None]
        states = self._states(whole, mask, None)
        return self.logits(states[:, prefix.shape[1] - 1 :])

    def read(self, input_ids: Tensor, pixels: Tensor, intrinsic: Tensor) -> Prefix:
        """Read the prefix, every token of it seeing every other.

        Args:
            input_ids: shape ``(1, n)``.
            pixels: pixels in [0, 1], ``(1, 3, S, S)``.
            intrinsic: camera matrix for this image's size, pixels, ``(3, 3)``.
        """
        cache = DynamicCache(config=self.language_model.config)
        embedded = self.embed(input_ids, pixels, intrinsic)
        return Prefix(states=self._run(embedded, cache), cache=cache)

    @torch.inference_mode()
    def answer(self, prefix: Prefix, count: int) -> Answer:
        """Decode greedily after a prefix, until there are ``count`` tokens or the sequence ends.

        The prefix can be continued from again: its cache is not touched.
        """
        ids: list[Tensor] = []
        logits: list[Tensor] = []
        cache, last = copy.deepcopy(prefix.cache), prefix.states[:, -1]
        while len(ids) < count:
            row = self.logits(last)
            chosen = row.argmax(dim=-1)
            if int(chosen) in self.config.eos_token_ids:
                break
            ids.append(chosen)
            logits.append(row)
            if len(ids) < count:
                last = self._advance(chosen, cache)
        if not ids:
            empty = last.new_empty((0, self.config.text.vocab_size))
            return Answer(ids=torch.empty(0, dtype=torch.long), logits=empty)
        return Answer(ids=torch.cat(ids), logits=torch.cat(logits))

    @torch.inference_mode()
    def sample(
        self,
        prefix: Prefix,
        groups: tuple[tuple[int, int], ...],
        noise: Tensor,
        temperature: float,
    ) -> Tensor:
        """Sample continuations of a prefix, all in one batch.

        Args:
            prefix: its cache is not touched.
            groups: half-open range of ids to draw from, for each token.
            noise: standard Gumbel numbers, one per continuation and id of the groups in turn.
            temperature: factor on the noise; 0 gives the likeliest ids.

        Returns:
            Ids, shape ``(len(noise), len(groups))``.
        """
        cache = copy.deepcopy(prefix.cache)
        cache.batch_repeat_interleave(len(noise))
        ids: list[Tensor] = []
        last = prefix.states[:, -1].expand(len(noise), -1)
        parts = torch.split(noise, [high - low for low, high in groups], dim=1)
        for (low, high), part in zip(groups, parts, strict=True):
            heat = self.logits(last)[:, low:high].float() + temperature * part
            ids.append(heat.argmax(dim=-1) + low)
            if len(ids) < len(groups):
                last = self._advance(ids[-1], cache)
        return torch.stack(ids, dim=1)

    def logits(self, states: Tensor) -> Tensor:
        """Logits after the final soft cap, ``(..., V)``, of hidden states ``(..., width)``."""
        raw: Tensor = self.language_model.lm_head(states)
        cap = self.config.text.final_logit_softcapping
        return raw if cap is None else torch.tanh(raw / cap) * cap

    def mask(self, embedded: Tensor, before: int) -> Tensor:
        """What is added to the scores of new inputs: nothing, they see each other and the past."""
        new = embedded.shape[1]
        return embedded.new_zeros(1, 1, new, before + new)

    def _text(self, input_ids: Tensor) -> Tensor:
        """Embeddings of a prompt, ``(B, n, width)``, those of its image tokens to be replaced."""
        count = self.config.visual_tokens
        at = input_ids == self.config.image_token_id
        if int(at.sum()) != count * len(input_ids):
            msg = (
                f"input_ids hold {int(at.sum())} image tokens (id {self.config.image_token_id}); "
                f"the image has {count} patches"
            )
            raise ValueError(msg)
        text: Tensor = self.language_model.get_input_embeddings()(input_ids)
        return text

    def _placed(self, input_ids: Tensor, text: Tensor, features: Tensor) -> Tensor:
        """A prompt's embeddings with the image's features in their place."""
        at = input_ids == self.config.image_token_id
        # As upstream: divided here, multiplied again where the language model scales its input.
        features = features / self.config.text.hidden_size**0.5
        scale = self.language_model.get_input_embeddings().embed_scale.to(text.dtype)
        return text.masked_scatter(at[..., None], features.to(text.dtype) * scale)

    def _advance(self, ids: Tensor, cache: DynamicCache) -> Tensor:
        """Hidden state ``(B, width)`` after one more token each, ``(B,)``."""
        table = self.language_model.get_input_embeddings()
        return self._run(table(ids[:, None]), cache)[:, -1]

    def _run(self, embedded: Tensor, cache: DynamicCache) -> Tensor:
        """Hidden states of new inputs, all of which see each other and everything before."""
        before, new = cache.get_seq_length(), embedded.shape[1]
        window = self.config.text.sliding_window
        if window is not None and before + new > window:
            msg = f"the sequence has {before + new} tokens, above the sliding window of {window}"
            raise ValueError(msg)
        return self._states(embedded, self.mask(embedded, before), cache)

    def _states(self, embedded: Tensor, mask: Tensor, cache: DynamicCache | None) -> Tensor:
        """Hidden states of new inputs under a mask that is added to the scores."""
        before = 0 if cache is None else cache.get_seq_length()
        masks: dict[str, Any] = dict.fromkeys(set(self.config.text.layer_types), mask)
        # Positions count from 1, as in PaliGemma.
        end = before + embedded.shape[1]
        positions = torch.arange(before, end, device=embedded.device)[None] + 1
        out: Tensor = self.language_model.model(
            inputs_embeds=embedded,
            attention_mask=masks,
            position_ids=positions,
            cache=cache,
            use_cache=cache is not None,
        ).last_hidden_state
        return out


def _depth_model(config: Any) -> ZoeDepthForDepthEstimation | ConvDepth:
    if isinstance(config, ConvDepthConfig):
        return ConvDepth(config)
    model = ZoeDepthForDepthEstimation(config)
    model.backbone.set_attn_implementation("eager")
    return model
