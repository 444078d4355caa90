from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PIL")

from policies.image import resized_square


@pytest.mark.parametrize("size", [(480, 640), (512, 640), (256, 320)])
def test_shrinking_by_areas_is_opencvs_to_within_a_level(size: tuple[int, int]) -> None:
    cv2 = pytest.importorskip("cv2")
    image = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    theirs = cv2.resize(image, (224, 224), interpolation=cv2.INTER_AREA).astype(int)
    difference = np.abs(resized_square(image, 224).astype(int) - theirs)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.005


def test_a_picture_that_is_nowhere_larger_passes_unchanged() -> None:
    image = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    np.testing.assert_array_equal(resized_square(image, 7), image)


def test_anything_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(H, W, 3\) uint8 RGB, got shape \(3, 8, 8\)"):
        resized_square(np.zeros((3, 8, 8), np.uint8), 4)
