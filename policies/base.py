"""What a policy is: the records at its edges and the protocol between them."""

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
        gripper: opening in [0, 1].
        joint_positions: radians or metres, shape ``(J,)``.
    """

    image: NDArray[np.uint8]
    instruction: str = ""
    tcp_position: FloatArray | None = None
    tcp_quaternion: FloatArray | None = None
    gripper: float | None = None
    joint_positions: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyOutput:
    """What a policy says; None where it has no such signal.

    Attributes:
        action: environment units, shape ``(D,)``; of a chunked policy the first of ``chunk``.
        token_ids: chosen action tokens, shape ``(N,)``.
        token_logits: raw logits, shape ``(N, V)``, numpy or torch.
        action_token_range: half-open range of the action ids within V.
        samples: further sampled actions, shape ``(K, D)``.
        chunk: planned actions, shape ``(H, D)``.
        hidden: features of the step, shape ``(F,)``.
        normalized_action: shape ``(D,)``, in [-1, 1], before un-normalisation.
        decode_ok: False where the tokens are not those of an action: out of place or too few.
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

    ``translation_q99_m``, where it exists, is what the monitor holds its actions against: the
    largest usual translation per dimension in its data, ``(3,)`` metres as the actions come, or
    None. ``needs_image = False`` says that it is blind by design; any other policy must answer to the
    picture, or no run starts.

    Attributes:
        name: as in the registry.
        signals: fields of :class:`PolicyOutput` that it fills beside ``action``.
    """

    name: str
    signals: frozenset[str]

    def reset(self, instruction: str) -> None:
        """Begin an episode with this instruction."""
        ...

    def act(self, observation: Observation) -> PolicyOutput:
        """Say what to do now."""
        ...
