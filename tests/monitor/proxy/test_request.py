from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgpack")
pytest.importorskip("websockets")


from monitor.errors import ConfigError
from monitor.proxy.request import Request, Split, read_request
from policies.wire.codec import encode
from policies.wire.keys import KeyMap


@pytest.mark.parametrize(
    ("split", "request_", "begins"),
    [
        (Split(), Request(frame=b"", instruction="a", arrived=5.0), False),
        (Split(), Request(frame=b"", instruction="b", arrived=5.0), True),
        (Split(), Request(frame=b"", instruction=None, arrived=5.0), False),
        (Split(), Request(frame=b"", instruction="a", resets=True, arrived=5.0), True),
        (Split(on=("reset",)), Request(frame=b"", instruction="b", arrived=5.0), False),
        (Split(on=("prompt",)), Request(frame=b"", resets=True, arrived=5.0), False),
        (Split(on=(), idle_s=0.5), Request(frame=b"", instruction="a", arrived=5.0), True),
        (Split(on=(), idle_s=2.0), Request(frame=b"", instruction="a", arrived=5.0), False),
    ],
)
def test_where_an_episode_begins(split: Split, request_: Request, begins: bool) -> None:
    assert split.before(request_, "a", 4.0) is begins


@pytest.mark.parametrize("given", [{"on": ("promt",)}, {"idle_s": 0.0}])
def test_an_unknown_split_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Split(**given)


@pytest.mark.parametrize(
    "message",
    [
        {"vlawatch/reset": 3},
        {"vlawatch/reset": {"instruction": 3, "env": []}},
        {"vlawatch/reset": {"env": {"action_low": np.array(["a"]), "action_high": np.ones(1)}}},
        {"prompt": [1], "vlawatch/seq": "x"},
        {"vlawatch/success": "yes", "vlawatch/goal_distance": float("nan")},
        {"observation/image": np.zeros(3)},
    ],
    ids=repr,
)
def test_a_strange_request_is_read_as_far_as_it_goes(message: dict[str, Any]) -> None:
    got = read_request(encode(message), KeyMap())
    assert got.instruction is None
    assert (got.env, got.success, got.goal_distance, got.number) == (None,) * 4
