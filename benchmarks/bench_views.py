"""Time weak and strong views, per image and thread: our torch code, torchvision v2 on tensors, torchvision on PIL.

kornia and albumentations are included if they are installed. All start from the same decoded 500 x 375 image and return
a normalized float tensor of 224 x 224. Run: python benchmarks/bench_views.py
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from measuring import blurred_noise, in_turns
from PIL import Image

from justright.data.transforms import IMAGENET_MEAN as MEAN
from justright.data.transforms import IMAGENET_STD as STD
from justright.data.transforms import TRANSFORMS, ImageRecipe, draw_view
from justright.features.guarded_timm import timm

assert timm  # imported first: it makes torchvision importable beside CPU torch


def photo() -> np.ndarray:
    """Smooth colors with noise, as in a photo."""
    rng = np.random.default_rng(0)
    smooth = np.asarray(blurred_noise(rng, (12, 16), (500, 375)), dtype=np.int16)
    return np.clip(smooth + rng.integers(-20, 21, smooth.shape), 0, 255).astype(np.uint8)


def by_hand(kind: str, pixels: np.ndarray) -> Callable[[], Any]:
    numbers, recipe = iter(range(1 << 30)), ImageRecipe()
    return lambda: draw_view(pixels, TRANSFORMS[kind], recipe, seed=0, image_id="a", view=next(numbers))


def torchvision_v2(kind: str, pixels: np.ndarray, on_pil: bool = False, hue: float = 0.1) -> Callable[[], Any]:
    from torchvision.transforms import InterpolationMode, v2

    bicubic = InterpolationMode.BICUBIC
    weak = [v2.Resize(256, bicubic, antialias=True), v2.RandomCrop(224), v2.RandomHorizontalFlip()]
    strong = [
        v2.RandomResizedCrop(224, (0.3, 1.0), interpolation=bicubic, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, hue)], 0.8),
        v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(13, (0.1, 2.0))], 0.5),
    ]
    to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    transform = v2.Compose((weak if kind == "weak" else strong) + to_float)
    start = Image.fromarray(pixels) if on_pil else torch.from_numpy(pixels).permute(2, 0, 1)
    return lambda: transform(start)


def kornia(kind: str, pixels: np.ndarray) -> Callable[[], Any]:
    import kornia.augmentation as k

    weak = [k.Resize(256, side="short", resample="bicubic", antialias=True), k.RandomCrop((224, 224))]
    strong = [
        k.RandomResizedCrop((224, 224), (0.3, 1.0), resample="bicubic"),
        k.ColorJitter(0.4, 0.4, 0.2, 0.1, p=0.8),
        k.RandomGrayscale(p=0.2),
        k.RandomGaussianBlur((13, 13), (0.1, 2.0), p=0.5),
    ]
    last = [k.RandomHorizontalFlip(), k.Normalize(torch.tensor(MEAN), torch.tensor(STD))]
    transform = torch.nn.Sequential(*(weak if kind == "weak" else strong), *last)
    start = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    return lambda: transform(start.float() / 255)


def albumentations(kind: str, pixels: np.ndarray) -> Callable[[], Any]:
    import albumentations as a
    from albumentations.pytorch import ToTensorV2

    cubic = 2  # cv2.INTER_CUBIC, which does not antialias
    weak = [a.SmallestMaxSize(256, interpolation=cubic), a.RandomCrop(224, 224)]
    strong = [
        a.RandomResizedCrop((224, 224), scale=(0.3, 1.0), interpolation=cubic),
        a.ColorJitter(0.4, 0.4, 0.2, 0.1, p=0.8),
        a.ToGray(p=0.2),
        a.GaussianBlur(blur_limit=(13, 13), sigma_limit=(0.1, 2.0), p=0.5),
    ]
    last = [a.HorizontalFlip(), a.Normalize(MEAN, STD), ToTensorV2()]
    transform = a.Compose((weak if kind == "weak" else strong) + last)
    return lambda: transform(image=pixels)["image"]


LIBRARIES: dict[str, Callable[[str, np.ndarray], Callable[[], Any]]] = {
    "torch by hand (ours)": by_hand,
    "torchvision v2, tensor": torchvision_v2,
    "torchvision v2, no hue": lambda kind, pixels: torchvision_v2(kind, pixels, hue=0.0),
    "torchvision v2, PIL": lambda kind, pixels: torchvision_v2(kind, pixels, on_pil=True),
    "kornia": kornia,
    "albumentations": albumentations,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=60, help="per round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pixels = photo()
    installed = {
        name: make for name, make in LIBRARIES.items() if name not in ("kornia", "albumentations") or find_spec(name)
    }
    for name in LIBRARIES.keys() - installed.keys():
        print(f"{name} is not installed: left out")
    print(f"ms per view, one thread, median of {options.rounds} rounds of {options.views}")
    for kind in TRANSFORMS:
        draws = {name: make(kind, pixels) for name, make in installed.items()}
        runs = in_turns(draws, options.rounds, n_warmup=1, n_times=options.views)
        ms = {name: 1e3 * statistics.median(each.wall for each in own) / options.views for name, own in runs.items()}
        ours = ms["torch by hand (ours)"]
        for name, value in ms.items():
            print(f"  {kind:6s} {name:24s} {value:7.2f}   {value / ours:4.1f} times ours")


if __name__ == "__main__":
    main()
