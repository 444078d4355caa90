from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import pytest
from scipy import stats

from monitor import Evidence
from monitor.metrics.information import Information, WindowEntropy, action_symbol, position_symbol


def bits(symbols: Sequence[Hashable]) -> float:
    return float(stats.entropy(list(Counter(symbols).values()), base=2))


@pytest.mark.parametrize("capacity", [1, 5, 32])
def test_entropy_equals_scipy_on_every_prefix(capacity: int) -> None:
    symbols = np.random.default_rng(capacity).integers(0, 6, 200).tolist()
    entropy = WindowEntropy(capacity)
    for end, symbol in enumerate(symbols, start=1):
        entropy.push(symbol)
        expected = bits(symbols[max(0, end - capacity) : end])
        assert entropy.bits == pytest.approx(expected, abs=1e-9)


def test_signals_equal_the_batch_formula() -> None:
    rng = np.random.default_rng(9)
    w, n = 12, 40
    actions = rng.uniform(-0.05, 0.05, size=(n, 7)).tolist()
    places = rng.uniform(-0.03, 0.03, size=(n, 3)).tolist()
    a = [action_symbol(tuple(x), (0.05,) * 3) for x in actions]
    s = [position_symbol(tuple(x)) for x in places]
    info = Information(w, (0.05,) * 3)
    for t in range(n):
        values: dict[str, float | None] = {}
        info.update(Evidence(action=tuple(actions[t]), tcp_position=tuple(places[t])), values)
        if t < w:
            assert not values
            continue
        span = range(t - w, t)
        first, second = [a[i] for i in span], [a[i + 1] for i in span]
        moves = [(s[i], s[i + 1]) for i in span]
        both = list(zip(first, second, strict=True))
        assert values["INFO-A"] == pytest.approx(bits(first), abs=1e-9)
        expected = bits(first) + bits(second) - bits(both)
        assert values["INFO-AA"] == pytest.approx(expected, abs=1e-9)
        joint = bits(first) + bits(moves) - bits(list(zip(moves, first, strict=True)))
        assert values["INFO-SA"] == pytest.approx(joint, abs=1e-9)
