"""The OpenVLA policy: image and instruction to seven tokens to an action."""

from __future__ import annotations

from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from policies.action import adapter_for, checked_scale, dataset_key
from policies.base import FloatArray, Observation, PolicyOutput
from policies.checks import require_finite, require_ids, require_shape
from policies.image import resized_square
from policies.openvla.checkpoint import load_model
from policies.openvla.config import OpenVLAConfig
from policies.openvla.options import OpenVLAOptions
from policies.openvla.processor import ImageProcessor
from policies.openvla.prompt import load_tokenizer, prompt_ids, prompt_template
from policies.openvla.tokens import decode_ids, statistics_for
from policies.precision import torch_dtype
from policies.sampling import gumbel_noise

__all__ = ["OpenVLAPolicy"]


@final
class OpenVLAPolicy:
    """OpenVLA from a checkpoint folder, any size.

    Args:
        options: how it is loaded and sampled.
        name: registered name.

    Raises:
        ConfigError: if an option names what does not exist, or ``robot`` is given for a checkpoint
            whose gripper does not run from 0 to 1.
        CheckpointError: if a weight is missing, left over or of the wrong shape.
        MissingExtraError: if the quantizer is not installed.
    """

    def __init__(self, options: OpenVLAOptions, *, name: str = "openvla") -> None:
        self.name = name
        self.options = options
        self.checkpoint = Path(options.checkpoint)
        self._adapter = adapter_for("openvla", options.robot)
        self.robot = None if self._adapter is None else self._adapter.convention.robot
        self.config = OpenVLAConfig.from_folder(self.checkpoint)
        known = self.config.norm_stats
        self.statistics = statistics_for(
            known, dataset_key(options.unnorm_key, self._adapter, known)
        )
        scale = checked_scale(self._adapter, float(self.statistics.q01[-1]))
        self.translation_q99_m = self.statistics.translation_q99_m(scale)
        self._processor = ImageProcessor.from_folder(
            self.checkpoint, self.config, center_crop=options.center_crop
        )
        self._squash = self._adapter is not None if options.squash is None else options.squash
        self._template = prompt_template(options.prompt)
        # Last, so that a mistyped option is reported at once and not after minutes of reading.
        dtype = torch_dtype(options.dtype, options.device)
        self.model = load_model(self.checkpoint, dtype, options.device, options.quantization)
        self._step = 0
        self._tokenizer: Any = None
        self._instruction = ""
        self._prompt: tuple[str, list[int]] | None = None
        self.signals = frozenset({"token_logits", "token_ids", "hidden", "normalized_action"})
        if options.samples:
            self.signals |= {"samples"}

    def reset(self, instruction: str) -> None:
        """Begin an episode; sampling starts from the seed again, the gripper holds nothing."""
        self._instruction = instruction
        self._step = 0
        if self._adapter is not None:
            self._adapter.reset()

    def act(self, observation: Observation) -> PolicyOutput:
        """Return the action for this observation.

        Raises:
            MissingTokenizerError: if the checkpoint has no tokenizer.
        """
        ids = self._ids(observation.instruction or self._instruction)
        return self.infer(input_ids=[ids], pixel_values=self.preprocess(observation.image))

    def infer(self, *, input_ids: ArrayLike, pixel_values: ArrayLike) -> PolicyOutput:
        """The same below tokenizer and image processor.

        Args:
            input_ids: shape ``(1, n)``, beginning with BOS.
            pixel_values: shape ``(1, C, S, S)``.

        Raises:
            ValueError: if one has another shape, ids are none of the vocabulary, or pixels are not
                finite.
        """
        weight = self.model.projector.fc1.weight
        side, towers = self.config.image_size, max(1, len(self.config.towers))
        given = require_finite("pixel_values", pixel_values)
        require_shape("pixel_values", given, (1, 3 * towers, side, side))
        ids = torch.from_numpy(require_ids(input_ids, self.config.llm.vocab_size)).to(weight.device)
        pixels = torch.from_numpy(given).to(weight.device, weight.dtype)
        space = self.config.space_token_id
        if space is not None and int(ids[0, -1]) != space:
            # In training the tokenizer left a lone space piece between "Out:" and the actions.
            ids = torch.cat([ids, ids.new_tensor([[space]])], dim=1)
        tokens = len(self.statistics.q01)
        noise = None
        if self.options.samples:
            shape = (self.options.samples, tokens, self.config.n_action_bins)
            drawn = gumbel_noise(self.options.seed, self._step, shape)
            noise = torch.from_numpy(drawn).to(weight.device)
        self._step += 1
        out = self.model.decode(
            ids, pixels, tokens=tokens, noise=noise, temperature=self.options.temperature
        )
        every = out.ids.cpu().numpy()
        normalized = self.decode(every)
        actions = self.statistics.unnormalize(normalized)
        output = PolicyOutput(
            action=actions[0],
            normalized_action=normalized[0],
            token_ids=every[0],
            token_logits=out.logits.float().cpu().numpy(),
            action_token_range=self.config.action_token_range,
            samples=actions[1:] if self.options.samples else None,
            hidden=out.hidden.float().cpu().numpy(),
        )
        return output if self._adapter is None else self._adapter.adapt(output)

    def preprocess(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Pixels for :meth:`infer` of an RGB image ``(H, W, 3)`` uint8."""
        if self._squash:
            image = resized_square(image, self.config.image_size)
        return self._processor(image)

    def decode(self, token_ids: ArrayLike) -> FloatArray:
        """Normalised actions of action tokens, same shape."""
        return decode_ids(token_ids, self.config.token_base, self.config.n_action_bins)

    def _ids(self, instruction: str) -> list[int]:
        if self._prompt is None or self._prompt[0] != instruction:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer(self.checkpoint)
            ids = prompt_ids(
                self._tokenizer,
                instruction,
                template=self._template,
                bos=self.config.llm.bos_token_id,
            )
            self._prompt = (instruction, ids)
        return self._prompt[1]
