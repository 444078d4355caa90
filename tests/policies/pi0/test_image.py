"""Images against each upstream way, derived again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from policies.pi0.config import Layout
from policies.pi0.image import STYLES, ImageFit, prepare_image

SIZES = [(480, 640), (256, 256), (100, 37), (50, 60), (224, 224), (223, 225)]


def noise_image(height: int, width: int) -> Any:
    rng = np.random.default_rng(height * width)
    return rng.integers(0, 256, (height, width, 3)).astype(np.uint8)


def fitted(height: int, width: int, side: int) -> tuple[int, int]:
    """Height and width of the image within the square."""
    longest = max(height, width)
    if height == width == side:
        return side, side
    return int(height / (longest / side)), int(width / (longest / side))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", [Layout.LEROBOT, Layout.LEROBOT_V1])
def test_lerobot_interpolates_with_torch(layout: Layout, size: tuple[int, int]) -> None:
    image = noise_image(*size)
    height, width = fitted(*size, 224)
    unit = torch.tensor(image).float().permute(2, 0, 1)[None] / 255.0
    inner = torch.nn.functional.interpolate(unit, (height, width), mode="bilinear")
    top, left = 224 - height, 224 - width
    if layout is Layout.LEROBOT:
        top, left = top // 2, left // 2
    expected = torch.full((3, 224, 224), -1.0)
    expected[:, top : top + height, left : left + width] = inner[0] * 2.0 - 1.0
    ours = prepare_image(image, ImageFit(size=224, style=STYLES[layout]))
    np.testing.assert_allclose(ours, expected, atol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_openpi_resizes_with_pillow(size: tuple[int, int]) -> None:
    image = noise_image(*size)
    height, width = fitted(*size, 224)
    inner = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    whole = Image.new("RGB", (224, 224))
    whole.paste(inner, ((224 - width) // 2, (224 - height) // 2))
    expected = np.asarray(whole, np.float32).transpose(2, 0, 1) / np.float32(255) * 2 - 1
    ours = prepare_image(image, ImageFit(size=224, style=STYLES[Layout.OPENPI]))
    assert np.array_equal(ours, expected.astype(np.float32))
    assert ours.dtype == np.float32


@pytest.mark.parametrize("size", [(8, 16), (7, 9), (6, 4)])
def test_squashing_averages_areas(size: tuple[int, int]) -> None:
    """Each pixel is made of 4 x 4 equal ones, which then fall whole into the squares."""
    image = noise_image(*size)
    fine = image.repeat(4, axis=0).repeat(4, axis=1).astype(np.float64)
    means = fine.reshape(4, size[0], 4, size[1], 3).mean(axis=(1, 3))
    ours = prepare_image(image, ImageFit(size=4, style=STYLES[Layout.LEROBOT], squash=True))
    levels = (ours.transpose(1, 2, 0) + 1.0) * 127.5
    assert float(np.abs(levels - means).max()) < 0.501
    np.testing.assert_allclose(levels, np.rint(levels), atol=1e-4)


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4), np.uint8), np.zeros((3, 4, 4), np.uint8), np.zeros((4, 4, 3))]
)
def test_other_arrays_are_refused(image: Any) -> None:
    with pytest.raises(ValueError, match=r"\(H, W, 3\) uint8"):
        prepare_image(image, ImageFit(size=8, style=STYLES[Layout.OPENPI]))


@pytest.mark.parametrize("style", [Layout.OPENPI, Layout.LEROBOT, Layout.LEROBOT_V1])
@pytest.mark.parametrize("size", [(1, 5000), (5000, 1), (20, 4500)])
def test_a_picture_of_which_nothing_would_be_left_is_refused(
    style: Layout, size: tuple[int, int]
) -> None:
    fit = ImageFit(size=224, style=STYLES[style])
    with pytest.raises(ValueError, match=f"image is {size[0]}×{size[1]}: of so narrow"):
        prepare_image(noise_image(*size), fit)
    squashed = prepare_image(noise_image(*size), ImageFit(size=224, style=fit.style, squash=True))
    assert squashed.shape == (3, 224, 224)
