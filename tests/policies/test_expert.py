from __future__ import annotations

import numpy as np
import pytest

from policies import Observation, load_policy
from policies.expert import NotBoundError


def test_expert_must_be_bound_first() -> None:
    policy = load_policy("expert")
    with pytest.raises(NotBoundError, match=r"policy\.bind\(env\)"):
        policy.act(Observation(image=np.zeros((2, 2, 3), np.uint8)))
