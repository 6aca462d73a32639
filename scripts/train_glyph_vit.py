"""Train the embedded backbone on drawn characters, without labels: python scripts/train_glyph_vit.py

Two random views of each drawn image are pulled together and away from the other images of the batch (the loss of
Eq. 1, symmetric). Labels are never read: the characters of `TRAINED_ON` are drawn, and the loss sees pixels.
An interrupted training resumes from the last checkpoint. About ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from justright.data.catalog.glyphs import GLYPH_CLASSES, classes_of, draw_glyph
from justright.features.embedded import ARCHITECTURE, RECIPE, TRAINED_ON
from justright.features.guarded_timm import VisionTransformer
from justright.utils.files import replacing
from justright.utils.seeding import generator

OUT = Path("src/justright/features/glyph_vit.safetensors")
TEMPERATURE = 0.2
PATCH_DROP = 0.2  # share of the patches of a view that are left out at random, as occlusion


def vit(**more: float) -> nn.Module:
    """The architecture of the embedded backbone with fresh parameters."""
    return VisionTransformer(num_classes=0, **ARCHITECTURE, **more)


def draw_images(per_class: int, seed: int, work: Path) -> np.ndarray:
    """The training images, `per_class` of every character of the training scripts; drawn once and stored."""
    file = work / f"images-{seed}-{per_class}.npy"
    if not file.exists():
        labels = np.repeat([glyph.label for glyph in classes_of(*TRAINED_ON)], per_class)
        print(f"drawing {len(labels):,} images", flush=True)
        images = np.stack([draw_glyph(seed + 1, label, i % per_class) for i, label in enumerate(labels.tolist())])
        with replacing(file) as temporary, temporary.open("wb") as out:
            np.save(out, images)
    return np.load(file, mmap_mode="r")


def batch_of(images: np.ndarray, step: int, size: int, seed: int) -> Tensor:
    """The images of one step, drawn at random."""
    rows = generator(seed, "train", step).choice(len(images), size, replace=False)
    return torch.from_numpy(images[np.sort(rows)]).permute(0, 3, 1, 2).float() / 255


def view(images: Tensor, rng: torch.Generator) -> Tensor:
    """A random view, normalized: rotated, sheared, scaled, moved, with other colors and noise."""
    n = len(images)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return torch.rand(n, *shape, generator=rng) * (high - low) + low

    turn, shear = uniform(-0.3, 0.3), uniform(-0.25, 0.25)
    wide, tall = torch.exp(uniform(-0.3, 0.3)), torch.exp(uniform(-0.3, 0.3))
    cos, sin = torch.cos(turn), torch.sin(turn)
    rows = torch.stack([cos * wide, (shear - sin) * tall, sin * wide, cos * tall], 1).view(n, 2, 2)
    grid = nn.functional.affine_grid(
        torch.cat([rows, uniform(-0.2, 0.2, 2, 1)], 2), list(images.shape), align_corners=False
    )
    # outside of the image is the color of the paper
    paper = images.flatten(2).median(dim=2).values[:, :, None, None]
    moved = nn.functional.grid_sample(images - paper, grid, align_corners=False) + paper
    colored = (moved - 0.5) * uniform(0.7, 1.3, 3, 1, 1) + 0.5 + uniform(-0.1, 0.1, 3, 1, 1)
    noisy = colored + torch.randn(colored.shape, generator=rng) * uniform(0, 0.08, 1, 1, 1)
    return (noisy - RECIPE.mean[0]) / RECIPE.std[0]


def info_nce(z1: Tensor, z2: Tensor) -> Tensor:
    """Eq. 1 in its symmetric form over both views."""
    z = nn.functional.normalize(torch.cat([z1, z2]), dim=1)
    logits = (z @ z.T / TEMPERATURE).fill_diagonal_(-torch.inf)
    n = len(z1)
    return nn.functional.cross_entropy(logits, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


def train(images: np.ndarray, steps: int, batch: int, rate: float, seed: int, work: Path) -> nn.Module:
    """Train the network; `work` has the checkpoint."""
    torch.manual_seed(seed)
    model, dim = vit(patch_drop_rate=PATCH_DROP), ARCHITECTURE["embed_dim"]
    head = nn.Sequential(nn.Linear(dim, 512), nn.BatchNorm1d(512), nn.GELU(), nn.Linear(512, 128))
    both = nn.ModuleDict({"model": model, "head": head})
    decayed = [p for p in both.parameters() if p.ndim > 1]
    plain = [p for p in both.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}])
    first, state = 0, work / "state.pt"
    if state.exists():
        saved = torch.load(state, weights_only=True)
        both.load_state_dict(saved["both"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
        print(f"resumed at step {first}")
    started = time.time()
    for step in range(first, steps):
        warm = min(1.0, (step + 1) / 100)
        for group in optimizer.param_groups:
            group["lr"] = rate * warm * (0.01 + 0.99 * (1 + math.cos(math.pi * step / steps)) / 2)
        chosen = batch_of(images, step, batch, seed)
        rng = torch.Generator().manual_seed(seed * 1_000_003 + step)
        torch.manual_seed(seed * 1_000_003 + step)  # for the patches that are left out
        z1, z2 = head(model(torch.cat([view(chosen, rng), view(chosen, rng)]))).chunk(2)
        loss = info_nce(z1, z2)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(both.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 25 == 0:
            seconds = (time.time() - started) / (step + 1 - first)
            left = seconds * (steps - step - 1) / 60
            print(
                f"step {step + 1}/{steps}  loss {loss.item():.3f}  {seconds:.2f} s per step, {left:.0f} min left",
                flush=True,
            )
        if (step + 1) % 100 == 0:
            state_now = {"both": both.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
            with replacing(state) as temporary:
                torch.save(state_now, temporary)
    return model


def main() -> None:
    """Train and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--per-class", type=int, default=50)
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("runs/glyph_vit"))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    images = draw_images(options.per_class, options.seed, options.work)
    model = train(images, options.steps, options.batch, options.rate, options.seed, options.work)
    names = [glyph.name for glyph in GLYPH_CLASSES if glyph.script in TRAINED_ON]
    # half precision takes half the space, and the features need no more digits
    tensors = {name: t.half() if t.is_floating_point() else t for name, t in model.state_dict().items()}
    with replacing(options.out) as temporary:
        save_file(tensors, temporary, metadata={"trained_on": json.dumps(names), "steps": str(options.steps)})
    print(f"written to {options.out}, {options.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
