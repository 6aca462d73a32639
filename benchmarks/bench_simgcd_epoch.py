"""One epoch of SimGCD from the view bank against the public recipe on the same batches.

The recipe: each step passes both views through all blocks, the frozen ones without gradients, the last one forward and
backward, then heads, losses and SGD. Its views are drawn beforehand and not timed, which favors it. Ours is
`discovery.loop.Training` with all that a run does around a step: batches, reading the bank, checks, metrics. Heads (as
wide as published), losses, optimizer and images are the same. The network is a ViT-B/14 with random parameters at 224
pixels. Building the bank is timed separately: it is done once for all epochs, selectors, methods and seeds.
Run: python benchmarks/bench_simgcd_epoch.py
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from pathlib import Path

import numpy as np
import torch
from measuring import blurred_noise, timed
from random_vit import random_vit

from justright.data import Split
from justright.data.objects import from_dataset
from justright.discovery.loop import Training
from justright.discovery.simgcd import Heads, SimGCDConfig, SimGCDLearner
from justright.discovery.training_data import TrainingData
from justright.features.bank import ViewBank

GOAL, TOLERANCE, N_CATEGORIES = 50, 1e-3, 200


def random_split(n: int) -> Split:
    """Images of smooth noise; the first half is labeled."""
    rng = np.random.default_rng(0)
    drawn = [np.asarray(blurred_noise(rng, (5, 6), (300, 260))) for _ in range(n)]
    images = from_dataset([(picture, row % 4) for row, picture in enumerate(drawn)], "blobs").with_ids()
    half = np.arange(n) < n // 2
    return Split(images.take(np.flatnonzero(half)), images.take(np.flatnonzero(~half)).without_labels())


def recipe_epoch(learner: SimGCDLearner, training: Training, drawn: list[torch.Tensor]) -> float:
    """The mean loss of an epoch of the recipe; `drawn` holds the views of each step."""
    model, total = learner.backbone.model, 0.0
    rows = learner.batches[0].rows(0)
    for step, images in enumerate(drawn):
        with torch.no_grad():
            tokens = model.blocks[:-1](model.norm_pre(model._pos_embed(model.patch_embed(images))))
        features = model.norm(model.blocks[-1](tokens))[:, 0]
        outputs = learner.heads(features.unflatten(0, (2, -1)))
        labels = torch.from_numpy(training.data.labels[rows[step]])
        parts = learner.objective([outputs], [labels], [torch.ones(len(labels))], 0)
        training.optimizer.zero_grad(set_to_none=True)
        parts.total.backward()
        training.optimizer.step()
        total += float(parts.total.detach())
    return total / len(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--precision", default="float32", choices=["float32", "float16"])
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    backbone = random_vit("dinov2_vitb14")
    data = TrainingData.of(random_split(options.images))
    config = SimGCDConfig(n_epochs=1, batch_size=options.batch, views=2)
    batches = data.batches(options.batch, 0)
    heads = Heads(backbone.dim, N_CATEGORIES, config, torch.Generator().manual_seed(0))
    ours = SimGCDLearner(backbone, config, batches, heads)
    plain = copy.deepcopy(ours)

    with tempfile.TemporaryDirectory() as folder:
        bank = ViewBank(backbone, data.images, Path(folder), n_views=2, precision=options.precision)
        build_seconds, _, bank = timed(bank.build)
        drawn = []
        for step, rows in enumerate(batches.rows(0)):
            views = bank.choose(0, step, len(rows)).ravel()
            drawn.append(bank.draw(bank.images, np.tile(rows, 2).tolist(), views.tolist(), 4))
        warm = copy.deepcopy(ours)  # the first step of a process pays for memory and caches
        Training(warm, {"weak": bank}, data, config, None, {}).run("")
        training = Training(ours, {"weak": bank}, data, config, Path(folder) / "run", {})
        bank_seconds = timed(lambda: training.run("")).wall
        loss = float((Path(folder) / "run" / "metrics.jsonl").read_text().split('"loss": ')[1].split(",")[0])
        unused = Training(plain, {"weak": bank}, data, config, None, {})
        before = {name: tensor.clone() for name, tensor in plain.changing().items()}
        recipe_seconds, _, recipe_loss = timed(lambda: recipe_epoch(plain, unused, drawn))

    ratio, apart = recipe_seconds / bank_seconds, abs(loss - recipe_loss)
    moved = max(float((tensor - before[name]).abs().max()) for name, tensor in plain.changing().items())
    own = ours.changing()
    parameters_apart = max(float((tensor - own[name]).abs().max()) for name, tensor in plain.changing().items())
    print(f"{options.images} images, {len(drawn)} steps of {options.batch} x 2 views, {options.precision}, "
          f"{options.threads} threads, {N_CATEGORIES} categories")  # fmt: skip
    print(f"  recipe {recipe_seconds:8.2f} s per epoch, loss {recipe_loss:.5f}")
    print(f"  bank   {bank_seconds:8.2f} s per epoch with its checkpoint, loss {loss:.5f}")
    print(f"  the bank was built once in {build_seconds:.1f} s")
    print(f"  parameters moved by up to {moved:.1e} and are {parameters_apart:.1e} apart at the end")
    is_met = ratio >= GOAL and (max(apart, parameters_apart / moved) <= TOLERANCE or options.precision != "float32")
    verdict = "met" if is_met else "MISSED"
    print(f"  {ratio:.0f} times (goal: at least {GOAL}), losses {apart:.1e} apart: {verdict}")


if __name__ == "__main__":
    main()
