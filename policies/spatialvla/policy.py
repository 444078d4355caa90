"""The SpatialVLA policy: image, camera and instruction to twelve tokens to four actions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError
from policies.action import (
    ActionAdapter,
    ActionConvention,
    adapter_for,
    checked_scale,
    dataset_key,
)
from policies.base import FloatArray, Observation, PolicyOutput
from policies.checks import require_finite, require_ids, require_shape
from policies.image import resized_square
from policies.precision import torch_dtype
from policies.sampling import gumbel_noise
from policies.spatialvla.camera import camera_matrix, scale_matrix, usable_matrix
from policies.spatialvla.checkpoint import load_model
from policies.spatialvla.config import SpatialVLAConfig
from policies.spatialvla.grid import TOKENS_PER_STEP
from policies.spatialvla.model import Prefix
from policies.spatialvla.options import SpatialVLAOptions
from policies.spatialvla.processor import ImageProcessor
from policies.spatialvla.prompt import build_prompt, prompt_ids
from policies.spatialvla.recipe import Recipe
from policies.statistics import statistics_for
from policies.tokenizer import load_tokenizer

__all__ = ["SpatialVLAPolicy"]


@final
class SpatialVLAPolicy:
    """SpatialVLA from a checkpoint folder, any size.

    Every answer is a chunk of actions. By default the model is asked at every step and the chunk is
    a signal for the monitor; with ``robot`` the chunks that overlap are averaged as in the
    published evaluation; with ``execute_steps`` above 1 that many actions of a chunk are carried
    out instead, one by one.

    Args:
        options: how it is loaded, executed and sampled.
        name: registered name.

    Raises:
        ConfigError: if an option names what does not exist or is out of range.
    """

    def __init__(self, options: SpatialVLAOptions, *, name: str = "spatialvla") -> None:
        self.name = name
        self.options = options
        self.checkpoint = Path(options.checkpoint)
        self.config = SpatialVLAConfig.from_folder(self.checkpoint)
        recipe = Recipe.from_folder(self.checkpoint, self.config.action_token_range)
        self.grid, self.chunk_steps = recipe.grid, recipe.chunk_steps
        if not 1 <= options.execute_steps <= self.chunk_steps:
            msg = f"execute_steps must be from 1 to {self.chunk_steps}, got {options.execute_steps}"
            raise ConfigError(msg)
        average = options.execute_steps == 1
        self._adapter = _adapter(options.robot, self.chunk_steps, average=average)
        self.robot = None if self._adapter is None else self._adapter.convention.robot
        key = dataset_key(options.unnorm_key, self._adapter, recipe.statistics)
        self.statistics = statistics_for(recipe.statistics, key)
        scale = checked_scale(self._adapter, float(self.statistics.q01[-1]))
        self.translation_q99_m = self.statistics.translation_q99_m(scale)
        self._processor = ImageProcessor.from_folder(self.checkpoint, self.config.image_size)
        self.intrinsic = self._camera_matrix(recipe, key)
        # Last, so that a mistyped option is reported at once and not after minutes of reading.
        dtype = torch_dtype(options.dtype, options.device)
        self.model = load_model(self.checkpoint, dtype, options.device)
        self._squash = self._adapter is not None if options.squash is None else options.squash
        self._step = 0
        self._pending: list[FloatArray] = []
        self._tokenizer: Any = None
        self._instruction = ""
        self.signals = frozenset(
            {"token_logits", "token_ids", "chunk", "hidden", "normalized_action"}
        )
        if options.samples:
            self.signals |= {"samples"}

    def reset(self, instruction: str) -> None:
        """Begin an episode: nothing is planned, sampling starts from the seed again."""
        self._instruction = instruction
        self._step = 0
        self._pending = []
        if self._adapter is not None:
            self._adapter.reset()

    def act(self, observation: Observation) -> PolicyOutput:
        """Return the action for this observation.

        Raises:
            MissingTokenizerError: if the checkpoint has no tokenizer.
        """
        if self._pending:
            return self._carry_on()
        ids = self._ids(observation.instruction or self._instruction)
        return self.infer(input_ids=[ids], pixel_values=self.preprocess(observation.image))

    def infer(
        self,
        *,
        input_ids: ArrayLike,
        pixel_values: ArrayLike,
        intrinsic: ArrayLike | None = None,
    ) -> PolicyOutput:
        """The same below tokenizer and image processor.

        Args:
            input_ids: shape ``(1, n)``: an image token a patch, BOS, the text.
            pixel_values: pixel values in [0, 1], shape ``(1, 3, S, S)``.
            intrinsic: camera matrix for these pixels, ``(3, 3)``; None takes the policy's own.

        Raises:
            ValueError: if one has another shape, ids are none of the vocabulary, pixels are not
                finite, or the matrix is none of a camera.
        """
        prefix = self._read(input_ids, pixel_values, intrinsic)
        count = TOKENS_PER_STEP * self.chunk_steps
        out = self.model.answer(prefix, count)
        ids = out.ids.cpu().numpy()
        whole = np.zeros(count, dtype=np.int64)
        # As upstream: what the model left out becomes the first cell of its group, and is not
        # an action to trust, as ``decode_ok`` says.
        whole[: len(ids)] = ids
        normalized = self.grid.decode(whole)
        chunk = self.statistics.unnormalize(normalized)
        output = PolicyOutput(
            action=chunk[0],
            chunk=chunk,
            normalized_action=normalized[0],
            token_ids=ids if len(ids) else None,
            token_logits=out.logits.float().cpu().numpy() if len(ids) else None,
            action_token_range=self.config.action_token_range,
            samples=self._draw(prefix) if self.options.samples else None,
            hidden=prefix.states[0, -1].float().cpu().numpy(),
            decode_ok=len(ids) == count and self.grid.in_place(ids),
        )
        self._step += 1
        self._pending = list(chunk[1 : self.options.execute_steps])
        return output if self._adapter is None else self._adapter.adapt(output)

    def preprocess(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Pixels for :meth:`infer` of an RGB image ``(H, W, 3)`` uint8."""
        if self._squash:
            image = resized_square(image, self.config.image_size)
        return self._processor(image)

    def decode(self, token_ids: ArrayLike) -> FloatArray:
        """Normalised actions ``(n, 7)`` of action tokens ``(n, 3)`` or ``(3 n,)``."""
        return self.grid.decode(token_ids)

    def encode(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Action tokens ``(n, 3)`` of normalised actions ``(n, 7)``."""
        return self.grid.encode(actions)

    def prefix_change(self, observation: Observation) -> float | None:
        """How far the first token, a part of the image, moves when the words are turned round.

        The prefix is read both ways, so the words, which come later, must reach it; with a causal
        mask this is exactly 0. The check before a run asks for it.

        Returns:
            Relative change in [0, 1]; None if reversing the words changes nothing.
        """
        ids = self._ids(observation.instruction or self._instruction)
        start = self.config.visual_tokens + 1
        turned = [*ids[:start], *reversed(ids[start:])]
        if turned == ids:
            return None
        pixels = self.preprocess(observation.image)
        one, other = (
            self._read([words], pixels, None).states[0, 0].double() for words in (ids, turned)
        )
        size = float(one.norm() + other.norm())
        return float((one - other).norm()) / size if size > 0.0 else 0.0

    def _camera_matrix(self, recipe: Recipe, unnorm_key: str | None) -> NDArray[np.float32]:
        given, side = self.options.intrinsic, self.config.image_size
        if given is not None:
            return scale_matrix(given, width=side, height=side, side=side)
        camera = self.options.camera
        key = camera or unnorm_key or next(iter(recipe.statistics))
        return camera_matrix(recipe.cameras, key, side, strict=camera is not None)

    def _ids(self, instruction: str) -> list[int]:
        if self._tokenizer is None:
            self._tokenizer = load_tokenizer(self.checkpoint)
        return prompt_ids(
            self._tokenizer, build_prompt(instruction, self.options.prompt), self.config
        )

    @torch.inference_mode()
    def _read(
        self, input_ids: ArrayLike, pixel_values: ArrayLike, intrinsic: ArrayLike | None
    ) -> Prefix:
        weight = self.model.multi_modal_projector.linear.weight
        side = self.config.image_size
        given = require_finite("pixel_values", pixel_values)
        require_shape("pixel_values", given, (1, 3, side, side))
        vocabulary = int(self.config.text.vocab_size)
        ids = torch.from_numpy(require_ids(input_ids, vocabulary)).to(weight.device)
        pixels = torch.from_numpy(given).to(weight.device, weight.dtype)
        matrix = self.intrinsic if intrinsic is None else usable_matrix(intrinsic)
        return self.model.read(ids, pixels, torch.from_numpy(matrix).to(weight.device))

    def _draw(self, prefix: Prefix) -> FloatArray:
        low, high = self.config.action_token_range
        drawn = gumbel_noise(self.options.seed, self._step, (self.options.samples, high - low))
        noise = torch.from_numpy(drawn).to(prefix.states.device)
        ids = self.model.sample(prefix, self.grid.groups, noise, self.options.temperature)
        return self.statistics.unnormalize(self.grid.decode(ids.cpu().numpy()))

    def _carry_on(self) -> PolicyOutput:
        """The next action of a chunk that is being carried out; there are no tokens for it."""
        action, *rest = self._pending
        self._pending = rest
        self._step += 1
        if self._adapter is not None:
            return PolicyOutput(action=self._adapter(action))
        return PolicyOutput(action=action)


def _adapter(
    robot: str | ActionConvention | None, chunk_steps: int, *, average: bool
) -> ActionAdapter | None:
    """The robot's adapter; what is published averages as many chunks as a chunk has steps."""
    adapter = adapter_for("spatialvla", robot)
    if adapter is None or adapter.convention.ensemble is None:
        return adapter
    ensemble = adapter.convention.ensemble
    if isinstance(robot, str):
        ensemble = replace(ensemble, horizon=chunk_steps)
    return ActionAdapter(replace(adapter.convention, ensemble=ensemble if average else None))
