"""Observations and outputs as messages and back; shapes are checked here, where they come in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.signals import POLICY_SIGNALS
from monitor.signals import SIGNALS as STEP_SIGNALS
from policies.base import FloatArray, Observation, PolicyOutput
from policies.wire.codec import WireFormatError
from policies.wire.keys import LAYOUT, KeyMap, find, ours

__all__ = ["SIGNALS", "observation_of", "output_of", "reply_of", "request_of"]

SIGNALS: Final = tuple(field.name for field in fields(PolicyOutput))
"""What a reply may hold in addition to openpi's ``actions``, each under our key of its name."""
_NUMERIC: Final = "biuf"


def request_of(observation: Observation, keys: KeyMap, *, extended: bool) -> dict[str, Any]:
    """The message that asks for an action.

    Args:
        observation: what the policy may see.
        keys: keys of the server.
        extended: also under our keys, every field in full precision.
    """
    found = {name: getattr(observation, name) for name in LAYOUT}
    given = {name: _row(value) for name, value in found.items() if value is not None}
    message: dict[str, Any] = {keys.instruction: observation.instruction}
    if observation.image is not None:
        message[keys.image] = np.asarray(observation.image)
    if keys.parts and all(part in given for part in keys.parts):
        message[keys.state] = np.concatenate([given[part] for part in keys.parts])
    for name, row in given.items():
        if key := getattr(keys, name):
            message[key] = row
        if extended:
            message[ours(name)] = row
    return message


def observation_of(message: Mapping[Any, Any], keys: KeyMap) -> Observation:
    """What a request says; our keys go before mapped ones, and those before the state.

    Raises:
        WireFormatError: if something is there and cannot be what its key says.
    """
    instruction = find(message, keys.instruction)
    if instruction is not None and not isinstance(instruction, str):
        msg = f"{keys.instruction!r} is {type(instruction).__name__}, expected a text"
        raise WireFormatError(msg)
    state = _split(find(message, keys.state), keys)
    rows: dict[str, FloatArray] = {}
    for name, size in LAYOUT.items():
        value = message.get(ours(name))
        key = ours(name) if value is not None else getattr(keys, name)
        value = find(message, key) if value is None else value
        if value is not None:
            rows[name] = _floats(value, key, (size,))
        elif name in state:
            rows[name] = state[name]
    return Observation(
        image=_image(find(message, keys.image), keys.image),
        instruction=str(instruction or ""),
        tcp_position=rows.get("tcp_position"),
        tcp_quaternion=rows.get("tcp_quaternion"),
        gripper=rows.get("gripper"),
        joint_positions=rows.get("joint_positions"),
    )


def reply_of(output: Any, keys: KeyMap, wanted: Collection[str]) -> dict[str, Any]:
    """The message that answers: openpi's ``(H, D)`` actions, and the signals that were asked for.

    Raises:
        WireFormatError: if the policy's action is not a row of numbers.
    """
    action = _array_of(getattr(output, "action", None))
    if not isinstance(action, np.ndarray) or action.ndim != 1 or action.dtype.kind not in _NUMERIC:
        msg = f"the policy returned {type(output).__name__} with action {str(action)[:60]!r}"
        raise WireFormatError(msg)
    chunk = _array_of(getattr(output, "chunk", None))
    message: dict[str, Any] = {keys.actions: action[None] if chunk is None else chunk}
    for name in (*SIGNALS, "decode_ok"):
        value = getattr(output, name, None)
        if value is not None and name in wanted:
            message[ours(name)] = _array_of(value)
    return message


def output_of(message: Mapping[Any, Any], keys: KeyMap) -> PolicyOutput:
    """What a reply says.

    Raises:
        WireFormatError: if it has no actions, or something in it cannot be what its key says.
    """
    actions = find(message, keys.actions)
    if actions is None:
        known = ", ".join(sorted(map(str, message))[:12])
        msg = f"the reply has no {keys.actions!r}; it has {known or 'nothing'}"
        raise WireFormatError(msg)
    rows = np.atleast_2d(_floats(actions, keys.actions, (None,), (None, None)))
    if not rows.size:
        msg = f"{keys.actions!r} is empty, shape {rows.shape}"
        raise WireFormatError(msg)
    found = {name: message[ours(name)] for name in SIGNALS if ours(name) in message}
    if len(rows) > 1:
        found.setdefault("chunk", rows)
    for name, shape in _SHAPES.items():
        if name in found:
            found[name] = _numbers(found[name], ours(name), shape)
    if not isinstance(found.get("extra", {}), Mapping):
        msg = f"{ours('extra')!r} is {type(found['extra']).__name__}, expected a map of numbers"
        raise WireFormatError(msg)
    span = found.get("action_token_range")
    if span is not None:
        if not isinstance(span, list) or [type(end) for end in span] != [int, int]:
            msg = f"{ours('action_token_range')!r} is {str(span)[:60]}, expected two integers"
            raise WireFormatError(msg)
        found["action_token_range"] = tuple(span)
    return PolicyOutput(**{"action": rows[0], **found})


_SHAPES: Final[Mapping[str, tuple[int | None, ...]]] = {
    "action": (None,),
    "normalized_action": (None,),
    **{
        name: (None,) * STEP_SIGNALS[name].rank
        for name in POLICY_SIGNALS
        if STEP_SIGNALS[name].rank
    },
}


def _row(value: Any) -> FloatArray:
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


def _split(state: Any, keys: KeyMap) -> dict[str, FloatArray]:
    """Parts of a state vector.

    Raises:
        WireFormatError: if it has not the length that the layout says.
    """
    if state is None or not keys.parts:
        return {}
    row, at, found = _floats(state, keys.state, (None,)), 0, {}
    sizes = [LAYOUT[part] for part in keys.parts]
    least = sum(size for size in sizes if size is not None)
    if row.size < least or (None not in sizes and row.size != least):
        msg = f"{keys.state!r} has {row.size} numbers, layout {keys.layout!r} is {least} of them"
        raise WireFormatError(msg)
    for part, size in zip(keys.parts, sizes, strict=True):
        end = row.size if size is None else at + size
        found[part], at = row[at:end], end
    return found


def _image(value: Any, key: str) -> Any:
    if value is None:
        return None
    if isinstance(value, np.ndarray) and value.ndim == 3 and value.dtype == np.uint8:
        if value.shape[2] == 3:
            return value
        if value.shape[0] == 3:
            return np.ascontiguousarray(np.moveaxis(value, 0, 2))
    given = f"{getattr(value, 'shape', '')} {getattr(value, 'dtype', type(value).__name__)}"
    msg = f"{key!r} is {given.strip()}, expected (H, W, 3) of uint8"
    raise WireFormatError(msg)


def _floats(value: Any, key: str, *shapes: tuple[int | None, ...]) -> FloatArray:
    return np.asarray(_numbers(value, key, *shapes), dtype=np.float64)


def _numbers(value: Any, key: str, *shapes: tuple[int | None, ...]) -> NDArray[Any]:
    """An array of one of the shapes, None for any length; also out of nested lists of numbers."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal length
        array = np.asarray(None)
    fits = any(
        array.ndim == len(shape)
        and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
        for shape in shapes
    )
    if array.dtype.kind not in _NUMERIC or not fits:
        texts = " or ".join(
            "(" + ", ".join("n" if one is None else str(one) for one in shape) + ")"
            for shape in shapes
        )
        msg = f"{key!r} is {array.dtype} of shape {array.shape}, expected numbers of shape {texts}"
        raise WireFormatError(msg)
    return array


def _array_of(value: Any) -> Any:
    """Tensors as arrays with the same values; numpy has no bfloat16, float32 holds all of it."""
    if callable(getattr(value, "detach", None)):
        tensor = value.detach()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        return tensor.cpu().numpy()
    if isinstance(value, Mapping):
        return {name: _array_of(item) for name, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
