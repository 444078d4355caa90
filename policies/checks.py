"""What a caller hands to ``infer``: checked, so that no wrong array becomes a plausible action."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["require_finite", "require_ids", "require_shape"]


def require_shape(name: str, values: ArrayLike, wanted: tuple[int | None, ...]) -> None:
    """Refuse an array of another shape; None stands for any number.

    Raises:
        ValueError: with both shapes.
    """
    shape = np.shape(values)
    same = len(shape) == len(wanted) and all(
        want in (None, have) for have, want in zip(shape, wanted, strict=True)
    )
    if not same:
        text = ", ".join("any" if want is None else str(want) for want in wanted)
        msg = f"{name} has shape {tuple(shape)}, expected ({text})"
        raise ValueError(msg)


def require_finite(name: str, values: ArrayLike) -> NDArray[np.float32]:
    """Numbers that are all finite, as float32: a model makes an action even of NaN.

    Raises:
        ValueError: if there is something else among them.
    """
    try:
        array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        msg = f"{name} must hold numbers, got {type(values).__name__}"
        raise ValueError(msg) from error
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        msg = f"{name} must be finite, got NaN or infinity in {bad} places"
        raise ValueError(msg)
    return array


def require_ids(values: ArrayLike, vocabulary: int) -> NDArray[np.int64]:
    """Token ids of one prompt, shape ``(1, n)``.

    Args:
        values: whole numbers from 0 up.
        vocabulary: first id that there is not.

    Raises:
        ValueError: if they are anything else.
    """
    given = np.asarray(values)
    require_shape("input_ids", given, (1, None))
    if given.size == 0 or given.dtype.kind not in "iu":
        msg = f"input_ids must be whole numbers, at least one, got {given.shape} {given.dtype}"
        raise ValueError(msg)
    if given.min() < 0 or given.max() >= vocabulary:
        msg = (
            f"input_ids must be from 0 to {vocabulary - 1}, got {int(given.min())} to "
            f"{int(given.max())}"
        )
        raise ValueError(msg)
    return np.asarray(given, dtype=np.int64)
