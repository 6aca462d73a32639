"""ImageNet-100, and ImageNet-1k with the classes that SSB adds from ImageNet-21k-P."""

from __future__ import annotations

from pathlib import Path

from justright.data.catalog import DataSet
from justright.data.catalog.layouts import class_folders, first_present, images_in, missing, train_then_test
from justright.data.image_set import ImageSet
from justright.data.splits import legacy_generator
from justright.utils.errors import DataError

N_CLASSES = 1000
LICENCE = "non-commercial research and educational use, after registration"
WHERE = "https://image-net.org/download.php"
# SSB's names and the usual ones; the synset folders may also be directly in the tree
PARTS_21K = (("imagenet21k_train", "imagenet21k_val"), ("train", "val"))


def chosen_classes() -> list[int]:
    """The 100 of 1000 classes of the GCD protocol, drawn by numpy's legacy generator with seed 0."""
    return sorted(legacy_generator(0).choice(N_CLASSES, 100, replace=False).tolist())


def load_100(root: Path) -> ImageSet:
    """A hundred classes of a complete ImageNet-1k, labels 0 to 99 in the order of the synset ids."""
    folders = class_folders(root / "train")
    if len(folders) != N_CLASSES:
        raise DataError(
            f"{root / 'train'} holds {len(folders):,} class folders",
            expected=f"all {N_CLASSES:,} of ImageNet-1k: the hundred are chosen by their position among them",
        )
    synsets = [folders[position] for position in chosen_classes()]
    train, test = images_in(root, "train", synsets), images_in(root, "val", synsets)
    return train_then_test(root, "imagenet100", [train], [test], synsets)


def load_1k_ssb(root: Path) -> ImageSet:
    """ImageNet-1k and synsets of ImageNet-21k-P. The class name is the synset id, as in SSB's split.

    Labels: the sorted synsets of ImageNet-1k, then the sorted others. Validation images, if present, are the split
    "test". A synset of ImageNet-1k that is in the 21k tree too is read from the 1k tree only.
    """
    tree_1k = first_present(root, "imagenet1k", "ImageNet-1K").name
    tree_21k = first_present(root, "imagenet21k", "ImageNet-21K").name
    old = class_folders(root / tree_1k / "train")
    pairs = [(f"{tree_21k}/{train}", f"{tree_21k}/{test}") for train, test in PARTS_21K]
    train_21k, test_21k = next((pair for pair in pairs if (root / pair[0]).is_dir()), (tree_21k, ""))
    new = sorted(set(class_folders(root / train_21k)) - set(old))
    if not new:
        raise missing(root / train_21k / "n*")
    train = [images_in(root, f"{tree_1k}/train", old), images_in(root, train_21k, new, len(old))]
    parts = [(f"{tree_1k}/val", old, 0), (test_21k, new, len(old))]
    test = [images_in(root, *part) for part in parts if part[0] and (root / part[0]).is_dir()]
    return train_then_test(root, "imagenet1k-ssb", train, test, old + new)


IMAGENET100 = DataSet(
    title="ImageNet-100",
    loader=load_100,
    licence=LICENCE,
    where=WHERE,
    layout="""\
    train/n01440764/*.JPEG (all 1,000 synsets)
    val/n01440764/*.JPEG""",
)

IMAGENET1K_SSB = DataSet(
    title="ImageNet-1k-SSB",
    loader=load_1k_ssb,
    licence=LICENCE,
    where=WHERE,
    layout="""\
    imagenet1k/ (or ImageNet-1K/)
      train/n01440764/*.JPEG
      val/n01440764/*.JPEG (optional)
    imagenet21k/ (or ImageNet-21K/)
      n00005787/*.JPEG (or imagenet21k_train/n00005787/*.JPEG and imagenet21k_val/n00005787/*.JPEG)""",
)
