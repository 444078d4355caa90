"""Options of SpatialVLA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from policies.action import ActionConvention
from policies.base import FloatArray
from policies.sampling import check_sampling
from policies.spatialvla.prompt import BARE

__all__ = ["SpatialVLAOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialVLAOptions:
    """How a SpatialVLA checkpoint is loaded, executed and sampled.

    Raises:
        ConfigError: if ``samples``, ``temperature`` or ``seed`` is negative or not a number.
    """

    checkpoint: Annotated[
        str | Path,
        "Folder with config.json, processor_config.json, safetensors and, for act(), "
        "tokenizer.json.",
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
    camera: Annotated[
        str | None,
        "Dataset whose camera took the image. None selects that of unnorm_key, or the "
        "checkpoint's default camera if it has none.",
    ] = None
    intrinsic: Annotated[
        Sequence[Sequence[float]] | FloatArray | None,
        "Camera matrix of the model's image instead, pixels, shape (3, 3); see "
        "policies.spatialvla.camera.scale_matrix.",
    ] = None
    squash: Annotated[
        bool | None,
        "Resize larger images to the square by area averaging first, as the SimplerEnv "
        "evaluations do. None does so if there is a robot.",
    ] = None
    prompt: Annotated[str, "Template that contains {instruction}."] = BARE
    execute_steps: Annotated[
        int, "Actions of a chunk to execute before the model is queried again."
    ] = 1
    device: Annotated[str, "Torch device."] = "cpu"
    dtype: Annotated[
        str | None,
        "Model dtype: float32, bfloat16 or float16. None selects float32 on a CPU, else bfloat16.",
    ] = None
    samples: Annotated[int, "Further actions to sample at each step."] = 0
    temperature: Annotated[
        float, "Sampling temperature; 0 gives the most likely action tokens."
    ] = 1.0
    seed: Annotated[int, "Random seed; with the step of the episode it fixes the samples."] = 0

    def __post_init__(self) -> None:
        """Check the sampling options."""
        check_sampling(self.samples, self.temperature, self.seed)
