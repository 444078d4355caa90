"""Nothing that a policy or a robot can hand over makes the monitor raise or emit a NaN."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from monitor import Decision, Evidence, Mode, Monitor, MonitorConfig, Step

LOW = np.array([-0.05] * 3 + [-0.25] * 3 + [-1.0])
DTYPES = [np.float16, np.float32, np.float64, np.int32, np.uint8, np.bool_, np.complex64, object]


def arrays(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Arrays of mostly the right shape, of any type, also as torch and lists, or nonsense."""
    sizes = st.one_of(st.just(shape), st.just(shape), hnp.array_shapes(max_dims=3, max_side=4))
    floats = st.one_of(
        hnp.arrays(np.float64, sizes),
        hnp.arrays(np.float32, sizes, elements=st.floats(width=32)),
        hnp.arrays(np.float16, sizes, elements=st.floats(width=16)),
    )
    calm = hnp.arrays(np.float64, st.just(shape), elements=st.floats(-0.05, 0.05))
    return st.one_of(
        st.none(),
        calm,
        floats,
        floats.map(torch.from_numpy),
        floats.map(lambda a: torch.from_numpy(a).bfloat16()),
        floats.map(lambda a: a[..., ::-1]),
        st.sampled_from(DTYPES).map(lambda d: np.zeros(shape, dtype=d)),
        st.sampled_from(
            ["x", b"y", {}, [[1], [1, 2]], 10**400, float("nan"), object(), np.ma.masked]
        ),
    )


scalars = st.one_of(
    st.none(), st.floats(), st.integers(), st.booleans(), st.just(np.array([0.3])), arrays((1,))
)
SCALARS = ["goal_distance", "gripper", "latency_s", "success"]
SHAPES = {
    "action": (7,),
    "token_logits": (7, 8),
    "token_ids": (7,),
    "tcp_position": (3,),
    "tcp_quaternion": (4,),
    "samples": (3, 7),
    "chunk": (4, 7),
    "image": (4, 4, 3),
    "hidden": (5,),
    "joint_positions": (6,),
}
ends = st.integers(-2, 9)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Steps of which a few fields are set, to anything."""
    given: dict[str, Any] = {"action": np.full(7, 0.01)}
    for name in draw(st.lists(st.sampled_from(sorted(SHAPES)), max_size=5, unique=True)):
        given[name] = draw(arrays(SHAPES[name]))
    for name in draw(st.lists(st.sampled_from(SCALARS), max_size=2, unique=True)):
        given[name] = draw(scalars)
    if draw(st.booleans()):
        span = st.one_of(st.tuples(ends, ends), st.sampled_from(["x", (1,), 3, (None, 2)]))
        given["action_token_range"] = draw(span)
    if draw(st.integers(0, 9)) == 0:
        given[draw(st.sampled_from(["policy_error", "env_error"]))] = draw(st.text(max_size=5))
    return Step(**given, decode_ok=draw(st.booleans()))


def check(decision: Decision) -> None:
    """No number in the decision that is not finite, and no action where there must be none."""
    for name, value in decision.metrics.items():
        assert value is None or math.isfinite(value), name
    assert decision.score is None or 0.0 <= decision.score <= 1.0
    if decision.action is not None:
        assert decision.action.shape == (7,)
        assert np.isfinite(decision.action).all()
    if decision.belief is not None:
        assert math.isfinite(decision.belief.distance)
    assert decision.mode is not Mode.HALT or decision.action is None
    json.dumps([dict(fault.detail) for fault in decision.faults], allow_nan=False)


LENIENT = {"NONFINITE_ACTION", "ACTION_SHAPE", "ACTION_MISSING", "POLICY_ERROR", "ENV_ERROR"}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(steps(), min_size=1, max_size=5), st.booleans())
def test_any_data_gives_a_finite_decision_that_replays(stream: list[Step], strict: bool) -> None:
    respond = {} if strict else dict.fromkeys(LENIENT, "alert")
    config = MonitorConfig.model_validate({"faults": {"respond": respond}})
    live = Monitor(config, action_low=LOW, action_high=-LOW)
    again = Monitor(config, action_low=LOW, action_high=-LOW)
    for step in stream:
        decision = live.update(step)
        check(decision)
        text = json.dumps(decision.evidence.to_json(), allow_nan=False)
        replayed = again.replay(Evidence.from_json(json.loads(text)))
        assert replayed.metrics == decision.metrics
        assert (replayed.score, replayed.mode) == (decision.score, decision.mode)
        assert replayed.faults == decision.faults


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, (7,)))
def test_no_nan_in_calm_out(action: np.ndarray) -> None:
    decision = Monitor(action_low=LOW, action_high=-LOW).update(Step(action=action))
    if not np.isfinite(action).all():
        assert decision.mode is Mode.HALT
        assert decision.action is None
    else:
        assert decision.action is not None
        inside = (np.abs(action) <= -LOW).all()
        assert inside or decision.faults or (np.abs(action) <= -1.1 * LOW).all()
