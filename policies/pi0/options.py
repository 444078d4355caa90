"""Options of π0."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from monitor.errors import ConfigError
from policies.action import ActionConvention
from policies.sampling import check_sampling

__all__ = ["PI0Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PI0Options:
    """How a π0 checkpoint is loaded, executed and sampled.

    Raises:
        ConfigError: if ``samples`` or ``seed`` is negative or not a number, or ``steps`` is
            below 1.
    """

    checkpoint: Annotated[
        str | Path,
        "Folder with config.json, safetensors and, for act(), tokenizer.json (PaliGemma's, which "
        "LeRobot's checkpoints leave out).",
    ]
    tokenizer: Annotated[
        str | Path | None, "Folder of tokenizer.json, if it is not the checkpoint's."
    ] = None
    norm_stats: Annotated[
        str | Path | None,
        "JSON file of statistics to use instead of the checkpoint's; 'none' leaves states and "
        "actions in the model's units.",
    ] = None
    unnorm_key: Annotated[
        str | None, "Which of openpi's assets holds the statistics, if there are several."
    ] = None
    robot: Annotated[
        str | ActionConvention | None,
        "widowx or google_robot: convert actions as SimplerEnv takes them for this robot; also a "
        "custom ActionConvention. None leaves the actions in the units of the dataset.",
    ] = None
    state: Annotated[
        str | None,
        "Layout of the robot's state: bridge, fractal, joints or none. None selects the robot's "
        "own, or none without a robot.",
    ] = None
    action_dim: Annotated[
        int | None, "Number of action dimensions, if the checkpoint does not say."
    ] = None
    device: Annotated[str, "Torch device."] = "cpu"
    dtype: Annotated[
        str | None,
        "Dtype of the backbone: float32 or bfloat16. None selects float32 on a CPU, else bfloat16.",
    ] = None
    samples: Annotated[
        int, "Further chunks to sample at each step; they share one pass over image and prompt."
    ] = 4
    execute_steps: Annotated[
        int,
        "Actions of a chunk to execute before the model is queried again. The steps in between "
        "have no signals: cheaper, but less is monitored.",
    ] = 1
    steps: Annotated[
        int | None, "Euler steps of the flow. None selects the checkpoint's number."
    ] = None
    seed: Annotated[int, "Random seed; with the step of the episode it fixes the noise."] = 0
    squash: Annotated[
        bool | None,
        "Resize images to the square without keeping their aspect ratio, as the SimplerEnv "
        "evaluations do. None does so if there is a robot.",
    ] = None
    expert_scores: Annotated[
        bool,
        "Also return the token metrics that the replication code of Valle et al. computes from "
        "the language head of the action expert.",
    ] = False

    def __post_init__(self) -> None:
        """Check the sampling options."""
        check_sampling(self.samples, seed=self.seed)
        if self.steps is not None and self.steps < 1:
            msg = f"steps must be at least 1, got {self.steps}"
            raise ConfigError(msg)
