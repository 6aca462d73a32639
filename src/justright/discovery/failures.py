"""A loss or gradient that is not finite: stop within the step, and say which term and which images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import nn

from justright.discovery.learner import Outputs
from justright.losses import LossParts
from justright.utils.errors import JustrightError

N_NAMED = 8


class DivergedError(JustrightError):
    """Training met a value that is not finite."""


def stop_if_not_finite(
    parts: LossParts, outputs: Sequence[Outputs], ids: Iterable[Sequence[str]], where: str, folder: Path | None
) -> None:
    """Raise before the step is taken, so that parameters and checkpoints stay as they are."""
    if bool(torch.isfinite(parts.total)):
        return
    ids = list(ids)  # read in this case only
    terms = [name for name, value in parts.terms.items() if not bool(torch.isfinite(value))] or ["loss"]
    bad = [image for each, names in zip(outputs, ids, strict=True) for image in _bad_images(each, names)]
    if bad:
        which = f"{len(bad)} images give such values: {', '.join(bad[:N_NAMED])}{', ...' if len(bad) > N_NAMED else ''}"
    else:
        every = [image for names in ids for image in names]
        which = f"what the network gives is finite for each image of the batch: {', '.join(every[:N_NAMED])}, ..."
    kept = folder is not None and any((folder / "checkpoint").glob("step-*"))
    last = f" The last good checkpoint is in {folder}." if kept else ""
    raise DivergedError(
        f"{' and '.join(terms)} is not finite in {where}; {which}.{last}",
        expected="finite losses",
        advice="a lower learning rate, precision float32, or leave these images out",
    )


def stop_if_gradient_not_finite(parameters: Iterable[nn.Parameter], where: str) -> None:
    """Raise before the step is taken: a finite loss may still have an infinite gradient, which ruins the network."""
    gradients = (p.grad for p in parameters if p.grad is not None)
    # a finite sum has finite terms, and costs a tenth; one that is not may come of large numbers
    if all(bool(torch.isfinite(each.sum())) or bool(torch.isfinite(each).all()) for each in gradients):
        return
    raise DivergedError(
        f"the gradient is not finite in {where}; the loss still was. Nothing was changed.",
        expected="finite gradients",
        advice="a lower learning rate, or precision float32",
    )


def _bad_images(outputs: Outputs, ids: Sequence[str]) -> list[str]:
    is_bad = torch.zeros(len(ids), dtype=torch.bool)
    for rows in outputs.values():
        is_bad |= ~torch.isfinite(rows.detach()).all(dim=-1).all(dim=0).cpu()
    return [image for image, bad in zip(ids, is_bad.tolist(), strict=True) if bad]
