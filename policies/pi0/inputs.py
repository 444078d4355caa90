"""From an observation to what the model takes: pixels, token ids and a normalised state."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.errors import ConfigError, unknown_name
from policies.base import FloatArray, Observation
from policies.checks import require_shape
from policies.pi0.config import Layout, PI0CheckpointConfig
from policies.pi0.image import ImageFit, prepare_image
from policies.pi0.prompt import build_prompt, prompt_ids
from policies.pi0.state import BY_ROBOT, STATES, StateReader
from policies.pi0.statistics import Affine
from policies.tokenizer import load_tokenizer

__all__ = ["InputReader", "padded", "state_reader"]

log = logging.getLogger(__name__)

NO_STATE: Final = "none"
"""Name of the layout that leaves the robot's state out."""


@final
class InputReader:
    """Reads observations for one checkpoint.

    Args:
        config: configuration of the checkpoint.
        scaling: scaling of its states.
        fit: how images reach the model.
        tokenizer: folder of tokenizer.json, opened when the first instruction comes.
        read_state: layout of the state; None leaves it out.
    """

    def __init__(
        self,
        config: PI0CheckpointConfig,
        scaling: Affine,
        fit: ImageFit,
        *,
        tokenizer: Path,
        read_state: StateReader | None,
    ) -> None:
        self.fit = fit
        self._config, self._scaling = config, scaling
        self._folder, self._read_state = tokenizer, read_state
        self._tokenizer: Any = None
        self._prompt: tuple[str, list[int]] | None = None
        self._said_stateless = False

    def pixels(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Pixels of an RGB image ``(H, W, 3)`` uint8, shape ``(1, 3, S, S)``."""
        return prepare_image(image, self.fit)[None]

    def ids(self, instruction: str) -> list[int]:
        """Token ids of an instruction; the last one is remembered.

        Raises:
            MissingTokenizerError: if there is no tokenizer.
        """
        if self._prompt is None or self._prompt[0] != instruction:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer(self._folder)
            ids = prompt_ids(
                self._tokenizer,
                build_prompt(instruction, cleaned=self._config.layout is Layout.OPENPI),
                bos=int(self._config.model.vlm_config.text_config.bos_token_id),
                longest=self._config.prompt_tokens,
            )
            self._prompt = (instruction, ids)
        return self._prompt[1]

    def state(self, observation: Observation) -> FloatArray | None:
        """Normalised state, shape ``(1, d)``; None where there is none to see.

        Raises:
            ConfigError: if the layout has more numbers than the checkpoint.
        """
        values = None if self._read_state is None else self._read_state(observation)
        if values is None:
            if self._read_state is not None and not self._said_stateless:
                self._said_stateless = True
                log.warning("no state in the observation: the model sees the data's mean")
            return None
        known = min(self._config.state_dim, self._scaling.size)
        if len(values) > known:
            msg = (
                f"the robot's state has {len(values)} numbers, the checkpoint knows {known}; give "
                f"state=, one of {', '.join((*STATES, NO_STATE))}"
            )
            raise ConfigError(msg)
        return self._scaling.normalize(values)[None]


def state_reader(given: str | None, robot: str | None) -> StateReader | None:
    """The layout of this name; None takes the robot's own, or none without a robot.

    Raises:
        ConfigError: if there is no layout of this name.
    """
    name = given or BY_ROBOT.get(robot or "", NO_STATE)
    layouts: Mapping[str, StateReader | None] = {**STATES, NO_STATE: None}
    if name not in layouts:
        raise ConfigError(unknown_name("state", name, layouts))
    return layouts[name]


def padded(state: ArrayLike | None, width: int) -> FloatArray:
    """A normalised state ``(1, d)`` with zeros behind it, shape ``(1, width)``.

    >>> padded([[0.5]], 3).tolist()
    [[0.5, 0.0, 0.0]]
    """
    out = np.zeros((1, width))
    if state is not None:
        given = np.asarray(state, dtype=np.float64)
        if given.ndim != 2 or len(given) != 1 or given.shape[1] > width:
            require_shape("state", given, (1, width))
        out[:, : given.shape[1]] = given
    return out
