"""Logits captured from stock models; also run with old numpy and transformers (tests/compat)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from monitor import Decision, Mode, Monitor, Step
from monitor.capture import NothingToCaptureError, capture, monitored
from monitor.config import parse_config
from monitor.errors import DimensionError
from monitor.signals import OBSERVED_SIGNALS, POLICY_SIGNALS, SIGNALS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOKENS, VOCABULARY = 7, 64
PROMPT = torch.tensor([[1, 5, 9, 4]])
GREEDY = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False}


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture
def expected(model: Any) -> Any:
    """What generate() itself says when asked."""
    return model.generate(
        PROMPT,
        attention_mask=torch.ones_like(PROMPT),
        output_logits=True,
        return_dict_in_generate=True,
        **GREEDY,
    )


@pytest.fixture
def monitor() -> Monitor:
    """Only watches: a model with random weights is too unsure to be let through."""
    config = parse_config({"controller": {"enforce": False}})
    return Monitor(config, action_low=-np.ones(7), action_high=np.ones(7))


def generate(model: Any, **options: Any) -> Any:
    return model.generate(PROMPT, attention_mask=torch.ones_like(PROMPT), **GREEDY, **options)


def test_captured_is_what_generate_computed(model: Any, expected: Any) -> None:
    with capture(model, action_token_range=(32, 64)) as captured:
        sequences = generate(model)
        assert torch.equal(sequences, expected.sequences)  # its caller sees no difference
        step = captured.step(action=np.zeros(7))
    assert isinstance(step, Step)
    assert step.action_token_range == (32, 64)
    assert torch.equal(step.token_logits, torch.cat(expected.logits))
    assert torch.equal(step.token_ids, expected.sequences[0, -TOKENS:])
    assert "generate" not in vars(model)


def test_a_caller_that_wants_the_whole_output_gets_it(model: Any, expected: Any) -> None:
    with capture(model, tokens=slice(0, 3)) as captured:
        output = generate(model, return_dict_in_generate=True)
        assert captured.token_logits.shape == (3, VOCABULARY)
        assert torch.equal(captured.token_ids, expected.sequences[0, -TOKENS:][:3])
    assert torch.equal(output.sequences, expected.sequences)


def test_a_hook_on_the_head_sees_the_same(model: Any, expected: Any) -> None:
    with capture(model, head=model.lm_head) as captured:
        for _ in range(2):  # the second answer does not pile up on the first
            generate(model)
            step = captured.step()
            assert torch.equal(step.token_logits, torch.cat(expected.logits))
            assert step.token_ids is None
    assert not model.lm_head._forward_hooks


def test_embeddings_instead_of_ids(model: Any, expected: Any) -> None:
    """The way a picture goes in: then the sequences hold the new tokens alone."""
    with torch.no_grad(), capture(model) as captured:
        embeds = model.get_input_embeddings()(PROMPT)
        model.generate(
            inputs_embeds=embeds, attention_mask=torch.ones_like(PROMPT), use_cache=True, **GREEDY
        )
        assert torch.allclose(captured.token_logits, torch.cat(expected.logits), atol=1e-6)
        assert torch.equal(captured.token_ids, expected.sequences[0, -TOKENS:])


def test_a_model_that_fails_is_left_as_it_was(model: Any) -> None:
    def run() -> None:
        with capture(model):
            raise KeyError

    with pytest.raises(KeyError):
        run()
    assert "generate" not in vars(model)
    pair = PROMPT.repeat(2, 1)
    with capture(model), pytest.raises(DimensionError, match="batch of 2"):
        model.generate(pair, attention_mask=torch.ones_like(pair), **GREEDY)


def test_a_monitored_model_decides_as_a_monitor_that_is_handed_the_logits(
    model: Any, expected: Any, monitor: Monitor
) -> None:
    alone = Monitor(action_low=-np.ones(7), action_high=np.ones(7))
    with monitored(model, monitor) as watched:
        watched.reset("wait")
        assert watched.config is model.config
        generate(watched)
        decision = watched.decide(np.zeros(7), tcp_position=np.zeros(3))
    wanted = alone.update(
        Step(
            action=np.zeros(7),
            tcp_position=np.zeros(3),
            token_logits=torch.cat(expected.logits),
            token_ids=expected.sequences[0, -TOKENS:],
        )
    )
    assert decision.metrics == wanted.metrics
    assert decision.metrics["TB-E"] is not None


class Policy:
    """Somebody's policy around a stock model; its output has no logits."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def act(self, observation: Any) -> Any:
        if observation["image"] is None:
            msg = "no picture"
            raise ValueError(msg)
        ids = generate(self.model)[0, -TOKENS:]
        return SimpleNamespace(action=ids.numpy() / VOCABULARY)


@pytest.fixture
def policy(model: Any) -> Iterator[Policy]:
    yield Policy(model)
    assert "generate" not in vars(model)


def test_a_monitored_policy(policy: Policy, expected: Any, monitor: Monitor) -> None:
    with monitored(policy, monitor) as watched:
        watched.reset("wait")
        picture = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype(np.uint8)
        output = watched.act({"image": picture}, goal_distance=0.2)
        decision = watched.decision
        assert decision is not None
        assert not decision.faults
        assert decision.action == pytest.approx(output.action)
        entropy = torch.cat(expected.logits).double().softmax(-1)
        entropy = -(entropy * entropy.log2()).sum(-1) / np.log2(VOCABULARY)
        assert decision.metrics["TB-E"] == pytest.approx(float(entropy.mean()), rel=1e-5)
        assert decision.evidence.image_id is not None
        assert decision.evidence.goal_distance == 0.2
        assert decision.evidence.latency_s is not None
        with pytest.raises(ValueError, match="no picture"):
            watched.act({"image": None})
        assert watched.decision is not None
        assert watched.decision.mode is Mode.HALT
        assert watched.decision.action is None


@pytest.mark.parametrize("missing", [None, *SIGNALS])
def test_a_monitored_policy_gives_what_the_monitor_gives(missing: str | None) -> None:
    rng = np.random.default_rng(0)
    whole: dict[str, Any] = {
        "action": rng.uniform(-1.0, 1.0, 7),
        "token_logits": rng.normal(size=(7, 16)),
        "token_ids": rng.integers(8, 16, 7),
        "action_token_range": (8, 16),
        "tcp_position": rng.normal(size=3),
        "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
        "goal_distance": 0.2,
        "samples": rng.uniform(-1.0, 1.0, (4, 7)),
        "chunk": rng.uniform(-1.0, 1.0, (5, 7)),
        "hidden": rng.normal(size=12),
        "image": rng.integers(0, 256, (8, 8, 3)).astype(np.uint8),
        "gripper": 0.5,
        "latency_s": 0.05,
        "success": False,
        "policy_error": "boom",
        "env_error": "bang",
        "decode_ok": False,
        "joint_positions": rng.normal(size=6),
        "extra": {"PI0-DV": 0.25},
    }
    assert set(whole) == set(SIGNALS)
    given = {name: value for name, value in whole.items() if name != missing}
    said = {name: given.pop(name) for name in ("action", *POLICY_SIGNALS) if name in given}
    seen = {name: given.pop(name) for name in OBSERVED_SIGNALS if name in given}

    def answer(observation: Any) -> Any:
        return SimpleNamespace(**said)

    ends = np.ones(7)
    alone, other = (Monitor(action_low=-ends, action_high=ends) for _ in range(2))
    with monitored(SimpleNamespace(act=answer), other) as watched:
        for _ in range(3):
            watched.act(seen, **given)
            wanted, got = alone.update(Step(**said, **seen, **given)), watched.decision
            assert got is not None
            for name in Decision.__struct_fields__:
                a, b = getattr(wanted, name), getattr(got, name)
                if name == "evidence" and missing == "latency_s":  # it is measured then
                    a, b = replace(a, latency_s=None), replace(b, latency_s=None)
                np.testing.assert_equal(a, b)


def test_nothing_to_hold_on_to(monitor: Monitor) -> None:
    with pytest.raises(NothingToCaptureError, match="lm_head"):
        monitored(object(), monitor)
    with pytest.raises(NothingToCaptureError, match="expected generate"), capture(object()):
        pass


def test_it_imports_nothing_heavy() -> None:
    script = (
        "import sys, monitor.capture; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
