"""The π0 policy: images, instruction and state to an action chunk, with K further draws."""

from __future__ import annotations

from pathlib import Path
from typing import Final, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError
from policies.action import adapter_for, checked_scale
from policies.base import FloatArray, Observation, PolicyOutput
from policies.checks import require_finite, require_ids, require_shape
from policies.pi0.checkpoint import LoadedPI0, load_model
from policies.pi0.config import read_config
from policies.pi0.flow import Flow, Prefix, encode_prefix, integrate
from policies.pi0.image import STYLES, ImageFit
from policies.pi0.inputs import InputReader, padded, state_reader
from policies.pi0.options import PI0Options
from policies.pi0.signals import (
    check_head,
    expert_logits,
    expert_scores,
    plan_overlap,
    plan_spread,
    velocity_change,
)
from policies.pi0.state import StateReader
from policies.pi0.statistics import NO_STATISTICS, read_statistics
from policies.precision import torch_dtype
from policies.sampling import normal_noise
from policies.statistics import translation_limits

__all__ = ["PI0Policy"]

_DTYPES: Final = ("float32", "bfloat16")
_ROBOT_DIM: Final = 7
"""Numbers of an action of SimplerEnv's robots."""


@final
class PI0Policy:
    """π0 from a checkpoint folder of LeRobot, openpi or transformers.

    Args:
        options: how it is loaded, executed and sampled.
        name: registered name.

    Raises:
        ConfigError: if an option names what does not exist, the checkpoint has no statistics, or
            its language head is all zero and ``expert_scores`` is set.
        CheckpointError: if a tensor is missing, left over or of the wrong shape.
    """

    def __init__(self, options: PI0Options, *, name: str = "pi0") -> None:
        self.name = name
        self.options = options
        self.checkpoint = Path(options.checkpoint)
        self._device = options.device
        self._dtype = torch_dtype(options.dtype, options.device, allowed=_DTYPES)
        self._adapter = adapter_for("pi0", options.robot)
        self.robot = None if self._adapter is None else self._adapter.convention.robot
        read_state = state_reader(options.state, self.robot.name if self.robot else None)
        self.config = read_config(self.checkpoint)
        horizon = int(self.config.model.chunk_size)
        if not 1 <= options.execute_steps <= horizon:
            msg = f"execute_steps must be from 1 to {horizon}, got {options.execute_steps}"
            raise ConfigError(msg)
        loaded = self._load()
        self.model, self._head = loaded.model, loaded.head
        self.statistics = read_statistics(
            self.checkpoint,
            self.config,
            loaded.statistics,
            norm_stats=options.norm_stats,
            unnorm_key=options.unnorm_key,
        )
        self.action_dim = self._action_dim(options.action_dim)
        action, raw = self.statistics.action, options.norm_stats == NO_STATISTICS
        lowest = None if raw else float(action.low[self.action_dim - 1])
        scale = checked_scale(self._adapter, lowest)
        self.translation_q99_m = (
            None if action.largest is None else translation_limits(action.largest, scale)
        )
        self.inputs = self._input_reader(read_state)
        self._steps = options.steps or int(self.config.model.num_inference_steps)
        self._step = 0
        self._left: FloatArray | None = None
        self._done = 0
        self._instruction = self._chunk_instruction = ""
        self.signals = frozenset({"chunk", "extra", "hidden", "normalized_action"})
        if options.samples:
            self.signals |= {"samples"}

    def _load(self) -> LoadedPI0:
        loaded = load_model(
            self.checkpoint,
            self.config.model,
            dtype=self._dtype,
            device=self._device,
            keep_head=self.options.expert_scores,
            tower=self.config.grounded_conv,
        )
        if loaded.head is not None:
            check_head(loaded.head)
        return loaded

    def _input_reader(self, read_state: StateReader | None) -> InputReader:
        squash, tokenizer = self.options.squash, self.options.tokenizer
        return InputReader(
            self.config,
            self.statistics.state,
            ImageFit(
                size=self.config.image_size,
                style=STYLES[self.config.layout],
                squash=self._adapter is not None if squash is None else squash,
            ),
            tokenizer=self.checkpoint if tokenizer is None else Path(tokenizer),
            read_state=read_state,
        )

    def reset(self, instruction: str) -> None:
        """Begin an episode; the noise starts from the seed again, the gripper holds nothing."""
        self._instruction = instruction
        self._step = 0
        self._left, self._done = None, 0
        if self._adapter is not None:
            self._adapter.reset()

    def act(self, observation: Observation) -> PolicyOutput:
        """Return the action for this observation.

        A state that the observation lacks is taken as the data's mean, which the model sees as
        zeros.

        Raises:
            MissingTokenizerError: if there is no tokenizer.
        """
        words = observation.instruction or self._instruction
        if (
            self._left is not None
            and self._done < self.options.execute_steps
            and words == self._chunk_instruction
        ):
            return self._go_on(self._left)
        self._chunk_instruction = words
        return self.infer(
            input_ids=[self.inputs.ids(words)],
            pixel_values=self.inputs.pixels(observation.image),
            state=self.inputs.state(observation),
        )

    def infer(
        self,
        *,
        input_ids: ArrayLike,
        pixel_values: ArrayLike,
        state: ArrayLike | None = None,
        noise: ArrayLike | None = None,
    ) -> PolicyOutput:
        """The same below tokenizer, image processor and statistics.

        Args:
            input_ids: input ids of the words, shape ``(1, n)``, beginning with BOS.
            pixel_values: shape ``(1, 3, S, S)``, or ``(1, cameras, 3, S, S)`` for several
                cameras in the checkpoint's order; leave out those that are missing.
            state: normalised, shape ``(1, d)``; padded with zeros. None is zeros.
            noise: shape ``(1 + K, H, max_action_dim)``; by default drawn from seed and step.

        Raises:
            ValueError: if something has another shape.
        """
        config = self.config.model
        shape = ((1 + self.options.samples), int(config.chunk_size), int(config.max_action_dim))
        if noise is None:
            noise = normal_noise(self.options.seed, self._step, shape)
        require_shape("noise", noise, (None, *shape[1:]))
        self._step += 1
        prefix = self._encode(input_ids, pixel_values)
        flow = integrate(
            self.model,
            prefix,
            self._tensor(padded(state, int(config.max_state_dim)), torch.float32),
            self._tensor(noise, torch.float32),
            self._steps,
        )
        output = self._output(flow)
        return output if self._adapter is None else self._adapter.adapt(output)

    def preprocess(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Pixels for :meth:`infer` of an RGB image ``(H, W, 3)`` uint8, ``(1, 3, S, S)``."""
        return self.inputs.pixels(image)

    def prefix_change(self, observation: Observation) -> float | None:
        """How far the first token, a part of the image, moves when the words are turned round.

        Attention goes both ways in π0's prefix, so the words, which come later, must reach it; with
        a causal mask this is exactly 0. The check before a run asks for it.

        Returns:
            Relative change in [0, 1]; None if reversing the words changes nothing.
        """
        ids = self.inputs.ids(observation.instruction or self._instruction)
        turned = [ids[0], *reversed(ids[1:])]
        if turned == ids:
            return None
        pixels = self.preprocess(observation.image)
        one, other = (self._encode([words], pixels).first.double() for words in (ids, turned))
        change, size = (one - other).norm(), one.norm() + other.norm()
        return float(change / size) if float(size) > 0.0 else 0.0

    def _encode(self, input_ids: ArrayLike, pixel_values: ArrayLike) -> Prefix:
        pixels = require_finite("pixel_values", pixel_values)
        if pixels.ndim == 4:
            pixels = pixels[:, None]
        side = self.config.image_size
        require_shape("pixel_values", pixels, (1, None, 3, side, side))
        ids = require_ids(input_ids, int(self.config.model.vlm_config.text_config.vocab_size))
        return encode_prefix(
            self.model, self._tensor(ids, torch.long), self._tensor(pixels, self._dtype)
        )

    def _output(self, flow: Flow) -> PolicyOutput:
        plans = flow.actions[..., : self.action_dim].double().cpu().numpy()
        velocities = flow.velocities[..., : self.action_dim].double().cpu().numpy()
        actions = self.statistics.action.unnormalize(plans)
        overlap = plan_overlap(self._left, plans[0])
        self._left, self._done = plans[0, 1:], 1
        extra: dict[str, float | None] = {
            "PI0-DV": velocity_change(velocities),
            "PI0-SPREAD": plan_spread(plans),
            "PI0-OVERLAP": overlap,
        }
        if self._head is not None:
            extra.update(expert_scores(expert_logits(self._head, flow.hidden[0])))
        horizon = plans.shape[1]
        return PolicyOutput(
            action=actions[0, 0],
            normalized_action=plans[0, 0],
            chunk=actions[0],
            samples=actions[1:, 0] if len(actions) > 1 else None,
            hidden=flow.hidden[0, -horizon:].float().mean(0).cpu().numpy(),
            extra=extra,
        )

    def _go_on(self, left: FloatArray) -> PolicyOutput:
        """The next action of a plan that is being done; nothing new is known about it."""
        self._left, self._done = left[1:], self._done + 1
        self._step += 1
        output = PolicyOutput(
            action=self.statistics.action.unnormalize(left[0]), normalized_action=left[0]
        )
        return output if self._adapter is None else self._adapter.adapt(output)

    def _action_dim(self, given: int | None) -> int:
        widest = int(self.config.model.max_action_dim)
        robots = _ROBOT_DIM if self._adapter is not None else None
        dim = given or robots or self.config.action_dim or self.statistics.action.size
        if (given is not None and given < 1) or dim > min(widest, self.statistics.action.size):
            shown, size = dim if given is None else given, self.statistics.action.size
            msg = (
                f"an action of {shown} numbers does not fit: the model gives {widest}, the "
                f"statistics know {size}; give action_dim"
            )
            raise ConfigError(msg)
        return dim

    def _tensor(self, values: ArrayLike, dtype: torch.dtype) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values)).to(self._device, dtype)
