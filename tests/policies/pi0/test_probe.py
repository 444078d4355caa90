"""The check before a run, asked about a right π0 and about deliberately broken copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.rollout.preflight.sensitivity import check_sensitivity
from policies.pi0.options import PI0Options
from policies.pi0.policy import PI0Policy

WORDS = "put the red cube on the plate"


def drop_pictures(policy: PI0Policy) -> None:
    """The features of every image are zero, as when the image is lost on its way."""
    vlm = policy.model.model.vlm
    real = vlm.get_image_features

    def blind(*args: Any, **kwargs: Any) -> Any:
        out = real(*args, **kwargs)
        out.pooler_output = out.pooler_output * 0.0
        return out

    vlm.get_image_features = blind


def make_causal(policy: PI0Policy) -> None:
    """The prefix forgets that it is one block: each token sees those before it alone."""
    vlm = policy.model.model.vlm
    for layer in vlm.language_model.layers:
        layer.self_attn.is_causal = True
    real = vlm.forward

    def causal(*args: Any, token_type_ids: Any = None, **kwargs: Any) -> Any:
        return real(*args, **kwargs)

    vlm.forward = causal


def test_the_right_one_passes(checkpoint: Path, image: Any) -> None:
    report = check_sensitivity(PI0Policy(PI0Options(checkpoint=checkpoint, steps=2)), image, WORDS)
    assert report.measure == "chunk"
    assert report.repeat == 0.0  # the noise is fixed by a reset
    assert (report.sees, report.reads, report.mixes, report.fault) == (True, True, True, None)


@pytest.mark.parametrize(
    ("damage", "fault"), [(drop_pictures, "VISION_BYPASS"), (make_causal, "PREFIX_CAUSAL")]
)
def test_broken_copies_fail(
    checkpoint: Path, image: Any, damage: Callable[[PI0Policy], None], fault: str
) -> None:
    policy = PI0Policy(PI0Options(checkpoint=checkpoint, steps=2))
    damage(policy)
    report = check_sensitivity(policy, image, WORDS)
    assert report.fault == fault
    if fault == "PREFIX_CAUSAL":  # nothing but the check of the prefix notices
        assert report.prefix == 0.0
        assert report.sees
        assert report.reads
