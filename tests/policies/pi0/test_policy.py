"""π0's policy on tiny checkpoints: what it says, and that it says it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.errors import ConfigError
from policies import Observation, load_policy
from policies.pi0.options import PI0Options
from policies.pi0.policy import PI0Policy
from policies.tokenizer import MissingTokenizerError

WORDS = "put the red cube on the plate"
Write = Callable[..., Path]
HEAD = "model.paligemma_with_expert.gemma_expert.lm_head.weight"


@pytest.fixture(scope="module")
def policy(checkpoint: Path) -> PI0Policy:
    return PI0Policy(PI0Options(checkpoint=checkpoint, steps=3))


def seen(image: Any, **more: Any) -> Observation:
    return Observation(image=image, instruction=WORDS, **more)


def same(one: Any, other: Any) -> bool:
    pairs = ((getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


def test_the_registry_knows_it(checkpoint: Path, image: Any) -> None:
    loaded = load_policy("pi0", checkpoint=str(checkpoint), samples=2)
    loaded.reset(WORDS)
    out = loaded.act(seen(image))
    assert loaded.name == "pi0"
    filled = {f.name for f in fields(out) if getattr(out, f.name) is not None}
    assert loaded.signals == filled - {"action", "decode_ok"}
    assert out.samples is not None
    assert out.samples.shape == (2, 7)


def test_shapes_and_units(policy: PI0Policy, image: Any, tiny: Any) -> None:
    policy.reset(WORDS)
    out = policy.act(seen(image))
    assert out.chunk is not None
    assert out.normalized_action is not None
    extra: Any = out.extra
    assert (out.action.shape, out.chunk.shape) == ((7,), (4, 7))
    assert np.array_equal(out.action, out.chunk[0])
    expected = out.normalized_action * tiny.std["action"] + tiny.mean["action"]
    np.testing.assert_allclose(out.action, expected, rtol=1e-6)
    assert 0.0 < extra["PI0-DV"] < 1.0
    assert extra["PI0-SPREAD"] > 0.0
    assert out.token_logits is None


def test_a_reset_begins_the_noise_again(policy: PI0Policy, image: Any) -> None:
    runs = []
    for _ in range(2):
        policy.reset(WORDS)
        runs.append([policy.act(seen(image)) for _ in range(3)])
    assert all(same(a, b) for a, b in zip(*runs, strict=True))
    assert not np.array_equal(runs[0][0].action, runs[0][1].action)


def test_seeds_differ_and_more_samples_change_nothing_else(checkpoint: Path, image: Any) -> None:
    def first(**kwargs: Any) -> Any:
        one = PI0Policy(PI0Options(checkpoint=checkpoint, **kwargs))
        one.reset(WORDS)
        return one.act(seen(image))

    plain, more, other = first(), first(samples=6), first(seed=1)
    np.testing.assert_allclose(plain.action, more.action, atol=1e-6)
    np.testing.assert_allclose(plain.samples, more.samples[:4], atol=1e-6)
    assert float(np.abs(plain.action - other.action).max()) > 1e-3
    none = first(samples=0)
    assert (none.samples, none.extra["PI0-SPREAD"]) == (None, None)


def test_picture_words_and_state_reach_the_model(policy: PI0Policy, image: Any) -> None:
    def plan(**more: Any) -> Any:
        policy.reset(WORDS)
        return policy.act(Observation(**{"image": image, "instruction": WORDS, **more})).chunk

    plain = plan()
    assert np.abs(plain - plan(image=np.zeros_like(image))).max() > 1e-4
    assert np.abs(plain - plan(instruction="put the blue can on the plate")).max() > 1e-4
    assert np.array_equal(plain, plan(tcp_position=np.ones(3)))


def test_the_state_is_the_robots(checkpoint: Path, image: Any) -> None:
    policy = PI0Policy(PI0Options(checkpoint=checkpoint, state="bridge"))
    pose = {"tcp_position": [0.1] * 3, "tcp_quaternion": [1.0, 0.0, 0.0, 0.0], "gripper": 0.3}
    state = policy.inputs.state(seen(image, **pose))
    assert state is not None
    angles = (np.array([0.0, -np.pi / 2, 0.0]) - 0.1) / 0.2
    np.testing.assert_allclose(state[0], [0, 0, 0, *angles, -0.5, 1.0], atol=1e-6)
    policy.reset(WORDS)
    by_hand = policy.infer(
        input_ids=[policy.inputs.ids(WORDS)], pixel_values=policy.preprocess(image), state=state
    )
    policy.reset(WORDS)
    assert same(by_hand, policy.act(seen(image, **pose)))


def test_a_robot_gets_its_own_actions(checkpoint: Path, image: Any) -> None:
    raw, widowx = (
        PI0Policy(PI0Options(checkpoint=checkpoint, squash=True)),
        PI0Policy(PI0Options(checkpoint=checkpoint, robot="widowx")),
    )
    for policy in (raw, widowx):
        policy.reset(WORDS)
    said, done = raw.act(seen(image)), widowx.act(seen(image))
    assert done.samples is not None
    assert done.chunk is not None
    np.testing.assert_allclose(done.action[:3], said.action[:3], rtol=1e-6)
    assert {*done.samples[:, 6], *done.chunk[:, 6]} <= {-1.0, 1.0}
    assert done.action[6] == (1.0 if said.action[6] > 0.5 else -1.0)
    assert widowx.inputs.fit.squash


def test_several_cameras_may_be_given(policy: PI0Policy, image: Any) -> None:
    one = policy.preprocess(image)
    ids = [policy.inputs.ids(WORDS)]
    noise = np.zeros((1, 4, 32), np.float32)
    alone = policy.infer(input_ids=ids, pixel_values=one, noise=noise)
    again = policy.infer(input_ids=ids, pixel_values=one[:, None], noise=noise)
    both = policy.infer(input_ids=ids, pixel_values=np.stack([one, -one], axis=1), noise=noise)
    assert np.array_equal(alone.action, again.action)
    assert float(np.abs(alone.action - both.action).max()) > 1e-5


def test_expert_scores_are_there_when_asked_for(checkpoint: Path, image: Any) -> None:
    policy = PI0Policy(PI0Options(checkpoint=checkpoint, expert_scores=True))
    policy.reset(WORDS)
    extra: Any = policy.act(seen(image)).extra
    names = {"PI0-TB-TP", "PI0-TB-PCS", "PI0-TB-D", "PI0-TB-E"}
    assert names <= set(extra)
    assert all(0.0 < extra[name] < 1.0 for name in names)


def test_a_head_of_zeros_is_refused_only_when_asked_for(write_checkpoint: Write) -> None:
    folder = write_checkpoint(lambda tensors: tensors[HEAD].mul_(0.0))
    with pytest.raises(ConfigError, match="every score would be 1"):
        PI0Policy(PI0Options(checkpoint=folder, expert_scores=True))
    assert PI0Policy(PI0Options(checkpoint=folder)).name == "pi0"


def test_without_a_tokenizer_only_ids_work(write_checkpoint: Write, image: Any) -> None:
    folder = write_checkpoint()
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").unlink()
    policy = PI0Policy(PI0Options(checkpoint=folder))
    policy.reset(WORDS)
    with pytest.raises(MissingTokenizerError, match="tokenizer"):
        policy.act(seen(image))
    out = policy.infer(input_ids=[[2, 5]], pixel_values=policy.preprocess(image))
    assert out.action.shape == (7,)
    elsewhere = folder / "paligemma"
    elsewhere.mkdir()
    (elsewhere / "tokenizer.json").write_text(text)
    PI0Policy(PI0Options(checkpoint=folder, tokenizer=elsewhere)).act(seen(image))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dtype": "float8"}, "float32"),
        ({"samples": -1}, "samples must be a whole number from 0 up"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"robot": "widow"}, "widowx"),
        ({"state": "brigde"}, "bridge"),
        ({"action_dim": 9}, "an action of 9 numbers does not fit"),
        ({"action_dim": 0}, "an action of 0 numbers does not fit"),
        ({"execute_steps": 5}, "execute_steps must be from 1 to 4, got 5"),
    ],
)
def test_wrong_arguments_are_named(checkpoint: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PI0Policy(PI0Options(checkpoint=checkpoint, **given))


def test_half_precision_stays_near(checkpoint: Path, image: Any, tiny: Any) -> None:
    plans: list[Any] = []
    for dtype in ("float32", "bfloat16"):
        policy = PI0Policy(PI0Options(checkpoint=checkpoint, dtype=dtype))
        policy.reset(WORDS)
        plans.append(policy.act(seen(image)).chunk)
    one, other = (plan / tiny.std["action"] for plan in plans)
    np.testing.assert_allclose(one, other, atol=0.3)


def test_a_plan_may_be_done_before_the_model_is_asked_again(checkpoint: Path, image: Any) -> None:
    policy = PI0Policy(PI0Options(checkpoint=checkpoint, steps=3, execute_steps=3))
    policy.reset(WORDS)
    outs = [policy.act(seen(image)) for _ in range(5)]
    chunk: Any = outs[0].chunk
    assert [one.chunk is None for one in outs] == [False, True, True, False, True]
    for step in (1, 2):
        assert np.array_equal(outs[step].action, chunk[step])
        assert (outs[step].samples, outs[step].extra) == (None, None)
    first, fourth = (outs[at].extra or {} for at in (0, 3))
    assert first["PI0-OVERLAP"] is None
    last, new = (outs[at].chunk for at in (0, 3))
    assert last is not None
    assert new is not None
    left = (last[3:] - new[:1]) / policy.statistics.action.factor
    assert fourth["PI0-OVERLAP"] == pytest.approx(np.abs(left).mean())
    other = policy.act(Observation(image=image, instruction="put the blue can on the plate"))
    assert other.chunk is not None  # other words, other plan


def test_overlap_of_plans_made_at_every_step(policy: PI0Policy, image: Any) -> None:
    policy.reset(WORDS)
    one, two = (policy.act(seen(image)) for _ in range(2))
    assert one.chunk is not None
    assert two.chunk is not None
    assert two.extra is not None
    moved = np.abs((one.chunk[1:] - two.chunk[:3]) / policy.statistics.action.factor)
    assert two.extra["PI0-OVERLAP"] == pytest.approx(moved.mean())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_comes_out_for_the_monitor_to_see(
    checkpoint: Path, image: Any, value: float
) -> None:
    policy = PI0Policy(PI0Options(checkpoint=checkpoint, robot="widowx"))
    policy.model.action_out_proj.bias.fill_(value)
    policy.reset(WORDS)
    out = policy.act(seen(image))
    assert not np.isfinite(out.action).all()
    extra: Any = out.extra
    assert not np.isfinite(extra["PI0-DV"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"input_ids": [2, 5]}, r"input_ids has shape \(2,\), expected \(1, any\)"),
        ({"pixel_values": np.zeros((1, 3, 8, 8))}, r"expected \(1, any, 3, 28, 28\)"),
        ({"state": np.zeros((1, 33))}, r"state has shape \(1, 33\), expected \(1, 32\)"),
        ({"noise": np.zeros((1, 4, 7))}, r"expected \(any, 4, 32\)"),
    ],
)
def test_other_shapes_are_refused(policy: PI0Policy, given: dict[str, Any], message: str) -> None:
    right = {"input_ids": [[2, 5]], "pixel_values": np.zeros((1, 3, 28, 28))}
    with pytest.raises(ValueError, match=message):
        policy.infer(**{**right, **given})
