"""What every policy with a checkpoint refuses, below its tokenizer too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError, MissingExtraError  # noqa: E402
from policies import Observation, load_policy  # noqa: E402
from policies.tokenizer import load_tokenizer  # noqa: E402


@pytest.fixture(scope="module")
def policy(mini_checkpoint: Path) -> Any:
    policy = load_policy("openvla-mini", checkpoint=mini_checkpoint)
    policy.reset("put the red cube on the plate")
    return policy


Change = Callable[[Any], Any]


@pytest.mark.parametrize(
    "change",
    [
        lambda pixels: pixels * np.nan,
        lambda pixels: pixels[0],
        lambda pixels: np.concatenate([pixels, pixels]),
        lambda pixels: pixels[:, :1],
        lambda pixels: pixels[..., :-1],
    ],
    ids=["nan", "no batch", "batch of 2", "one channel", "not square"],
)
def test_pixels_that_no_picture_gives_are_refused(policy: Any, change: Change) -> None:
    pixels = policy.preprocess(np.zeros((32, 32, 3), np.uint8))
    with pytest.raises(ValueError, match="pixel_values"):
        policy.infer(input_ids=[[1, 5, 6]], pixel_values=change(pixels))


def test_a_picture_without_pixels_is_refused(policy: Any) -> None:
    with pytest.raises(ValueError, match=r"got shape \(0, 5, 3\) uint8, which has no pixels"):
        policy.act(Observation(image=np.zeros((0, 5, 3), np.uint8)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"device": "tpu9"}, "device 'tpu9' is none of torch"),
        ({"dtype": 3}, "unknown dtype 3"),
        ({"unnorm_key": 3}, "unknown unnorm_key 3"),
        ({"robot": 5}, "unknown robot 5; Allowed: google_robot, widowx"),
        ({"samples": 1.5}, "samples must be a whole number from 0 up, got 1.5"),
        ({"samples": "a"}, "samples must be a whole number"),
        ({"temperature": float("nan")}, "temperature must be a number from 0 up, got nan"),
        ({"seed": -1}, "seed must be a whole number from 0 up, got -1"),
    ],
)
def test_an_option_of_the_wrong_kind_says_what_is_allowed(
    mini_checkpoint: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        load_policy("openvla-mini", checkpoint=mini_checkpoint, **given)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_something_that_the_machine_lacks(mini_checkpoint: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"device 'cuda' is not there: torch .* sees 0"):
        load_policy("openvla-mini", checkpoint=mini_checkpoint, device="cuda")


def test_a_tokenizer_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tokenizer\.json is not a tokenizer"):
        load_tokenizer(tmp_path)
