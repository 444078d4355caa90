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
