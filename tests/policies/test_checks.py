from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policies.checks import require_finite, require_ids, require_shape


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2], r"input_ids has shape \(2,\), expected \(1, any\)"),
        ([[1], [2]], r"shape \(2, 1\)"),
        ([[]], "at least one"),
        ([[1.5]], "whole numbers, .* float64"),
        ([["a"]], "whole numbers"),
        (None, r"shape \(\)"),
        ([[1, -1]], "from 0 to 9, got -1 to 1"),
        ([[1, 10]], "from 0 to 9, got 1 to 10"),
    ],
)
def test_ids_that_are_none_are_refused(ids: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        require_ids(ids, 10)


def test_ids_pass_in_any_whole_type() -> None:
    assert require_ids(np.array([[0, 9]], dtype=np.uint16), 10).tolist() == [[0, 9]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_pixels_that_are_not_finite_are_refused(bad: float) -> None:
    pixels = np.zeros((1, 3, 4, 4), np.float32)
    pixels[0, 1, 2, 3] = bad
    with pytest.raises(ValueError, match=r"pixel_values must be finite, .* in 1 places"):
        require_finite("pixel_values", pixels)


@pytest.mark.parametrize("given", [None, "x"])
def test_what_holds_no_numbers_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="pixel_values must"):
        require_finite("pixel_values", given)


def test_a_shape_is_told_with_the_one_that_is_wanted() -> None:
    require_shape("x", np.zeros((1, 7, 3)), (1, None, 3))
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\), expected \(1, any, 3\)"):
        require_shape("x", np.zeros((2, 3)), (1, None, 3))
