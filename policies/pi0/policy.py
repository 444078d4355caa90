"""The π0 policy: pictures, instruction and state to a plan, with K further draws beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError
from policies.action import ActionConvention, adapter_for
from policies.base import FloatArray, Observation, PolicyOutput
from policies.checks import require_finite, require_ids, require_shape
from policies.pi0.checkpoint import load_model
from policies.pi0.config import read_settings
from policies.pi0.flow import Flow, Prefix, encode_prefix, integrate
from policies.pi0.image import STYLES, ImageFit
from policies.pi0.inputs import InputReader, padded, state_reader
from policies.pi0.signals import (
    check_head,
    expert_logits,
    expert_scores,
    plan_overlap,
    plan_spread,
    velocity_change,
)
from policies.pi0.statistics import NO_STATISTICS, read_scaling
from policies.precision import torch_dtype
from policies.sampling import check_sampling, normal_noise
from policies.statistics import translation_limits

__all__ = ["PI0Policy", "pi0_mini"]

_MINI_CHECKPOINT: Final = Path(__file__).parents[1] / "pi0_mini"
"""The small model that comes with the package."""

_DTYPES: Final = ("float32", "bfloat16")
_ROBOT_DIM: Final = 7
"""Numbers of an action of SimplerEnv's robots."""


@final
class PI0Policy:
    """π0 from a checkpoint folder of LeRobot, openpi or transformers.

    Args:
        checkpoint: folder with config.json, safetensors and, for :meth:`act`, tokenizer.json
            (PaliGemma's; LeRobot's checkpoints leave it out).
        tokenizer: folder of tokenizer.json, where it is not the checkpoint's.
        norm_stats: JSON file of statistics to use instead of the checkpoint's; ``"none"`` leaves
            states and actions in the model's own units.
        unnorm_key: which of openpi's ``assets`` holds the statistics, where there are several.
        robot: ``widowx`` or ``google_robot``: actions come as SimplerEnv takes them for it; a
            convention of one's own; None leaves the actions in the units of the data set.
        state: layout of the robot's state: ``bridge``, ``fractal``, ``joints`` or ``none``; by
            default the robot's own, or none without a robot.
        action_dim: numbers of an action, where the checkpoint does not say.
        device: of torch.
        dtype: of the backbone: ``float32`` or ``bfloat16``; None takes float32 on a CPU, else
            bfloat16.
        samples: further plans drawn at each step; they share one pass over pictures and words.
        execute: actions of a plan that are done before the model is asked again. At the steps
            between there are no signals, which is cheaper and sees less.
        steps: Euler steps; by default the checkpoint's.
        seed: of the noise, which depends on it and on the step within the episode alone.
        squash: shrink pictures to the square without keeping their shape, as the SimplerEnv
            evaluations do; by default wherever there is a robot.
        expert_scores: also give the token metrics that the replication code of Valle et al.
            computes from the action expert's language head.
        name: as in the registry.

    Raises:
        ConfigError: if an argument names what does not exist, the checkpoint has no statistics, or
            its language head is all zero and ``expert_scores`` asked for it.
        CheckpointError: if a tensor is missing, left over or of the wrong shape.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        *,
        tokenizer: str | Path | None = None,
        norm_stats: str | Path | None = None,
        unnorm_key: str | None = None,
        robot: str | ActionConvention | None = None,
        state: str | None = None,
        action_dim: int | None = None,
        device: str = "cpu",
        dtype: str | None = None,
        samples: int = 4,
        execute: int = 1,
        steps: int | None = None,
        seed: int = 0,
        squash: bool | None = None,
        expert_scores: bool = False,
        name: str = "pi0",
    ) -> None:
        backbone = torch_dtype(dtype, device, allowed=_DTYPES)
        check_sampling(samples, seed=seed)
        if steps is not None and steps < 1:
            msg = f"steps must be at least 1, got {steps}"
            raise ConfigError(msg)
        self.name = name
        self.checkpoint = Path(checkpoint)
        self._adapter = adapter_for("pi0", robot)
        self.robot = None if self._adapter is None else self._adapter.convention.robot
        read_state = state_reader(state, self.robot.name if self.robot else None)
        self.settings = read_settings(self.checkpoint)
        horizon = int(self.settings.model.chunk_size)
        if not 1 <= execute <= horizon:
            msg = f"execute is {execute}; the plans of this checkpoint have 1 to {horizon} actions"
            raise ConfigError(msg)
        loaded = load_model(
            self.checkpoint,
            self.settings.model,
            dtype=backbone,
            device=device,
            keep_head=expert_scores,
            tower=self.settings.grounded_conv,
        )
        self.model, self._head = loaded.model, loaded.head
        if self._head is not None:
            check_head(self._head)
        self.scaling = read_scaling(
            self.checkpoint,
            self.settings,
            loaded.statistics,
            norm_stats=norm_stats,
            unnorm_key=unnorm_key,
        )
        self.action_dim = self._action_dim(action_dim)
        scale = 1.0 if self._adapter is None else self._adapter.convention.action_scale
        largest = self.scaling.action.largest
        self.translation_q99_m = None if largest is None else translation_limits(largest, scale)
        if self._adapter is not None and norm_stats != NO_STATISTICS:
            self._adapter.require_opening(float(self.scaling.action.low[self.action_dim - 1]))
        self.inputs = InputReader(
            self.settings,
            self.scaling.state,
            ImageFit(
                size=self.settings.image_size,
                style=STYLES[self.settings.layout],
                squash=self._adapter is not None if squash is None else squash,
            ),
            tokenizer=self.checkpoint if tokenizer is None else Path(tokenizer),
            read_state=read_state,
        )
        self._device, self._dtype = device, backbone
        self._draws = 1 + samples
        self._steps = steps or int(self.settings.model.num_inference_steps)
        self._execute = execute
        self._seed, self._step = seed, 0
        self._left: FloatArray | None = None
        self._done = 0
        self._instruction = self._planned = ""
        self.signals = frozenset({"chunk", "extra", "hidden", "normalized_action"})
        if samples:
            self.signals |= {"samples"}

    def reset(self, instruction: str) -> None:
        """Begin an episode; the noise starts from the seed again, the gripper holds nothing."""
        self._instruction = instruction
        self._step = 0
        self._left, self._done = None, 0
        if self._adapter is not None:
            self._adapter.reset()

    def act(self, observation: Observation) -> PolicyOutput:
        """Say what to do now.

        A state that the observation lacks is taken as the data's mean, which the model sees as
        zeros.

        Raises:
            MissingTokenizerError: if there is no tokenizer.
        """
        words = observation.instruction or self._instruction
        if self._left is not None and self._done < self._execute and words == self._planned:
            return self._go_on(self._left)
        self._planned = words
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
            input_ids: of the words, shape ``(1, n)``, beginning with BOS.
            pixel_values: shape ``(1, 3, S, S)``, or ``(1, cameras, 3, S, S)`` for several
                cameras in the checkpoint's order; leave out those that are missing.
            state: normalised, shape ``(1, d)``; padded with zeros. None is zeros.
            noise: shape ``(1 + K, H, max_action_dim)``; by default drawn from seed and step.

        Raises:
            ValueError: if something has another shape.
        """
        config = self.settings.model
        shape = (self._draws, int(config.chunk_size), int(config.max_action_dim))
        if noise is None:
            noise = normal_noise(self._seed, self._step, shape)
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
        """Pixels for :meth:`infer` of an RGB picture ``(H, W, 3)`` uint8, ``(1, 3, S, S)``."""
        return self.inputs.pixels(image)

    def prefix_change(self, observation: Observation) -> float | None:
        """How far the first token, a part of the picture, moves when the words are turned round.

        Attention goes both ways in π0's prefix, so the words, which come later, must reach it; with
        a causal mask this is exactly 0. The check before a run asks for it.

        Returns:
            Relative change in [0, 1]; None where turning the words round changes nothing.
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
        side = self.settings.image_size
        require_shape("pixel_values", pixels, (1, None, 3, side, side))
        ids = require_ids(input_ids, int(self.settings.model.vlm_config.text_config.vocab_size))
        return encode_prefix(
            self.model, self._tensor(ids, torch.long), self._tensor(pixels, self._dtype)
        )

    def _output(self, flow: Flow) -> PolicyOutput:
        plans = flow.actions[..., : self.action_dim].double().cpu().numpy()
        velocities = flow.velocities[..., : self.action_dim].double().cpu().numpy()
        actions = self.scaling.action.unnormalize(plans)
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
            action=self.scaling.action.unnormalize(left[0]), normalized_action=left[0]
        )
        return output if self._adapter is None else self._adapter.adapt(output)

    def _action_dim(self, given: int | None) -> int:
        widest = int(self.settings.model.max_action_dim)
        robots = _ROBOT_DIM if self._adapter is not None else None
        dim = given or robots or self.settings.action_dim or self.scaling.action.size
        if (given is not None and given < 1) or dim > min(widest, self.scaling.action.size):
            msg = (
                f"an action of {dim if given is None else given} numbers does not fit: the model gives {widest}, the "
                f"statistics know {self.scaling.action.size}; give action_dim"
            )
            raise ConfigError(msg)
        return dim

    def _tensor(self, values: ArrayLike, dtype: torch.dtype) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values)).to(self._device, dtype)


def pi0_mini(checkpoint: str | Path | None = None, **kwargs: Any) -> PI0Policy:
    """The small model of this project; by default the weights that come with the package."""
    folder = _MINI_CHECKPOINT if checkpoint is None else checkpoint
    return PI0Policy(folder, name="pi0-mini", **kwargs)
