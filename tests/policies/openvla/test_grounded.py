from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from policies.openvla.config import GroundedConvConfig  # noqa: E402
from policies.openvla.grounded import GroundedConvTower, cell_centers, sincos_2d  # noqa: E402


def test_points_lie_in_the_picture_and_tokens_are_counted() -> None:
    config = GroundedConvConfig()
    tower = GroundedConvTower(config, text_width=20)
    seen = tower(torch.rand(2, 3, 96, 96) * 2 - 1, torch.randn(2, 9, 20))
    assert seen.tokens.shape == (2, config.tokens, config.embed)
    assert seen.keypoints.abs().max() < 1.0
    assert seen.grounded.shape == (2, 4, 2)
    assert seen.positions.shape == (2, 4, 3)
    assert torch.allclose(seen.heat.exp().sum(-1), torch.ones(2, 6), atol=1e-5)


def test_only_grounded_points_depend_on_the_words() -> None:
    tower = GroundedConvTower(GroundedConvConfig(), text_width=20)
    pixels = torch.rand(1, 3, 96, 96) * 2 - 1
    one = tower(pixels, torch.randn(1, 9, 20))
    two = tower(pixels, torch.randn(1, 9, 20))
    assert torch.equal(one.keypoints, two.keypoints)
    assert not torch.allclose(one.grounded, two.grounded)


def test_grids_are_row_major_with_x_first() -> None:
    cells = cell_centers(4).reshape(4, 4, 2)
    assert torch.equal(cells[0, :, 0], cells[3, :, 0])
    assert torch.allclose(cells[0, :, 0], torch.tensor([-0.75, -0.25, 0.25, 0.75]))
    assert len({tuple(row) for row in sincos_2d(6, 128).tolist()}) == 36
