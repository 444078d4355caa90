"""The table of signals against every list of fields that a layer keeps for itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import get_type_hints

import numpy as np

import envs.base
import policies
from envs.conformance.form import _ARRAYS
from envs.host.blank import BlankEnv
from monitor import Step
from monitor.catalogue import CATALOGUE
from monitor.env_api import read_reset
from monitor.signals import (
    ENV_SIGNALS,
    LOOP_SIGNALS,
    OBSERVED_SIGNALS,
    POLICY_SIGNALS,
    SIGNALS,
)
from policies.wire.keys import LAYOUT, KeyMap
from policies.wire.messages import _SHAPES


def test_every_field_of_a_step_is_declared_once_and_documented() -> None:
    assert tuple(SIGNALS) == Step.__struct_fields__
    said = Step.__doc__ or ""
    assert [name for name in SIGNALS if f"        {name}: " not in said] == []
    assert all(row.meaning and row.name == name for name, row in SIGNALS.items())


def test_the_lists_cover_every_signal() -> None:
    lists = {"action", "success", *POLICY_SIGNALS, *ENV_SIGNALS, *LOOP_SIGNALS}
    assert lists == set(SIGNALS)
    assert not any(SIGNALS[name].privileged for name in (*OBSERVED_SIGNALS, *POLICY_SIGNALS))


def test_policies_see_what_the_robot_measures_and_report_what_the_table_says() -> None:
    seen = {field.name for field in fields(policies.Observation)}
    assert seen == {"instruction", *OBSERVED_SIGNALS}
    reported = {field.name for field in fields(policies.PolicyOutput)}
    assert reported == {"action", "normalized_action", *POLICY_SIGNALS}


def test_environments_offer_what_the_table_says() -> None:
    assert set(get_type_hints(envs.base.Observation)) == set(OBSERVED_SIGNALS)
    for name, shape in _ARRAYS.items():
        assert shape == (SIGNALS[name].shape or (1,))
    observation, info = BlankEnv(image_size=(4, 6)).reset()
    found = read_reset((observation, info)).sensed()
    assert set(found) == set(ENV_SIGNALS)
    assert {name: np.ndim(value) for name, value in found.items()} == {
        name: SIGNALS[name].rank for name in ENV_SIGNALS
    }


def test_the_wire_carries_them() -> None:
    assert dict(LAYOUT) == {
        "tcp_position": 3,
        "tcp_quaternion": 4,
        "gripper": 1,
        "joint_positions": None,
    }
    assert set(LAYOUT) <= {field.name for field in fields(KeyMap)}
    ranks = {name: len(shape) for name, shape in _SHAPES.items() if name != "normalized_action"}
    arrays = {name: SIGNALS[name].rank for name in ("action", *POLICY_SIGNALS)}
    assert ranks == {name: rank for name, rank in arrays.items() if rank}


def test_metrics_need_signals_and_are_privileged_with_them() -> None:
    needs: Mapping[str, tuple[str, ...]] = {name: info.needs for name, info in CATALOGUE.items()}
    assert {name for names in needs.values() for name in names} <= set(SIGNALS)
    for name, names in needs.items():
        if any(SIGNALS[need].privileged for need in names):
            assert CATALOGUE[name].privileged, name
