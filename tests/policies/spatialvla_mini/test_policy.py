"""spatialvla-mini: SpatialVLA's own class with a small encoder, depth network and 1359 cells."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.rollout.preflight.sensitivity import check_sensitivity  # noqa: E402
from policies import Observation, Policy, load_policy  # noqa: E402
from policies.checkpoint import tensor_files  # noqa: E402
from policies.spatialvla.conv_depth import spread  # noqa: E402
from policies.spatialvla.policy import SpatialVLAPolicy  # noqa: E402

RED, BLUE = "put the red cube on the plate", "put the blue can on the plate"


@pytest.fixture(scope="module")
def policy() -> Any:
    return load_policy("spatialvla-mini")


@pytest.fixture(scope="module")
def out(policy: Any, table_picture: Any) -> Any:
    return policy.act(Observation(image=table_picture, instruction=RED))


def test_it_is_spatialvla_with_few_parameters(policy: Any) -> None:
    assert isinstance(policy, Policy)
    assert type(policy) is SpatialVLAPolicy
    assert policy.name == "spatialvla-mini"
    assert policy.signals == {"token_logits", "token_ids", "chunk", "hidden", "normalized_action"}
    assert 0.3e6 < sum(one.numel() for one in policy.model.parameters()) < 1.5e6
    (weights,) = tensor_files(Path(policy.checkpoint))
    assert weights.stat().st_size < 2.3e6


def test_three_tokens_an_action_and_four_actions_a_chunk(policy: Any, out: Any) -> None:
    assert out.action.shape == out.normalized_action.shape == (7,)
    assert out.chunk.shape == (4, 7)
    np.testing.assert_array_equal(out.chunk[0], out.action)
    low, high = out.action_token_range
    assert high - low == policy.config.action_tokens == 1359
    assert out.token_ids.shape == (12,)
    assert out.token_logits.shape == (12, high)
    assert out.decode_ok
    assert np.isfinite(out.hidden).all()
    np.testing.assert_array_equal(out.token_ids, out.token_logits.argmax(axis=1))


def test_tokens_decode_to_the_action_by_hand(policy: Any, out: Any) -> None:
    place, turn, grip = (int(one) for one in out.token_ids[:3] - policy.config.action_token_begin)
    edges = [np.asarray(one) for one in (*policy.grid.translation, *policy.grid.rotation)]
    middles = [(one[1:] + one[:-1]) / 2 for one in edges]
    theta, phi, r = (
        middles[0][place // (16 * 7)],
        middles[1][place // 7 % 16],
        middles[2][place % 7],
    )
    turn -= 11 * 16 * 7
    angles = [middles[3][turn // 25], middles[4][turn // 5 % 5], middles[5][turn % 5]]
    direction = [np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)]
    normalized = np.concatenate([np.clip(r * np.array(direction), -1, 1), angles])
    np.testing.assert_allclose(out.normalized_action[:6], normalized, atol=1e-12)
    half = policy.statistics.q99[:6]
    np.testing.assert_allclose(out.action[:6], normalized * half, atol=1e-12)
    assert out.action[6] == (1.0 if grip - 11 * 16 * 7 - 125 else -1.0)


def test_standing_still_and_straight_moves_are_cells(policy: Any) -> None:
    still = policy.decode(policy.encode(np.zeros((1, 7))))
    assert np.abs(still[0, :3]).max() < 0.05
    np.testing.assert_array_equal(still[0, 3:6], 0.0)
    up = np.array([[0, 0, 1.0, 0, 0, 0, 1.0], [0, 0, -1.0, 0, 0, 0, 0]])
    np.testing.assert_allclose(policy.decode(policy.encode(up)), up, atol=1e-9)
    opened, closed = policy.statistics.unnormalize(up)[:, 6]
    assert (opened, closed) == (1.0, -1.0)


def test_cached_decoding_equals_one_pass_over_the_whole_sequence(
    policy: Any, table_picture: Any, out: Any
) -> None:
    model, ids = policy.model, torch.tensor([policy._ids(RED)])
    pixels = torch.from_numpy(policy.preprocess(table_picture))
    with torch.inference_mode():
        words = model.language_model.get_input_embeddings()(ids)[:, model.config.visual_tokens :]
        logits = model(
            ids,
            model.look(pixels, words),
            model.points(pixels, torch.from_numpy(policy.intrinsic)),
            torch.from_numpy(out.token_ids)[None],
        )
    np.testing.assert_allclose(out.token_logits, logits[0].numpy(), atol=1e-4)


def test_points_lie_where_a_pinhole_camera_sees_them(policy: Any, table_picture: Any) -> None:
    pixels = torch.from_numpy(policy.preprocess(table_picture))
    with torch.inference_mode():
        cells = policy.model.vision_zoe_model.cells(pixels)
        points = policy.model.points(pixels, torch.from_numpy(policy.intrinsic))
    assert 0.3 < float(cells.min()) < float(cells.max()) < 2.0
    focal, middle = policy.intrinsic[0, 0], policy.intrinsic[0, 2]
    # Patch 8 is the third of the second row; its last point is the centre of cell (3, 5).
    z = float(cells[0, 0, 3, 5])
    x, y = ((5 + 0.5) * 8 - middle) * z / focal, ((3 + 0.5) * 8 - middle) * z / focal
    np.testing.assert_allclose(points[0, 8, -3:].numpy(), [x, y, z], rtol=1e-5)
    assert torch.equal(spread(cells)[0, 0, 24:32, 40:48], torch.full((8, 8), z))


def test_camera_picture_and_instruction_all_matter(
    policy: Any, table_picture: Any, out: Any
) -> None:
    ids, pixels = [policy._ids(RED)], policy.preprocess(table_picture)
    wider = policy.intrinsic.copy()
    wider[:2, :2] *= 0.5
    moved = policy.infer(input_ids=ids, pixel_values=pixels, intrinsic=wider).token_logits
    other = policy.act(Observation(image=table_picture, instruction=BLUE)).token_logits
    black = policy.act(Observation(image=table_picture * 0, instruction=RED)).token_logits
    for changed in (moved, other, black):
        assert np.abs(out.token_logits - changed).max() > 1e-2


def test_the_check_before_a_run_passes(policy: Any, table_picture: Any) -> None:
    report = check_sensitivity(policy, table_picture, RED)
    assert (report.sees, report.reads, report.fault) == (True, True, None)
    assert report.prefix is not None
    assert report.prefix > 1e-3


def test_same_input_same_output_and_a_copy_continues_alike(
    policy: Any, table_picture: Any, out: Any
) -> None:
    seen = Observation(image=table_picture, instruction=RED)
    for one in (policy, copy.deepcopy(policy)):
        np.testing.assert_array_equal(one.act(seen).token_logits, out.token_logits)


def test_reset_gives_the_instruction_and_starts_the_samples_again(
    table_picture: Any, out: Any
) -> None:
    sampler: Any = load_policy("spatialvla-mini", samples=5, seed=3)
    sampler.reset(RED)
    first, later = (
        sampler.act(Observation(image=table_picture)),
        sampler.act(Observation(image=table_picture)),
    )
    sampler.reset(RED)
    again = sampler.act(Observation(image=table_picture))
    assert first.samples.shape == (5, 7)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert np.abs(first.samples - later.samples).max() > 0
    np.testing.assert_array_equal(first.action, out.action)


def test_a_chunk_can_be_carried_out(table_picture: Any, out: Any) -> None:
    planner: Any = load_policy("spatialvla-mini", execute_steps=4)
    seen = Observation(image=table_picture, instruction=RED)
    done = np.stack([planner.act(seen).action for _ in range(4)])
    np.testing.assert_array_equal(done, out.chunk)
    assert planner.act(seen).token_ids is not None
