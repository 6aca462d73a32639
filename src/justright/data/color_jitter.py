"""Random color changes as one affine map of RGB, so that an image is touched once however many of them apply.

Brightness, contrast, saturation and grayscale are affine in the colors; contrast needs the image's mean gray,
which an affine map carries along. Hue is a rotation about the gray axis (in YIQ), where the usual code walks through
HSV. Values are clamped once, at the end, not after each step. Both choices are in docs/decisions.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from justright.utils.types import Array

GRAY = np.array([0.299, 0.587, 0.114])  # luma of ITU-R 601, as in Pillow
TO_YIQ = np.array([GRAY, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
FROM_YIQ = np.linalg.inv(TO_YIQ)
TO_GRAY = np.tile(GRAY, (3, 1))


@dataclass(frozen=True)
class ColorMap:
    """x -> matrix x + shift, for colors on [0, 1]."""

    matrix: Float[Array, "3 3"]
    shift: Float[Array, "3"]

    def then(self, matrix: Float[Array, "3 3"], shift: float = 0.0) -> ColorMap:
        """This map, then another one."""
        return ColorMap(matrix @ self.matrix, matrix @ self.shift + shift)


IDENTITY = ColorMap(np.eye(3), np.zeros(3))


def jitter(
    mean: Float[Array, "3"], brightness: float, contrast: float, saturation: float, hue: float, order: list[int]
) -> ColorMap:
    """Four changes in the given order (0 brightness, 1 contrast, 2 saturation, 3 hue).

    mean: the image's mean color. The first three are factors, 1 changes nothing; hue is a share of the circle.
    """
    color = IDENTITY
    for step in order:
        if step == 0:
            color = color.then(brightness * np.eye(3))
        elif step == 1:  # towards or away from the mean gray of the image as it is by now
            gray = float(GRAY @ (color.matrix @ mean + color.shift))
            color = color.then(contrast * np.eye(3), (1 - contrast) * gray)
        elif step == 2:
            color = color.then(saturation * np.eye(3) + (1 - saturation) * TO_GRAY)
        else:
            cos, sin = np.cos(2 * np.pi * hue), np.sin(2 * np.pi * hue)
            color = color.then(FROM_YIQ @ np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]]) @ TO_YIQ)
    return color
