"""The policy on a small random model: chunks, cameras, robots, samples, and what must not pass."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from monitor.rollout.preflight.sensitivity import check_sensitivity  # noqa: E402
from policies import Observation, Policy, load_policy  # noqa: E402
from policies.action import ActionConvention  # noqa: E402
from policies.spatialvla.camera import scale_matrix  # noqa: E402
from policies.spatialvla.prompt import QUESTION  # noqa: E402

RED, BLUE = "put the red cube on the plate", "put the blue can on the plate"


@pytest.fixture(scope="module")
def image() -> Any:
    return np.random.default_rng(0).integers(0, 256, (96, 96, 3), dtype=np.uint8)


def load(folder: Path, **arguments: Any) -> Any:
    return load_policy("spatialvla", checkpoint=folder, **{"unnorm_key": "toy_kitchen"} | arguments)


@pytest.fixture(scope="module")
def shared_policy(tiny: Path) -> Any:
    return load(tiny)


@pytest.fixture
def policy(shared_policy: Any) -> Any:
    """One model for all tests; its state within an episode is new."""
    shared_policy.reset("")
    return shared_policy


@pytest.fixture(scope="module")
def output(shared_policy: Any, image: Any) -> Any:
    return shared_policy.act(Observation(image=image, instruction=RED))


def test_it_is_a_policy(policy: Any) -> None:
    assert isinstance(policy, Policy)
    assert policy.name == "spatialvla"
    assert policy.signals == {"token_logits", "token_ids", "chunk", "hidden", "normalized_action"}


def test_output_has_the_promised_shapes(output: Any) -> None:
    assert output.action.shape == output.normalized_action.shape == (7,)
    assert output.chunk.shape == (3, 7)
    assert output.token_ids.shape == (9,)
    assert output.token_logits.shape == (9, 117)
    assert output.action_token_range == (40, 117)
    assert output.samples is None
    assert np.isfinite(output.hidden).all()
    assert output.hidden.shape == (24,)


def test_ids_are_the_largest_logits_and_decode_to_the_chunk(policy: Any, output: Any) -> None:
    np.testing.assert_array_equal(output.token_ids, output.token_logits.argmax(axis=1))
    normalized = policy.decode(output.token_ids)
    np.testing.assert_array_equal(policy.statistics.unnormalize(normalized), output.chunk)
    np.testing.assert_array_equal(output.action, output.chunk[0])


def test_cached_decoding_equals_one_pass_over_the_whole_sequence(
    policy: Any, output: Any, image: Any
) -> None:
    """Prefix open both ways, answer causal: built here as one mask over everything."""
    model, ids = policy.model, torch.tensor([policy._ids(RED)])
    pixels = torch.from_numpy(policy.preprocess(image))
    with torch.inference_mode():
        prefix = model.embed(ids, pixels, torch.from_numpy(policy.intrinsic))
        answer = model.language_model.get_input_embeddings()(
            torch.from_numpy(output.token_ids[None])
        )
        embedded = torch.cat([prefix, answer], dim=1)
        size, start = embedded.shape[1], prefix.shape[1]
        mask = torch.full((1, 1, size, size), float("-inf")).triu(1)
        mask[..., :start, :start] = 0.0
        states = model.language_model.model(
            inputs_embeds=embedded,
            attention_mask={"full_attention": mask, "sliding_attention": mask},
            position_ids=torch.arange(1, size + 1)[None],
        ).last_hidden_state
        logits = model.logits(states[0, start - 1 : -1])
    np.testing.assert_allclose(output.token_logits, logits.numpy(), atol=1e-4)


def test_instruction_and_picture_and_camera_all_matter(
    policy: Any, output: Any, image: Any
) -> None:
    other = policy.act(Observation(image=image, instruction=BLUE))
    black = policy.act(Observation(image=image * 0, instruction=RED))
    near = policy.infer(
        input_ids=[policy._ids(RED)],
        pixel_values=policy.preprocess(image),
        intrinsic=policy.intrinsic * [[2.0], [2.0], [1.0]],
    )
    for changed in (other, black, near):
        assert np.abs(output.token_logits[0] - changed.token_logits[0]).max() > 1e-3


def test_deep_copy_continues_alike(policy: Any, image: Any) -> None:
    twin = copy.deepcopy(policy)
    seen = Observation(image=image, instruction=RED)
    np.testing.assert_array_equal(policy.act(seen).token_logits, twin.act(seen).token_logits)


# ---- the end of the sequence -----------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 4])
def test_the_end_of_the_sequence_is_no_token_of_the_action(
    policy: Any, image: Any, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    real, calls = policy.model.logits, []

    def ending(states: Any) -> Any:
        row = real(states)
        calls.append(1)
        if len(calls) == after + 1:
            row[..., 1] = 100.0
        return row

    monkeypatch.setattr(policy.model, "logits", ending)
    out = policy.act(Observation(image=image, instruction=RED))
    assert not out.decode_ok
    assert out.chunk.shape == (3, 7)
    if after == 0:
        assert out.token_ids is out.token_logits is None
    else:
        assert out.token_ids.shape == (after,)
        assert out.token_logits.shape == (after, 117)
        # What is missing decodes as upstream's padding does, and is flagged.
        padded = policy.decode([*out.token_ids, *[0] * (9 - after)])
        np.testing.assert_array_equal(out.chunk, policy.statistics.unnormalize(padded))


def test_tokens_out_of_place_are_flagged(
    policy: Any, image: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = policy.model.logits

    def misplaced(states: Any) -> Any:
        row = real(states)
        row[..., 45] = 100.0
        return row

    monkeypatch.setattr(policy.model, "logits", misplaced)
    out = policy.act(Observation(image=image, instruction=RED))
    assert out.token_ids.tolist() == [45] * 9
    assert not out.decode_ok


# ---- the check before a run ------------------------------------------------------------------


def test_the_probe_passes_the_right_model(policy: Any, image: Any) -> None:
    report = check_sensitivity(policy, image, RED)
    assert report.fault is None
    assert report.sees
    assert report.reads
    assert report.prefix is not None
    assert report.prefix > 1e-2


def test_the_probe_refuses_a_model_whose_picture_is_dropped(
    policy: Any, image: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = policy.model.see
    monkeypatch.setattr(policy.model, "see", lambda *seen: real(*seen) * 0.0)
    report = check_sensitivity(policy, image, RED)
    assert report.fault == "VISION_BYPASS"
    assert report.reads


def test_the_probe_refuses_a_causal_prefix(
    policy: Any, image: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def causal(embedded: Any, before: int) -> Any:
        new = embedded.shape[1]
        return torch.full((1, 1, new, before + new), float("-inf")).triu(before + 1)

    monkeypatch.setattr(policy.model, "mask", causal)
    report = check_sensitivity(policy, image, RED)
    assert report.fault == "PREFIX_CAUSAL"
    assert report.prefix == 0.0
    assert report.sees
    assert policy.act(Observation(image=image, instruction=RED)).action.shape == (7,)


def test_words_that_read_the_same_turned_round_tell_nothing(policy: Any, image: Any) -> None:
    assert policy.prefix_change(Observation(image=image, instruction="")) is None


# ---- chunks, samples, robots -----------------------------------------------------------------


def test_several_actions_of_a_chunk_are_carried_out(tiny: Path, image: Any, output: Any) -> None:
    patient = load(tiny, execute_steps=2)
    seen = Observation(image=image, instruction=RED)
    patient.reset(RED)
    first, second, third = (patient.act(seen) for _ in range(3))
    np.testing.assert_array_equal(first.action, output.chunk[0])
    np.testing.assert_array_equal(second.action, output.chunk[1])
    np.testing.assert_array_equal(third.action, output.chunk[0])
    assert second.token_logits is second.chunk is None
    patient.reset(RED)
    np.testing.assert_array_equal(patient.act(seen).action, output.chunk[0])


def test_samples_stay_in_their_groups_and_leave_the_action_alone(
    tiny: Path, image: Any, output: Any
) -> None:
    sampler = load(tiny, samples=5, seed=3)
    seen = Observation(image=image, instruction=RED)
    sampler.reset(RED)
    first, later = sampler.act(seen), sampler.act(seen)
    sampler.reset(RED)
    again = sampler.act(seen)
    assert first.samples.shape == (5, 7)
    assert (np.abs(first.samples[:, :3]) <= 0.03).all()
    np.testing.assert_array_equal(first.samples, again.samples)
    assert np.abs(first.samples - later.samples).max() > 0
    np.testing.assert_array_equal(first.token_logits, output.token_logits)


def test_cold_samples_are_the_greedy_action(tiny: Path, image: Any, output: Any) -> None:
    sampler = load(tiny, samples=2, temperature=0.0)
    out = sampler.act(Observation(image=image, instruction=RED))
    for row in out.samples:
        np.testing.assert_allclose(row, output.action, atol=1e-12)


def test_a_robot_gets_its_own_units(tiny: Path, image: Any, output: Any) -> None:
    from envs.robot import ROBOTS

    seen = Observation(image=image, instruction=RED)
    plain = load(tiny, robot=ActionConvention(robot=ROBOTS["widowx"]), squash=False)
    out = plain.act(seen)
    np.testing.assert_allclose(out.action[:3], output.action[:3])
    assert out.action[6] == (1.0 if output.action[6] > 0.5 else -1.0)
    with pytest.raises(ConfigError, match="unknown robot 'widow'"):
        load(tiny, robot="widow")


def test_the_published_robot_averages_overlapping_chunks(
    tiny: Path, image: Any, output: Any
) -> None:
    robot = load(tiny, robot="widowx", squash=False)
    black = Observation(image=image * 0, instruction=RED)
    other = robot.act(black).chunk[:, :3]
    robot.reset(RED)
    first = robot.act(Observation(image=image, instruction=RED))
    np.testing.assert_allclose(first.action[:3], output.chunk[0, :3])
    newest = np.exp(0.8) / (1.0 + np.exp(0.8))
    mixed = robot.act(black)
    wanted = (1.0 - newest) * output.chunk[1, :3] + newest * other[0]
    np.testing.assert_allclose(mixed.action[:3], wanted)
    assert mixed.chunk.shape == (3, 7)


def test_a_robot_that_carries_out_chunks_averages_none(tiny: Path, image: Any, output: Any) -> None:
    patient = load(tiny, robot="widowx", execute_steps=3, squash=False)
    seen = Observation(image=image, instruction=RED)
    made = np.stack([patient.act(seen).action[:3] for _ in range(3)])
    np.testing.assert_allclose(made, output.chunk[:, :3])


# ---- cameras and prompts ---------------------------------------------------------------------


def test_the_camera_is_that_of_the_data_set(tiny: Path, policy: Any) -> None:
    wide = [[28.0, 0.0, 14.0], [0.0, 56.0, 28.0], [0.0, 0.0, 1.0]]
    own = [[56.0, 0.0, 28.0], [0.0, 56.0, 28.0], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose(policy.intrinsic, own)
    np.testing.assert_allclose(load(tiny, unnorm_key="toy_lab").intrinsic, wide)
    np.testing.assert_allclose(load(tiny, camera="default").intrinsic, wide)
    np.testing.assert_allclose(load(tiny, intrinsic=own, camera="default").intrinsic, own)


def test_wrong_arguments_are_said_before_anything_is_read(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "no_weights"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").unlink()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"camera": "kitchen"}, "unknown camera 'kitchen'.*toy_kitchen"),
        ({"unnorm_key": "toy_kitche"}, "did you mean 'toy_kitchen'"),
        ({"unnorm_key": None}, r"unnorm_key=, one of \['toy_kitchen', 'toy_lab'\]"),
        ({"execute_steps": 4}, "from 1 to 3, got 4"),
        ({"samples": -1}, "must be a whole number from 0 up"),
        ({"intrinsic": np.eye(4)}, r"is \(3, 3\), got shape \(4, 4\)"),
        ({"intrinsic": np.diag([0.0, 50.0, 1.0])}, "focal lengths in pixels above 0"),
        ({"intrinsic": np.full((3, 3), np.nan)}, "a camera matrix is finite"),
    ]
    for arguments, words in wrong:
        with pytest.raises(ConfigError, match=words):
            load(folder, **arguments)
    (folder / "processor_config.json").unlink()
    with pytest.raises(ConfigError, match=r"processor_config\.json is missing"):
        load(folder)


def test_statistics_beside_the_processor_come_on_top(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    shutil.copytree(tiny, folder)
    action = {"q01": [-1.0] * 7, "q99": [1.0] * 7}
    text = json.dumps({"my_robot": {"action": action}})
    (folder / "dataset_statistics.json").write_text(text, encoding="utf-8")
    mine = load(folder, unnorm_key="my_robot")
    np.testing.assert_array_equal(mine.statistics.q99, np.ones(7))
    assert mine.statistics.mask.all()


def test_prompts_hold_picture_begin_text_and_line_break(policy: Any, tiny: Path) -> None:
    ids = policy._ids("Put the CUBE")
    assert ids == [39] * 16 + [2, 5, 6, 9, 4]
    asking = load(tiny, prompt=QUESTION)
    assert len(asking._ids("put")) == 16 + 1 + 8 + 1


def test_a_prompt_without_the_picture_is_refused(policy: Any, image: Any) -> None:
    ids = policy._ids(RED)[3:]
    with pytest.raises(ValueError, match=r"13 image tokens .*; the image has 16 patches"):
        policy.infer(input_ids=[ids], pixel_values=policy.preprocess(image))


def test_a_sequence_beyond_the_window_is_refused(variant: Any, image: Any) -> None:
    narrow = load(variant({"sliding_window": 30}))
    with pytest.raises(ValueError, match="above the sliding window of 30"):
        narrow.act(Observation(image=image, instruction=RED + " " + RED))


def test_pictures_may_be_shrunk_by_areas_first(tiny: Path, policy: Any) -> None:
    blocks = np.random.default_rng(1).integers(0, 256, (56, 56, 3), dtype=np.uint8)
    large = blocks.repeat(3, axis=0).repeat(2, axis=1)
    shrunk = load(tiny, squash=True)
    np.testing.assert_array_equal(shrunk.preprocess(large), policy.preprocess(blocks))
    assert np.abs(policy.preprocess(large) - policy.preprocess(blocks)).max() > 0.01
    small = blocks[:20, :20]
    np.testing.assert_array_equal(shrunk.preprocess(small), policy.preprocess(small))


def test_bad_pictures_are_refused_with_their_shape(policy: Any) -> None:
    with pytest.raises(ValueError, match=r"\(H, W, 3\) uint8 RGB, got shape \(4, 4\) float64"):
        policy.act(Observation(image=np.zeros((4, 4)), instruction=RED))  # type: ignore[arg-type]


def test_unknown_dtype_is_named(tiny: Path) -> None:
    with pytest.raises(ConfigError, match="unknown dtype 'float8'"):
        load(tiny, dtype="float8")


def test_a_camera_matrix_scales_with_the_picture() -> None:
    bridge = np.array([[623.588, 0.0, 319.501], [0.0, 623.588, 239.545], [0.0, 0.0, 1.0]])
    matrix = scale_matrix(bridge, width=640, height=480, side=224)
    assert matrix[0, 0] == pytest.approx(218.2558)
    assert matrix[1, 1] == pytest.approx(291.00775, rel=1e-6)
    assert matrix[2].tolist() == [0.0, 0.0, 1.0]
