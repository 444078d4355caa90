from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import ConfigError
from policies.openvla.tokens import (
    ActionStatistics,
    bin_centers,
    decode_ids,
    encode_actions,
    statistics_for,
)

STATS = {
    "q01": [-0.1, -0.2, 0.0],
    "q99": [0.3, 0.2, 1.0],
    "mask": [True, True, False],
}


def test_decoding_inverts_encoding_within_a_bin() -> None:
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, 1000)
    again = decode_ids(encode_actions(actions, 32000), 32000)
    assert np.abs(again - actions).max() <= 1.0 / 255 + 1e-12


def test_bin_centers_lie_between_their_edges() -> None:
    edges = np.linspace(-1.0, 1.0, 256)
    centers = bin_centers()
    assert centers.shape == (255,)
    assert ((centers > edges[:-1]) & (centers < edges[1:])).all()


def test_ids_outside_the_range_clip_to_an_end() -> None:
    ends = bin_centers()[[0, -1]]
    np.testing.assert_array_equal(decode_ids([40000, 0], 32000), ends)


def test_unnormalize_matches_the_formula_and_inverts() -> None:
    statistics = ActionStatistics.from_json(STATS)
    x = np.array([0.5, -1.0, 0.7])
    action = statistics.unnormalize(x)
    np.testing.assert_allclose(action, [0.2, -0.2, 0.7], atol=1e-12)
    np.testing.assert_allclose(statistics.normalize(action), x, atol=1e-12)


def test_statistics_are_found_by_key() -> None:
    one = {"a": {"action": STATS}}
    assert statistics_for(one, None).q99.tolist() == STATS["q99"]
    with pytest.raises(ConfigError, match="Allowed: a"):
        statistics_for(one, "b")
    with pytest.raises(ConfigError, match=r"dataset_statistics\.json"):
        statistics_for({}, None)
