"""Decisions on frozen streams are what they were at 9885c5e, to the last bit.

``tests/golden/decisions_9885c5e.jsonl.xz`` holds written-out configurations, the evidence of
every step, and of every decision its mode, score, action and a digest of all that it says.
"""

from __future__ import annotations

import json
import lzma
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor import Decision, Evidence, Monitor
from monitor.config import parse_config
from monitor.recorded import upgrade_header

FILE = Path(__file__).parents[2] / "golden" / "decisions_9885c5e.jsonl.xz"


def streams() -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    for line in lzma.decompress(FILE.read_bytes()).decode().splitlines():
        record = json.loads(line)
        if "stream" in record:
            found.append([])
        found[-1].append(record)
    return found


STREAMS = streams()


def canonical(decision: Decision, pooled: dict[str, float]) -> dict[str, Any]:
    belief = decision.belief
    return {
        "mode": decision.mode.value,
        "score": decision.score,
        "metrics": dict(sorted(decision.metrics.items())),
        "faults": sorted(fault.code for fault in decision.faults),
        "alerts": sorted([alert.kind, alert.code] for alert in decision.alerts),
        "action": None if decision.action is None else decision.action.tolist(),
        "belief": None if belief is None else list(msgspec.structs.astuple(belief)),
        "pooled": dict(sorted(pooled.items())),
    }


def digest(decision: dict[str, Any]) -> str:
    text = json.dumps(decision, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]


@pytest.mark.usefixtures("numba_or_not")
@pytest.mark.parametrize("number", range(len(STREAMS)))
def test_decisions_are_what_they_were(number: int) -> None:
    header, *steps = STREAMS[number]
    dim = header["dim"]
    text = json.dumps(upgrade_header({"monitor": header["config"]})["monitor"])
    config = parse_config(json.loads(text.replace('"PROG"', '"NO-PROG"')))
    monitor = Monitor(config, action_low=[-1.0] * dim, action_high=[1.0] * dim)
    for index, step in enumerate(steps):
        if step["reset"]:
            monitor.reset()
        evidence = msgspec.convert(step["evidence"], Evidence)
        found = canonical(monitor.replay(evidence), dict(monitor.pooled))
        for name in ("mode", "score", "action", "faults"):
            assert found[name] == step[name], f"step {index}: {name}"
        assert digest(found) == step["digest"], f"step {index}"


def test_the_streams_reach_what_they_are_for() -> None:
    steps = [step for stream in STREAMS for step in stream[1:]]
    assert {step["mode"] for step in steps} == {"TASK", "RECOVER", "HALT"}
    codes = {code for step in steps for code in step["faults"]}
    assert codes >= {
        "VISION_BYPASS", "CAMERA_BLACK", "CAMERA_FROZEN", "STALL", "DROP", "GRIPPER_NO_RESPONSE",
        "OFF_VOCAB_TOKEN", "UNNORM_MISMATCH", "LATENCY", "ACTION_RANGE",
    }  # fmt: skip
