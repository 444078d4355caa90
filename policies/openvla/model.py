"""OpenVLA: vision towers, a projector and a causal language model that emits action tokens.

One class for every size. The modules carry the names of the published checkpoints (Kim et al.
2024); the towers and the language model are those of transformers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from policies.openvla.config import OpenVLAConfig
from policies.openvla.grounded import GroundedConvTower, VisualTokens
from policies.openvla.towers import VisionTowers

__all__ = ["ActionTokens", "OpenVLA", "Projector"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActionTokens:
    """Action tokens of one image: row 0 greedy, further rows sampled.

    Attributes:
        ids: shape ``(1 + K, n)``.
        logits: logits of the greedy row, raw, over the whole vocabulary, ``(n, V)``.
        hidden: last hidden state where the first action token is predicted, ``(width,)``.
    """

    ids: Tensor
    logits: Tensor
    hidden: Tensor


class Projector(nn.Module):
    """From visual channels to the width of the language model: three layers if fused, else two."""

    def __init__(self, visual: int, width: int, *, fused: bool) -> None:
        super().__init__()
        inner = 4 * visual if fused else width
        self.fc1 = nn.Linear(visual, inner)
        self.fc2 = nn.Linear(inner, width)
        self.fc3 = nn.Linear(width, width) if fused else None

    def forward(self, features: Tensor) -> Tensor:
        """Project ``(B, n, visual)`` to ``(B, n, width)``."""
        x: Tensor = self.fc2(nn.functional.gelu(self.fc1(features)))
        return x if self.fc3 is None else self.fc3(nn.functional.gelu(x))


class OpenVLA(nn.Module):
    """Image and prompt in, action tokens out."""

    vision_backbone: GroundedConvTower | VisionTowers

    def __init__(self, config: OpenVLAConfig) -> None:
        super().__init__()
        self.config = config
        width = config.llm.hidden_size
        if config.grounded_conv is not None:
            self.vision_backbone = GroundedConvTower(config.grounded_conv, width)
        else:
            self.vision_backbone = VisionTowers(config.towers)
        self.projector = Projector(config.visual_width, width, fused=config.fused)
        self.language_model = LlamaForCausalLM(
            LlamaConfig(**asdict(config.llm), tie_word_embeddings=False, use_cache=False)
        )

    def init_fan_in(self) -> None:
        """Draw all weights again by fan-in: at small widths the usual 0.02 does not learn."""
        for module in self.language_model.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.reset_parameters()
        with torch.no_grad():
            self.language_model.lm_head.weight.mul_(0.5)

    def fill_buffers(self) -> None:
        """Compute what no checkpoint holds, after the weights were put into a model on meta."""
        self.vision_backbone.fill_buffers()
        rotary = self.language_model.model.rotary_emb
        fresh = type(rotary)(config=self.language_model.config)
        self.language_model.model.rotary_emb = fresh

    def see(self, input_ids: Tensor, pixel_values: Tensor, mask: Tensor | None) -> VisualTokens:
        """Visual tokens of images ``(B, C, S, S)``; only the small tower reads the words."""
        if isinstance(self.vision_backbone, GroundedConvTower):
            text = self.language_model.get_input_embeddings()(input_ids)
            return self.vision_backbone(pixel_values, text, mask)  # type: ignore[no-any-return]
        return VisualTokens(tokens=self.vision_backbone(pixel_values))

    def embed(self, input_ids: Tensor, visual: VisualTokens) -> Tensor:
        """Input embeddings: BOS, the image, the rest of the text."""
        text = self.language_model.get_input_embeddings()(input_ids)
        image_tokens = self.projector(visual.tokens.to(text.dtype))
        return torch.cat([text[:, :1], image_tokens, text[:, 1:]], dim=1)

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        action_ids: Tensor,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, VisualTokens]:
        """Teacher-forced logits, for training.

        Args:
            input_ids: prompt, right-padded, shape ``(B, n)``.
            pixel_values: shape ``(B, C, S, S)``.
            action_ids: the true action tokens, shape ``(B, k)``.
            mask: 1 where a prompt token is real, shape ``(B, n)``; None if all are.

        Returns:
            Logits ``(B, k, V)`` that predict ``action_ids``, and what the tower saw.
        """
        visual = self.see(input_ids, pixel_values, mask)
        prefix = self.embed(input_ids, visual)
        steps = action_ids.shape[1]
        before = self.language_model.get_input_embeddings()(action_ids[:, :-1])
        inputs = torch.cat([prefix, before], dim=1)
        extra: dict[str, Any] = {}
        if mask is not None:
            ones = mask.new_ones
            whole = torch.cat(
                [
                    mask[:, :1],
                    ones(len(mask), visual.tokens.shape[1]),
                    mask[:, 1:],
                    ones(len(mask), steps - 1),
                ],
                dim=1,
            )
            extra = {
                "attention_mask": whole,
                "position_ids": (whole.cumsum(dim=1) - 1).clamp(min=0),
            }
        out = self.language_model.model(inputs_embeds=inputs, use_cache=False, **extra)
        hidden = out.last_hidden_state
        if mask is None:
            last = hidden[:, -steps:]
        else:
            # The first action token is predicted where the real prompt ends, before its padding.
            end = mask.sum(dim=1) + visual.tokens.shape[1] - 1
            first = hidden[torch.arange(len(hidden), device=hidden.device), end]
            last = torch.cat([first[:, None], hidden[:, hidden.shape[1] - steps + 1 :]], dim=1)
        return self.language_model.lm_head(last), visual

    @torch.inference_mode()
    def decode(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        *,
        tokens: int,
        noise: Tensor | None = None,
        temperature: float = 1.0,
    ) -> ActionTokens:
        """Decode action tokens greedily, and more of them by sampling after the same prefix.

        Args:
            input_ids: shape ``(1, n)``.
            pixel_values: shape ``(1, C, S, S)``.
            tokens: how many.
            noise: Gumbel numbers of the rows to sample next to the greedy one, all in one batch,
                shape ``(K, tokens, action ids)``; see :func:`policies.sampling.gumbel_noise`.
            temperature: temperature of the sampling, which is among the action ids only.
        """
        samples = 0 if noise is None else len(noise)
        llm = self.language_model
        low, high = self.config.action_token_range
        cache = DynamicCache(config=llm.config)
        inputs = self.embed(input_ids, self.see(input_ids, pixel_values, None))
        hidden = llm.model(inputs_embeds=inputs, cache=cache, use_cache=True).last_hidden_state
        first = hidden[0, -1]
        last = hidden[:, -1].repeat(1 + samples, 1)
        if samples:
            cache.batch_repeat_interleave(1 + samples)
        ids, logits = [], []
        for step in range(tokens):
            row = llm.lm_head(last)
            logits.append(row[0])
            chosen = row[:1].argmax(dim=-1)
            if noise is not None:
                drawn = (row[1:, low:high].float() + temperature * noise[:, step]).argmax(dim=-1)
                chosen = torch.cat([chosen, drawn + low])
            ids.append(chosen)
            if step + 1 < tokens:
                embedded = llm.get_input_embeddings()(chosen)[:, None]
                out = llm.model(inputs_embeds=embedded, cache=cache, use_cache=True)
                last = out.last_hidden_state[:, -1]
        return ActionTokens(ids=torch.stack(ids, dim=1), logits=torch.stack(logits), hidden=first)
