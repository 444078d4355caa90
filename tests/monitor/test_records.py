from __future__ import annotations

import json

import numpy as np

from monitor import Evidence, Fault


def test_evidence_is_exact_through_json() -> None:
    rng = np.random.default_rng(0)
    one = Evidence(
        action=tuple(rng.normal(size=7).tolist()),
        tcp_quaternion=(1.0, 0.0, 0.0, 0.0),
        goal_distance=1e-320,
        success=False,
        policy_error="",
        decode_ok=False,
        signals={"TB-E": 0.1 + 0.2, "EV": None},
        tokens={"TB-E": (1 / 3, 2 / 3)},
        logits_id=2**32 - 1,
        problems=(Fault(code="X", message="m", detail={"step": 3}),),
    )
    text = json.dumps(one.to_json(), allow_nan=False)
    assert Evidence.from_json(json.loads(text)) == one


def test_what_is_at_its_default_is_not_written() -> None:
    assert Evidence().to_json() == {}
    assert Evidence.from_json({}) == Evidence()
