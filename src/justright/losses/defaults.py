"""The constants of the losses, each said once, with where it comes from."""

from __future__ import annotations

SUPERVISED_SHARE = 0.35
"""Lambda in the scripts of GCD, XCon and SimGCD; muGCD reports the same."""

TEMPERATURE_UNSUP = 1.0
"""Tau_u in the public code of GCD, XCon and SimGCD; the paper gives no number."""

TEMPERATURE_SUP = 0.07
"""Tau_s of the contrastive loss, in the same code."""

TEMPERATURE_STUDENT = 0.1
"""Of the classifier, in SimGCD's code; the paper prints tau_s here too, yet the two were never equal."""

ENTROPY_SCALE = 2.0
"""Epsilon in SimGCD's script for CUB; 1 for Cars, Aircraft, Herbarium and ImageNet, 4 for CIFAR-100."""
