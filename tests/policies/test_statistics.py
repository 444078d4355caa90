from __future__ import annotations

from typing import Any

import pytest

from monitor.errors import ConfigError
from policies.statistics import statistics_for

GOOD: dict[str, Any] = {
    "q01": [-1.0, -2.0, 0.0],
    "q99": [1.0, 2.0, 1.0],
    "mask": [True, True, False],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"q01": None}, "q01 of the statistics is None"),
        ({"q99": ["a", 1, 2]}, r"q99 of the statistics is \['a', 1, 2\]"),
        ({"q99": [float("nan"), 1.0, 1.0]}, "q99 .* expected a list of finite numbers"),
        ({"q01": [-1.0]}, r"q01 \(1,\), q99 \(3,\) and mask \(3,\)"),
        ({"mask": [True]}, r"mask \(1,\)"),
        ({"q01": [[-1.0, -2.0, 0.0]]}, "expected a list of finite numbers"),
        ({"q01": [2.0, -2.0, 0.0]}, r"q01 above q99 in \[0\]"),
    ],
)
def test_statistics_that_cannot_scale_an_action_are_refused(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        statistics_for({"toy": {"action": GOOD | change}}, "toy")


@pytest.mark.parametrize("entry", [{}, {"action": None}, [1, 2]])
def test_a_data_set_without_actions_is_named(entry: Any) -> None:
    with pytest.raises(ConfigError, match="statistics of 'toy' have no 'action'"):
        statistics_for({"toy": entry}, "toy")


@pytest.mark.parametrize(
    ("change", "scale", "expected"),
    [
        ({}, 1.0, (1.0, 2.0, 1.0)),
        ({"mask": [True, True, True], "q01": [-3.0, -2.0, 0.0]}, 1.0, (3.0, 2.0, 1.0)),
        ({}, 0.5, (0.5, 1.0, 0.5)),
        ({"q01": [0.0, -2.0, 0.0], "q99": [0.0, 2.0, 1.0]}, 1.0, (1e-4, 2.0, 1.0)),
    ],
)
def test_the_translation_q99_m_is_the_larger_quantile(
    change: dict[str, Any], scale: float, expected: tuple[float, ...]
) -> None:
    known = statistics_for({"toy": {"action": GOOD | change}}, "toy")
    assert known.translation_q99_m(scale) == pytest.approx(expected, rel=2e-3)
    largest = known.unnormalize([1.0, 1.0, 1.0]) * scale
    limits = known.translation_q99_m(scale)
    assert limits is not None
    assert all(abs(value) <= limit for value, limit in zip(largest, limits, strict=True))


def test_without_three_dimensions_there_is_no_translation() -> None:
    two = {"q01": [-1.0, -1.0], "q99": [1.0, 1.0]}
    assert statistics_for({"toy": {"action": two}}, "toy").translation_q99_m() is None
