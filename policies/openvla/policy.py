"""The OpenVLA policy: picture and instruction to seven tokens to an action."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from policies.action import ActionConvention, adapter_for
from policies.base import FloatArray, Observation, PolicyOutput
from policies.checks import require_finite, require_ids, require_shape
from policies.image import resized_square
from policies.openvla.checkpoint import load_model
from policies.openvla.config import OpenVLAConfig
from policies.openvla.processor import ImageProcessor
from policies.openvla.prompt import load_tokenizer, prompt_ids, prompt_template
from policies.openvla.tokens import decode_ids, statistics_for
from policies.precision import torch_dtype
from policies.sampling import check_sampling, gumbel_noise

__all__ = ["MINI_CHECKPOINT", "OpenVLAPolicy", "openvla_mini"]

MINI_CHECKPOINT: Final = Path(__file__).parents[1] / "openvla_mini"
"""The small model that comes with the package."""


@final
class OpenVLAPolicy:
    """OpenVLA from a checkpoint folder, any size.

    Args:
        checkpoint: folder with config.json, safetensors and, for :meth:`act`, tokenizer.json.
        unnorm_key: data set whose statistics scale the actions; needed if there are several.
        robot: ``widowx`` or ``google_robot``: actions come as SimplerEnv takes them for it, and
            ``unnorm_key`` may be left out; a convention of one's own; None leaves the actions in
            the units of the data set.
        device: of torch.
        dtype: ``float32``, ``bfloat16`` or ``float16``; None takes float32 on a CPU, else bfloat16.
        quantization: ``4bit`` or ``8bit`` for the language model; needs bitsandbytes.
        samples: further actions to sample at each step.
        temperature: of that sampling; 0 gives the likeliest action tokens.
        seed: of that sampling; with the step of the episode it fixes what is drawn.
        squash: first shrink larger pictures to the square by areas, as the SimplerEnv evaluations
            do; by default wherever there is a robot.
        center_crop: for checkpoints fine-tuned with random crops.
        prompt: ``openvla``, ``v01`` for the first release, or a template with ``{instruction}``.
        name: as in the registry.

    Raises:
        ConfigError: if an argument names what does not exist, or ``robot`` is given for a
            checkpoint whose gripper does not run from 0 to 1.
        CheckpointError: if a weight is missing, left over or of the wrong shape.
        MissingExtraError: if the quantiser is not installed.
    """

    def __init__(
        self,
        checkpoint: str | Path,
        *,
        unnorm_key: str | None = None,
        robot: str | ActionConvention | None = None,
        device: str = "cpu",
        dtype: str | None = None,
        quantization: str | None = None,
        samples: int = 0,
        temperature: float = 1.0,
        seed: int = 0,
        squash: bool | None = None,
        center_crop: bool = False,
        prompt: str = "openvla",
        name: str = "openvla",
    ) -> None:
        check_sampling(samples, temperature, seed)
        self.name = name
        self.checkpoint = Path(checkpoint)
        self._adapter = adapter_for("openvla", robot)
        self.robot = None if self._adapter is None else self._adapter.convention.robot
        self.config = OpenVLAConfig.from_folder(self.checkpoint)
        if unnorm_key is None and self._adapter is not None:
            published = self._adapter.convention.unnorm_key
            unnorm_key = published if published in self.config.norm_stats else None
        self.statistics = statistics_for(self.config.norm_stats, unnorm_key)
        scale = 1.0
        if self._adapter is not None:
            self._adapter.require_opening(float(self.statistics.q01[-1]))
            scale = self._adapter.convention.action_scale
        self.translation_q99_m = self.statistics.translation_q99_m(scale)
        self._processor = ImageProcessor.from_folder(
            self.checkpoint, self.config, center_crop=center_crop
        )
        self._squash = self._adapter is not None if squash is None else squash
        self._template = prompt_template(prompt)
        # Last, so that a mistyped argument is said at once and not after minutes of reading.
        self.model = load_model(self.checkpoint, torch_dtype(dtype, device), device, quantization)
        self._samples, self._temperature, self._seed = samples, temperature, seed
        self._step = 0
        self._tokenizer: Any = None
        self._instruction = ""
        self._prompt: tuple[str, list[int]] | None = None
        self.signals = frozenset({"token_logits", "token_ids", "hidden", "normalized_action"})
        if samples:
            self.signals |= {"samples"}

    def reset(self, instruction: str) -> None:
        """Begin an episode; sampling starts from the seed again, the gripper holds nothing."""
        self._instruction = instruction
        self._step = 0
        if self._adapter is not None:
            self._adapter.reset()

    def act(self, observation: Observation) -> PolicyOutput:
        """Say what to do now.

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
        if self._samples:
            shape = (self._samples, tokens, self.config.n_action_bins)
            drawn = gumbel_noise(self._seed, self._step, shape)
            noise = torch.from_numpy(drawn).to(weight.device)
        self._step += 1
        out = self.model.decode(
            ids, pixels, tokens=tokens, noise=noise, temperature=self._temperature
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
            samples=actions[1:] if self._samples else None,
            hidden=out.hidden.float().cpu().numpy(),
        )
        return output if self._adapter is None else self._adapter.adapt(output)

    def preprocess(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Pixels for :meth:`infer` of an RGB picture ``(H, W, 3)`` uint8."""
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


def openvla_mini(checkpoint: str | Path | None = None, **kwargs: Any) -> OpenVLAPolicy:
    """The small model of this project; by default the weights that come with the package."""
    folder = MINI_CHECKPOINT if checkpoint is None else checkpoint
    return OpenVLAPolicy(folder, name="openvla-mini", **kwargs)
