"""One affine map of colors against the steps it stands for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from justright.data.color_jitter import jitter
from justright.data.views import (
    recolored,
)


def jitter_as_steps(image, brightness, contrast, saturation, hue, order):
    """The four changes one after the other, pixel by pixel, without the one map."""
    gray = np.array([0.299, 0.587, 0.114])
    for step in order:
        if step == 0:
            image = brightness * image
        elif step == 1:
            image = contrast * image + (1 - contrast) * np.tensordot(gray, image, 1).mean()
        elif step == 2:
            image = saturation * image + (1 - saturation) * np.tensordot(gray, image, 1)
        else:
            y = np.tensordot(gray, image, 1)
            i = np.tensordot([0.5959, -0.2746, -0.3213], image, 1)
            q = np.tensordot([0.2115, -0.5227, 0.3112], image, 1)
            turned = (i + 1j * q) * np.exp(2j * np.pi * hue)
            back = np.linalg.inv(np.array([gray, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]]))
            image = np.tensordot(back, np.stack([y, turned.real, turned.imag]), 1)
    return np.clip(image, 0, 1)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_the_one_color_map_does_what_its_steps_do(order):
    image = np.random.default_rng(0).uniform(0, 1, (3, 9, 7))
    color = jitter(image.mean(axis=(1, 2)), 1.2, 0.7, 1.3, 0.08, order)
    given = recolored(torch.from_numpy(image), color)
    np.testing.assert_allclose(given, jitter_as_steps(image, 1.2, 0.7, 1.3, 0.08, order), atol=1e-12)
