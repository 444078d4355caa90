"""Options of OpenVLA."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from policies.action import ActionConvention
from policies.sampling import check_sampling

__all__ = ["OpenVLAOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVLAOptions:
    """How an OpenVLA checkpoint is loaded and sampled.

    Raises:
        ConfigError: if ``samples``, ``temperature`` or ``seed`` is negative or not a number.
    """

    checkpoint: Annotated[
        str | Path, "Folder with config.json, safetensors and, for act(), tokenizer.json."
    ]
    unnorm_key: Annotated[
        str | None, "Dataset whose statistics scale the actions; required if there are several."
    ] = None
    robot: Annotated[
        str | ActionConvention | None,
        "widowx or google_robot: convert actions as SimplerEnv takes them for this robot and "
        "default unnorm_key to its dataset; also a custom ActionConvention. None leaves the "
        "actions in the units of the dataset.",
    ] = None
    device: Annotated[str, "Torch device."] = "cpu"
    dtype: Annotated[
        str | None,
        "Model dtype: float32, bfloat16 or float16. None selects float32 on a CPU, else bfloat16.",
    ] = None
    quantization: Annotated[
        str | None, "4bit or 8bit quantization of the language model; needs bitsandbytes."
    ] = None
    samples: Annotated[int, "Further actions to sample at each step."] = 0
    temperature: Annotated[
        float, "Sampling temperature; 0 gives the most likely action tokens."
    ] = 1.0
    seed: Annotated[int, "Random seed; with the step of the episode it fixes the samples."] = 0
    squash: Annotated[
        bool | None,
        "Resize larger images to the square by area averaging first, as the SimplerEnv "
        "evaluations do. None does so if there is a robot.",
    ] = None
    center_crop: Annotated[
        bool, "Crop the image center, for checkpoints fine-tuned with random crops."
    ] = False
    prompt: Annotated[
        str, "openvla, v01 (the first release), or a template that contains {instruction}."
    ] = "openvla"

    def __post_init__(self) -> None:
        """Check the sampling options."""
        check_sampling(self.samples, self.temperature, self.seed)
