"""The policy protocol and the records that it takes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "Observation", "Policy", "PolicyOutput"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """What a policy may see.

    Attributes:
        image: RGB, shape ``(H, W, 3)`` uint8.
        instruction: the sentence of the task; a policy that was reset with one may ignore it.
        tcp_position: metres, robot base frame, shape ``(3,)``.
        tcp_quaternion: w, x, y, z, shape ``(4,)``.
        gripper: opening in [0, 1], 1 = open, shape ``(1,)``.
        joint_positions: radians or metres, shape ``(J,)``.
    """

    image: NDArray[np.uint8]
    instruction: str = ""
    tcp_position: FloatArray | None = None
    tcp_quaternion: FloatArray | None = None
    gripper: FloatArray | None = None
    joint_positions: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyOutput:
    """What a policy returns; None for a signal that it does not have.

    Attributes:
        action: environment units, shape ``(D,)``; of a chunked policy the first of ``chunk``.
        token_ids: chosen action tokens, shape ``(N,)``.
        token_logits: raw logits, shape ``(N, V)``, numpy or torch.
        action_token_range: half-open range of the action ids within V.
        samples: further sampled actions, shape ``(K, D)``.
        chunk: action chunk, shape ``(H, D)``.
        hidden: features of the step, shape ``(F,)``.
        normalized_action: shape ``(D,)``, in [-1, 1], before un-normalisation.
        decode_ok: False if the tokens do not decode to an action: out of place or too few.
        extra: further scalars by metric id, such as ``PI0-DV``; a value may be None.
    """

    action: FloatArray
    token_ids: NDArray[np.int64] | None = None
    token_logits: Any = None
    action_token_range: tuple[int, int] | None = None
    samples: FloatArray | None = None
    chunk: FloatArray | None = None
    hidden: NDArray[np.float32] | None = None
    normalized_action: FloatArray | None = None
    decode_ok: bool = True
    extra: Mapping[str, float | None] | None = None


@runtime_checkable
class Policy(Protocol):
    """A policy; ``bind(env)`` may exist too and is then called before ``reset``.

    ``translation_q99_m``, if present, is the 99% quantile of the translation per dimension in its
    data, ``(3,)`` metres in the units of its actions, or None; the monitor checks actions against
    it. ``needs_image = False`` declares that the policy is blind by design; any other policy must
    respond to the image, or the run is refused.

    Attributes:
        name: as in the registry.
        signals: fields of :class:`PolicyOutput` that it fills in addition to
            ``action``.
    """

    name: str
    signals: frozenset[str]

    def reset(self, instruction: str) -> None:
        """Begin an episode with this instruction."""
        ...

    def act(self, observation: Observation) -> PolicyOutput:
        """Return the action for this observation."""
        ...
