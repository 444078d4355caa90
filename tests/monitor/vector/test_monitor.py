"""N environments in arrays give what N single monitors give."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from monitor import DimensionError, Mode, Monitor, MonitorConfig, Step
from monitor.vector import VectorDecision, VectorMonitor
from tests.monitor.engine.streams import some_config, some_steps
from tests.monitor.vector.batches import assert_equal, one_of, stacked

LOW = np.array([-0.05] * 3 + [-0.25] * 3 + [-1.0])
SHAPES = {"action": (7,), "tcp_position": (3,), "tcp_quaternion": (4,)}
SCALARS = ("goal_distance", "gripper", "latency_s")


def wild(rng: np.random.Generator, n: int, quiet: bool) -> dict[str, Any]:
    """A batch of which some values are missing, broken or troubling."""
    q = rng.normal(size=(n, 4))
    scale = rng.choice([0.02, 1.0], size=(n, 1), p=[0.7, 0.3])
    logits = rng.normal(size=(n, 7, 24)) * 3.0
    logits[np.arange(n)[:, None], np.arange(7), rng.integers(8, 16, (n, 7))] += 30.0 * quiet
    given: dict[str, Any] = {
        "action": rng.uniform(LOW, -LOW, size=(n, 7)) * scale,
        "tcp_position": rng.normal(size=(n, 3)) * 0.02 * scale,
        "tcp_quaternion": q / np.linalg.norm(q, axis=1, keepdims=True),
        "goal_distance": rng.uniform(0.0, 0.3, size=n),
        "gripper": rng.uniform(size=n),
        "latency_s": rng.uniform(0.0, 0.4, size=n),
        "success": rng.choice([0.0, 1.0, np.nan], size=n, p=[0.9, 0.02, 0.08]),
        "token_logits": logits.astype(np.float32),
        "token_ids": logits.argmax(axis=2).astype(float),
        "action_token_range": (8, 16),
        "samples": rng.uniform(LOW, -LOW, size=(n, 3, 7)),
        "chunk": rng.uniform(LOW, -LOW, size=(n, 4, 7)),
        "image": rng.integers(0, 256, size=(n, 4, 4, 3), dtype=np.uint8),
    }
    given["action"][:, 6] = rng.choice([-1.0, 0.0, 0.4, 1.0], size=n)
    for name in (*SHAPES, *SCALARS):
        given[name][rng.uniform(size=n) < 0.03] = np.nan
    if rng.uniform() < 0.5:
        given["token_logits"][rng.integers(n), 3, 2] = rng.choice([np.nan, np.inf, -np.inf])
    if rng.uniform() < 0.2:
        given["token_ids"][rng.integers(n), 1] = 99
    if rng.uniform() < 0.2:
        given["token_ids"][rng.integers(n), 0] = 3
    for name in ("token_logits", "samples", "chunk", "image", "goal_distance", "gripper"):
        if rng.uniform() < 0.05:
            given[name] = None
    return given


LENIENT = dict.fromkeys(
    ["NONFINITE_ACTION", "ACTION_MISSING", "UNNORM_MISMATCH", "NONFINITE_LOGITS"], "alert"
)
CONFIGS: list[dict[str, Any]] = [
    {},
    {
        "faults": {"respond": LENIENT, "gripper_steps": 3},
        "controller": {"tau_halt": 1.5, "budget": 50},
    },
    {
        "faults": {"respond": LENIENT, "off": ["stall"]},
        "score": {"combine": "weights"},
        "controller": {"aggregation": "running_max", "enforce": False},
        "metrics": {"warmup": "zeros", "window": 5},
    },
    {
        "faults": {"respond": LENIENT},
        "score": {"combine": "max", "signals": {"TB-E": 1.0, "TI": 1.0}},
        "recovery": {"enabled": False},
        "controller": {"tau_halt": 1.5, "halt_after": 3, "budget": 3},
    },
    {
        "faults": {"respond": LENIENT, "gripper_steps": 3},
        "robot": {"gripper": {"open": -1.0, "close": 1.0, "relative": True}},
        "controller": {"tau_halt": 1.5, "budget": 50},
    },
    {
        "faults": {"respond": LENIENT | {"LATENCY": "ignore"}},
        "metrics": {"peaks": ("TB-E", "TI", "alpha", "EV")},
        "controller": {"tau_halt": 1.5, "tau_recover": 1.2, "budget": 9},
        "rules": [
            {"name": "late", "of": [{"fault": "LATENCY"}], "steps": 2, "respond": "recover"},
            {
                "name": "both",
                "when": "all",
                "of": [{"metric": "TB-E", "above": 0.2}, {"metric": "REV", "above": 0.3}],
                "steps": 3,
            },
            {
                "name": "two of three",
                "when": 2,
                "of": [
                    {"metric": "EV", "above": 0.3},
                    {"metric": "TCP-path", "above": 0.2},
                    {"fault": "ACTION_MISSING"},
                ],
                "respond": "halt",
            },
        ],
    },
]


def compare(
    sections: dict[str, Any], quiet: bool, steps: int, n: int, more: Callable[..., dict[str, Any]]
) -> VectorDecision:
    """Run both beside each other, with resets of single environments; return the last decision."""
    rng = np.random.default_rng(len(str(sections)))
    config = MonitorConfig.model_validate(sections)
    vector = VectorMonitor(config, num_envs=n, action_low=LOW, action_high=-LOW)
    singles = [Monitor(config, action_low=LOW, action_high=-LOW) for _ in range(n)]
    for t in range(steps):
        given = {**wild(rng, n, quiet), **more(rng, n)}
        decision = vector.update(Step(**given))
        for i, monitor in enumerate(singles):
            assert_equal(decision, i, monitor.update(one_of(given, i)))
        again = np.flatnonzero(rng.uniform(size=n) < 0.04)
        if t % 2 and len(again):
            vector.reset(again)
            for env in again.tolist():
                singles[env].reset()
    return decision


@pytest.mark.parametrize("sections", CONFIGS)
@pytest.mark.parametrize("quiet", [True, False])
def test_equals_single_monitors_with_resets_of_their_own(
    sections: dict[str, Any], quiet: bool
) -> None:
    compare(sections, quiet, steps=45, n=40, more=lambda rng, n: {})


@pytest.mark.parametrize("seed", range(16))
def test_equals_single_monitors_on_streams_that_reach_every_branch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim, n, steps = int(rng.choice([1, 2, 3, 5, 6, 7, 8, 14])), 3, 100
    config, high = some_config(rng, dim), np.ones(dim)
    vector = VectorMonitor(config, num_envs=n, action_low=-high, action_high=high)
    singles = [Monitor(config, action_low=-high, action_high=high) for _ in range(n)]
    streams = [some_steps(np.random.default_rng([seed, i]), dim, steps) for i in range(n)]
    span = (2, 12) if rng.random() < 0.5 else None
    never = [name for name in ("token_logits", "image", "tcp_position") if rng.random() < 0.2]
    for row in zip(*streams, strict=True):
        given = stacked(row, span, holes=seed % 3 == 0)
        given |= dict.fromkeys([*never, *(name for name in given if rng.random() < 0.01)])
        decision = vector.update(Step(**given))
        for i, single in enumerate(singles):
            assert_equal(decision, i, single.update(one_of(given, i)))
        again = np.flatnonzero(rng.random(n) < 0.03)
        vector.reset(again)
        for env in again.tolist():
            singles[env].reset()


@pytest.mark.parametrize("n", [1, 3])
def test_what_is_handed_out_stays_and_copies_continue_identically(n: int) -> None:
    rng, high, kept = np.random.default_rng(n), np.ones(7), []
    vector = VectorMonitor(some_config(rng, 7), num_envs=n, action_low=-high, action_high=high)
    streams = [some_steps(np.random.default_rng([n, i]), 7, 60) for i in range(n)]
    others: list[VectorMonitor] = []
    for t, row in enumerate(zip(*streams, strict=True)):
        step = Step(**stacked(row, None, holes=False))
        decision = vector.update(step)
        kept.append((decision, copy.deepcopy(decision)))
        for other in others:
            same(other.update(step), decision)
        if t == 30:
            others = [copy.deepcopy(vector), pickle.loads(pickle.dumps(vector))]
        if t % 9 == 0:
            for one in (vector, *others):
                one.reset([0])
    for decision, before in kept:
        same(decision, before)


def same(a: VectorDecision, b: VectorDecision) -> None:
    for name in VectorDecision.__struct_fields__:
        np.testing.assert_equal(getattr(a, name), getattr(b, name))


@pytest.mark.usefixtures("installed")
def test_plugins_information_and_extra_equal_single_monitors() -> None:
    sections = {
        "metrics": {"plugins": ("loud",), "info_window": 4, "peaks": ("LOUD", "PI0-DV")},
        "faults": {"plugins": ("loud",), "respond": LENIENT | {"TOO_LOUD": "recover"}},
        "controller": {"tau_halt": 1.5, "budget": 50},
    }

    def more(rng: np.random.Generator, n: int) -> dict[str, Any]:
        hidden = rng.choice([0.5, 2.0, 4.0], size=(n, 3))
        extra = {"PI0-DV": rng.uniform(size=n), "TB-E": np.zeros(n), "MINE": rng.normal(size=n)}
        extra["MINE"][rng.integers(n)] = np.nan
        return {"hidden": hidden if rng.uniform() < 0.9 else None, "extra": extra}

    decision = compare(sections, quiet=True, steps=25, n=6, more=more)
    assert np.isfinite(decision.metrics["MINE"]).any()
    assert np.isfinite(decision.metrics["INFO-A"]).any()
    assert decision.faults["METRIC_ERROR"].all()  # TB-E is not theirs to give


def test_still_arms_stall_alike() -> None:
    vector = VectorMonitor(num_envs=2, action_low=LOW, action_high=-LOW)
    single = Monitor(action_low=LOW, action_high=-LOW)
    modes = []
    for t in range(45):
        place = np.array([[0.3, 0.0, 0.1], [0.3 + 0.01 * t, 0.0, 0.1]])
        goal = np.array([0.2, 0.6 - 0.01 * t])
        action = np.array([[0.0] * 6 + [1.0], [0.01] + [0.0] * 5 + [1.0]])
        decision = vector.update(
            Step(action=action, tcp_position=place, goal_distance=goal, gripper=np.ones(2))
        )
        step = Step(action=action[0], tcp_position=place[0], goal_distance=goal[0], gripper=1.0)
        assert_equal(decision, 0, single.update(step))
        modes.append(decision.modes)
    assert modes[-1] == [Mode.HALT, Mode.TASK]
    assert Mode.RECOVER in {pair[0] for pair in modes}


def test_blind_arms_are_seen_alike_whatever_is_missing() -> None:
    rng, n = np.random.default_rng(6), 4
    vector = VectorMonitor(num_envs=n, action_low=LOW, action_high=-LOW)
    singles = [Monitor(action_low=LOW, action_high=-LOW) for _ in range(n)]
    blind = 0
    for t in range(60):
        given: dict[str, Any] = {
            "action": np.full((n, 7), 0.02) * (rng.uniform(size=(n, 1)) < 0.95),
            "token_logits": np.tile(np.eye(7, 16), (n, 1, 1)) if t > 20 and t % 3 else None,
            "image": rng.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8) if t % 5 else None,
            "decode_ok": np.array([True, True, True, t != 30]),
        }
        if given["token_logits"] is not None:
            given["token_logits"][1] += t
            given["token_logits"][2, 0, 0] = np.nan
        decision = vector.update(Step(**given))
        for i, monitor in enumerate(singles):
            assert_equal(decision, i, monitor.update(one_of(given, i)))
        blind += int(decision.faults.get("VISION_BYPASS", np.zeros(n)).sum())
    assert blind > 20


def test_a_share_of_exactly_half_is_no_mismatch_here_either() -> None:
    over = np.array([2, 2, 2, 1, 1, 1, 1, 2])  # of three translations: 12 of 24
    vector = VectorMonitor(num_envs=2, action_low=[-1.0] * 7, action_high=[1.0] * 7)
    single = Monitor(action_low=[-1.0] * 7, action_high=[1.0] * 7)
    for count in over:
        action = np.r_[np.where(np.arange(3) < count, 1.01, 0.5), np.zeros(4)]
        decision = vector.update(Step(action=np.stack([action, action])))
        assert_equal(decision, 0, single.update(Step(action=action)))
    assert decision.modes == [Mode.TASK] * 2


@pytest.mark.parametrize(
    "given",
    [
        {"token_logits": np.zeros((2, 3, 5), np.uint8)},
        {"token_logits": np.zeros((2, 3, 5)), "action_token_range": 3},
        {"token_logits": np.zeros((2, 3, 5)), "action_token_range": (None, None)},
        {"token_logits": np.zeros((2, 3, 5)), "action_token_range": np.array([1, 3])},
        {"policy_error": ValueError("x")},
        {"policy_error": [None, None, "x"]},
        {"env_error": 5},
        {"env_error": ["x"]},
    ],
)
def test_whatever_is_given_is_taken_or_is_a_fault_with_a_name(given: dict[str, Any]) -> None:
    vector = VectorMonitor(num_envs=2, action_low=LOW, action_high=-LOW)
    decision = vector.update(Step(action=np.zeros((2, 7)), **given))
    for name, code in (("policy_error", "POLICY_ERROR"), ("env_error", "ENV_ERROR")):
        assert (code in decision.faults) == (name in given)
    assert all(where.shape == (2,) for where in decision.faults.values())


def test_extra_may_be_a_mapping_of_each_environment() -> None:
    vector = VectorMonitor(num_envs=2, action_low=LOW, action_high=-LOW)
    action = np.zeros((2, 7))
    decision = vector.update(Step(action=action, extra=[{"mine": 1.0}, {"mine": 2.0}]))
    assert decision.metrics["mine"].tolist() == [1.0, 2.0]
    assert "METRIC_ERROR" not in decision.faults
    decision = vector.update(Step(action=action, extra={"mine": np.ones(3)}))
    assert decision.faults["METRIC_ERROR"].all()


def test_a_camera_that_shows_every_fifth_frame_is_not_frozen() -> None:
    rng = np.random.default_rng(7)
    vector = VectorMonitor(num_envs=1, action_low=LOW, action_high=-LOW)
    single = Monitor(action_low=LOW, action_high=-LOW)
    for t in range(30):
        fresh = rng.integers(0, 256, (1, 8, 8, 3), dtype=np.uint8) if t % 5 == 0 else None
        given: dict[str, Any] = {
            "action": np.full((1, 7), 0.01),
            "tcp_position": [[0.02 * t, 0.0, 0.0]],
        }
        decision = vector.update(Step(**given, image=fresh))
        assert_equal(decision, 0, single.update(one_of({**given, "image": fresh}, 0)))
        assert "CAMERA_FROZEN" not in decision.faults


def test_errors_of_some_environments() -> None:
    vector = VectorMonitor(num_envs=3, action_low=LOW, action_high=-LOW)
    errors: Any = [None, "boom", "STALE_ACTION: late"]
    decision = vector.update(Step(action=np.zeros((3, 7)), policy_error=errors))
    assert decision.modes == [Mode.TASK, Mode.HALT, Mode.RECOVER]
    assert decision.sendable.tolist() == [True, False, True]


def test_a_batch_of_the_wrong_shape_is_a_fault_everywhere() -> None:
    vector = VectorMonitor(num_envs=2, action_low=LOW, action_high=-LOW)
    decision = vector.update(Step(action=np.zeros((3, 7)), token_logits=np.zeros((2, 7))))
    assert decision.faults["ACTION_SHAPE"].all()
    assert decision.faults["LOGITS_SHAPE"].all()
    assert decision.modes == [Mode.HALT] * 2


def test_an_action_without_the_gripper_that_is_configured_is_taken() -> None:
    config, high = MonitorConfig.model_validate({"robot": {"gripper": {"index": 6}}}), np.ones(5)
    vector = VectorMonitor(config, num_envs=2, action_low=-high, action_high=high)
    for error in (None, "STALE_ACTION: late"):
        decision = vector.update(Step(action=np.zeros((2, 5)), policy_error=error))
    assert decision.modes == [Mode.RECOVER] * 2
    assert decision.action.tolist() == np.zeros((2, 5)).tolist()


def test_no_environment_is_refused() -> None:
    with pytest.raises(DimensionError):
        VectorMonitor(num_envs=0, action_low=LOW, action_high=-LOW)


@pytest.mark.parametrize("none", [[], (), np.array([]), np.flatnonzero([False])])
def test_a_reset_of_none_resets_none(none: Any) -> None:
    vector = VectorMonitor(num_envs=2, action_low=LOW, action_high=-LOW)
    vector.update(Step(action=np.zeros((2, 7))))
    vector.reset(none)
    assert vector.update(Step(action=np.zeros((2, 7)))).step.tolist() == [1, 1]
    vector.reset([1])
    assert vector.update(Step(action=np.zeros((2, 7)))).step.tolist() == [2, 0]


def test_errors_may_be_of_any_form() -> None:
    vector = VectorMonitor(num_envs=2, action_low=LOW, action_high=-LOW)
    given: Any = [None, ["CUDA", "out of memory"]]
    decision = vector.update(Step(action=np.zeros((2, 7)), policy_error=given, env_error=given))
    assert decision.faults["POLICY_ERROR"].tolist() == [False, True]
    assert decision.faults["ENV_ERROR"].tolist() == [False, True]
