"""A training step from the view bank against the public recipe's step, same batch, same views, same loss.

The recipe: all blocks forward, the frozen ones without gradients, the last one forward and backward, as in public code.
Its views are drawn beforehand, so that only the network is timed. Ours: read the bank from disk, the class-token-only
last block, backward. Both compute the contrastive loss of two views and update the last block with SGD. The network is
a ViT-B/14 with random parameters at 224 pixels.
Run: python benchmarks/bench_bank_step.py
"""

from __future__ import annotations

import argparse
import copy
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from measuring import Timing, blurred_noise, timed
from random_vit import random_vit
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from justright.data.objects import from_dataset
from justright.features.bank import ViewBank

GOAL, TOLERANCE = 80, 1e-4


def contrast(features: Tensor) -> Tensor:
    """InfoNCE of two views stacked along the batch; sharp, because features of a random network are much alike."""
    z = normalize(features - features.mean(dim=0), dim=-1)
    n = len(z) // 2
    logits = (z @ z.T / 0.1).masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    return cross_entropy(logits, torch.arange(len(z)).roll(n))


def recipe_features(model: torch.nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        x = model.blocks[:-1](model.norm_pre(model._pos_embed(model.patch_embed(images))))
    return model.norm(model.blocks[-1](x))[:, 0]


def sgd(model: torch.nn.Module) -> torch.optim.Optimizer:
    tuned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.SGD(tuned, lr=0.1, momentum=0.9, weight_decay=5e-5)


def step(features: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> float:
    loss = contrast(features())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=16, help="images a batch, two views each")
    parser.add_argument("--rounds", type=int, default=2, help="recipe steps; the bank takes ten for each")
    # one thread for both sides by default: on a shared machine threads that wait for each other drown short steps
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="float32", choices=["float32", "float16"])
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    backbone = random_vit("dinov2_vitb14")
    plain = copy.deepcopy(backbone.model)
    rng = np.random.default_rng(0)
    pictures = [np.asarray(blurred_noise(rng, (5, 6), (500, 375))) for _ in range(options.images)]
    images = from_dataset([(picture, 0) for picture in pictures], "blobs").with_ids()
    rows, views = np.tile(np.arange(options.images), 2), np.repeat([0, 1], options.images)

    with tempfile.TemporaryDirectory() as folder:
        bank = ViewBank(backbone, images, Path(folder), n_views=2, precision=options.precision)
        built, _, bank = timed(bank.build)
        drawn = bank.draw(bank.images, rows.tolist(), views.tolist(), options.threads)
        # a third copy takes more steps, only to be timed: a single short one says little on a busy machine
        quick = copy.deepcopy(backbone)
        sides = {
            "recipe": (plain, lambda: recipe_features(plain, drawn), 1),
            "bank": (backbone, lambda: backbone.suffix(bank.batch(rows, views)), 1),
            "bank, timed": (quick, lambda: quick.suffix(bank.batch(rows, views)), 10),
        }
        optimizers = {name: sgd(side[0]) for name, side in sides.items()}
        runs: dict[str, list[Timing]] = {name: [] for name in sides}
        for _ in range(options.rounds):  # in turns, so that a busy machine is busy for both
            for name, (_, features, n_steps) in sides.items():
                runs[name] += [timed(partial(step, features, optimizers[name])) for _ in range(n_steps)]

    medians = {name: statistics.median(each.clock for each in own) for name, own in runs.items()}
    losses = {name: [each.value for each in own] for name, own in runs.items()}
    ratio = medians["recipe"] / medians["bank, timed"]
    apart = max(abs(a - b) for a, b in zip(losses["recipe"], losses["bank"], strict=True))
    print(f"{options.images} images x 2 views, {options.precision}, {torch.get_num_threads()} threads, "
          f"median of {options.rounds} and {10 * options.rounds} steps")  # fmt: skip
    print(f"  recipe {medians['recipe'] * 1e3:10.1f} ms a step")
    print(f"  bank   {medians['bank, timed'] * 1e3:10.1f} ms a step")
    n_bytes = bank.layout.itemsize * len(bank.images) * bank.n_views
    print(f"  the bank was built once in {built:.1f} s and takes {n_bytes / 1e6:.0f} MB")
    print(f"  losses {[round(loss, 5) for loss in losses['bank']]}, at most {apart:.1e} apart from the recipe's")
    is_met = ratio >= GOAL and (apart <= TOLERANCE or options.precision != "float32")
    print(
        f"  {ratio:.0f} times (goal: at least {GOAL}, losses within {TOLERANCE:.0e}): {'met' if is_met else 'MISSED'}"
    )


if __name__ == "__main__":
    main()
