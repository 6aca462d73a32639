"""Loaders of the published data sets, each from its official layout (data_sets.toml)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from justright.data.catalog.layouts import (
    LabeledPaths,
    assemble,
    check_present,
    class_folders,
    first_present,
    images_in,
    inside,
    missing,
    read_list,
    read_mat,
    train_then_test,
)
from justright.data.columns import levels_of
from justright.data.image_set import ImageSet
from justright.data.splits import legacy_generator
from justright.utils.errors import DataError

AIRCRAFT_PARTS = ("trainval", "test")
CAR_TREES = ("", "car_data", "car_data/car_data")  # where class folders are; the usual archive nests them twice
CAR_NAMES = ("devkit/cars_meta.mat", "cars_meta.mat", "names.csv")  # any of these gives the order of the classes
# the labels of the test images are a separate file, usually in the devkit or beside it
CARS_TEST = ("devkit/cars_test_annos_withlabels.mat", "cars_test_annos_withlabels.mat")
N_DOGS, DOG_LISTS = 120, ("train_list.mat", "test_list.mat")
N_IMAGENET = 1000
# SSB's names and the usual ones; the synset folders may also be directly in the tree
IMAGENET_21K = (("imagenet21k_train", "imagenet21k_val"), ("train", "val"))
INAT_TRAIN, INAT_TEST = ("train_mini", "2021_train_mini"), ("val", "2021_valid")  # as in the archive, in torchvision
TAXON = ("number", "kingdom", "phylum", "class", "order", "family", "genus", "species")


def load_cub(root: Path) -> ImageSet:
    """CUB-200-2011: labels are the official class numbers minus 1, as in SSB; rows are in the order of `images.txt`.

    The super-category is the last word of the English name (`Albatross`). The official files hold no taxonomy.
    """
    root = inside(root, "CUB_200_2011")
    files = ("classes", "images", "image_class_labels", "train_test_split")
    classes, images, number_of, is_train_of = (read_list(root / f"{name}.txt") for name in files)
    names, paths = list(classes.values()), list(images.values())
    check_present(root / "images", paths)
    label = np.array([int(number_of[image]) - 1 for image in images])
    is_train = np.array([is_train_of[image] == "1" for image in images])
    groups = [name.split(".")[-1].split("_")[-1] for name in names]
    return assemble(root / "images", "cub", paths, label, is_train, names, [groups])


def load_nabirds(root: Path) -> ImageSet:
    """NABirds: labels count the official class numbers that have images, in increasing order (555 in the complete set).

    Official numbers are nodes of the tree, and only some nodes have images. Rows are in the order of `images.txt`.
    Super-categories are the ancestors of a class without the root.
    """
    root = inside(root, "nabirds")
    files = ("images", "classes", "hierarchy", "image_class_labels", "train_test_split")
    images, classes, parents, node_of, is_train_of = (read_list(root / f"{name}.txt") for name in files)
    paths = list(images.values())
    check_present(root / "images", paths)
    nodes = sorted(set(node_of.values()), key=int)
    label_of = {node: label for label, node in enumerate(nodes)}
    label = np.array([label_of[node_of[image]] for image in images])
    is_train = np.array([is_train_of[image] == "1" for image in images])
    names = [classes[node] for node in nodes]
    groups = [[classes[ancestor] for ancestor in _ancestors(node, parents)] for node in nodes]
    return assemble(root / "images", "nabirds", paths, label, is_train, names, levels_of(groups))


def _ancestors(node: str, parents: dict[str, str]) -> list[str]:
    """The nodes above a node, coarse to fine, without the root."""
    chain: list[str] = []
    while node in parents and len(chain) < len(parents):  # a damaged list may lead back to itself
        node = parents[node]
        chain.insert(0, node)
    return chain[1:]


def load_aircraft(root: Path) -> ImageSet:
    """FGVC-Aircraft: labels are positions among the sorted variant names, as in SSB; rows in the order of the lists.

    The split "train" is the official trainval, which the GCD protocol takes; test follows it.
    """
    data = inside(root, "fgvc-aircraft-2013b") / "data"
    train, test = (read_list(data / f"images_variant_{part}.txt") for part in AIRCRAFT_PARTS)
    variant_of = train | test
    check_present(data / "images", [f"{image}.jpg" for image in variant_of])
    names = sorted(set(variant_of.values()))
    label_of = {name: label for label, name in enumerate(names)}
    superclasses = []
    for level in ("family", "manufacturer"):
        files = [data / f"images_{level}_{part}.txt" for part in AIRCRAFT_PARTS]
        if all(file.is_file() for file in files):
            group_of_image = read_list(files[0]) | read_list(files[1])
            group_of = {variant: group_of_image[image] for image, variant in variant_of.items()}
            superclasses.append([group_of[name] for name in names])
    parts = [
        ([f"{image}.jpg" for image in part], np.array([label_of[variant] for variant in part.values()]))
        for part in (train, test)
    ]
    return train_then_test(data / "images", "aircraft", parts[:1], parts[1:], names, superclasses)


def load_cars(root: Path) -> ImageSet:
    """Stanford Cars: labels are positions in `cars_meta.mat`, as in SSB, which are not alphabetical.

    Devkit: rows in the order of the annotations, train before test. Class folders: rows sorted by folder, then file.
    """
    names = _car_names(root)
    tree = next((root / tree for tree in CAR_TREES if (root / tree / "train").is_dir()), None)
    if tree is not None:
        label_of = {_car_key(name): label for label, name in enumerate(names)}
        train, test = (_cars_in_folders(tree, part, label_of) for part in ("train", "test"))
        return train_then_test(tree, "cars", [train], [test], names)
    train = _annotated_cars(root, "cars_train", root / "devkit/cars_train_annos.mat")
    test = _annotated_cars(root, "cars_test", first_present(root, *CARS_TEST))
    return train_then_test(root, "cars", [train], [test], names)


def _annotated_cars(root: Path, part: str, file: Path) -> LabeledPaths:
    (rows,) = read_mat(file, "annotations")
    files = [str(name) for name in rows["fname"]]
    check_present(root / part, files)
    return [f"{part}/{name}" for name in files], np.array([int(number) - 1 for number in rows["class"]])


def _cars_in_folders(base: Path, part: str, label_of: dict[str, int]) -> LabeledPaths:
    folders = class_folders(base / part)
    paths, positions = images_in(base, part, folders)
    return paths, np.array([label_of[_car_key(folder)] for folder in folders])[positions]


def _car_names(root: Path) -> list[str]:
    # this file is required: sorted folders would give other labels
    file = first_present(root, *CAR_NAMES)
    if file.suffix == ".mat":
        return [str(name) for name in read_mat(file, "class_names")[0]]
    return [line.strip().strip('"') for line in file.read_text(encoding="utf-8-sig").rstrip().split("\n")]


def _car_key(name: str) -> str:
    """A key that folder and class agree on: `Ram C/V` cannot be a folder and became `Ram C-V` or `Ram C_V`."""
    return re.sub(r"[^a-z0-9.]", "", name.casefold())


def load_dogs(root: Path) -> ImageSet:
    """Stanford Dogs: labels are the official class numbers minus 1; rows in the order of the lists, train first.

    The class name is the folder (`n02085620-Chihuahua`). Its synset number gives the super-categories, which are not
    in the official files.
    """
    images = first_present(root, "Images", "images")
    train, test = (_listed_dogs(first_present(root, name, f"lists/{name}")) for name in DOG_LISTS)
    check_present(images, train[0] + test[0])
    folders = [""] * N_DOGS
    for paths, labels in (train, test):
        for path, label in zip(paths, labels.tolist(), strict=True):
            folders[label] = path.partition("/")[0]
    levels = levels_of([kind_of(folder) for folder in folders])
    return train_then_test(images, "dogs", [train], [test], folders, superclasses=levels)


def _listed_dogs(file: Path) -> LabeledPaths:
    files, numbers = read_mat(file, "file_list", "labels")
    return [str(path) for path in files], np.array([int(number) - 1 for number in numbers])


@cache
def dog_kinds() -> dict[range, tuple[str, ...]]:
    """Kinds of dogs, coarse to fine, by ranges of synset numbers."""
    text = files(__package__).joinpath("dog_kinds.toml").read_text(encoding="utf-8")
    kinds = {}
    for numbers, kind in tomllib.loads(text).items():
        first, last = map(int, numbers.split("-"))
        kinds[range(first, last + 1)] = tuple(kind.split("/"))
    return kinds


def kind_of(folder: str) -> tuple[str, ...]:
    """The super-categories of a breed, coarse to fine; empty if it is directly under dog in WordNet."""
    number = folder.removeprefix("n").partition("-")[0]
    if not number.isdecimal():
        return ()
    return next((kind for numbers, kind in dog_kinds().items() if int(number) in numbers), ())


def load_herbarium(root: Path) -> ImageSet:
    """Herbarium-19: labels are ImageFolder's, folders sorted as strings. Validation images are the split "test"."""
    train, test = "small-train", "small-validation"
    folders = class_folders(root / train)
    if unknown := sorted(set(class_folders(root / test)) - set(folders)):
        raise DataError(f"{root / test / unknown[0]} is not a class of {train}", expected="the same classes in both")
    parts = [images_in(root, part, folders) for part in (train, test)]
    return train_then_test(root, "herbarium19", parts[:1], parts[1:], folders)


def imagenet100_classes() -> list[int]:
    """The 100 of 1000 classes of the GCD protocol, drawn by numpy's legacy generator with seed 0."""
    return sorted(legacy_generator(0).choice(N_IMAGENET, 100, replace=False).tolist())


def load_imagenet100(root: Path) -> ImageSet:
    """ImageNet-100: a hundred classes of a complete ImageNet-1k, labels 0 to 99 in the order of the synset ids."""
    folders = class_folders(root / "train")
    if len(folders) != N_IMAGENET:
        raise DataError(
            f"{root / 'train'} holds {len(folders):,} class folders",
            expected=f"all {N_IMAGENET:,} of ImageNet-1k: the hundred are chosen by their position among them",
        )
    synsets = [folders[position] for position in imagenet100_classes()]
    train, test = images_in(root, "train", synsets), images_in(root, "val", synsets)
    return train_then_test(root, "imagenet100", [train], [test], synsets)


def load_imagenet1k_ssb(root: Path) -> ImageSet:
    """ImageNet-1k-SSB: ImageNet-1k and synsets of ImageNet-21k-P. The class name is the synset id, as in SSB's split.

    Labels: the sorted synsets of ImageNet-1k, then the sorted others. Validation images, if present, are the split
    "test". A synset of ImageNet-1k that is in the 21k tree too is read from the 1k tree only.
    """
    tree_1k = first_present(root, "imagenet1k", "ImageNet-1K").name
    tree_21k = first_present(root, "imagenet21k", "ImageNet-21K").name
    old = class_folders(root / tree_1k / "train")
    pairs = [(f"{tree_21k}/{train}", f"{tree_21k}/{test}") for train, test in IMAGENET_21K]
    train_21k, test_21k = next((pair for pair in pairs if (root / pair[0]).is_dir()), (tree_21k, ""))
    new = sorted(set(class_folders(root / train_21k)) - set(old))
    if not new:
        raise missing(root / train_21k / "n*")
    train = [images_in(root, f"{tree_1k}/train", old), images_in(root, train_21k, new, len(old))]
    test = []
    for part, folders, first_label in ((f"{tree_1k}/val", old, 0), (test_21k, new, len(old))):
        if part and (root / part).is_dir():
            test.append(images_in(root, part, folders, first_label))
    return train_then_test(root, "imagenet1k-ssb", train, test, old + new)


def load_inat_insects(root: Path) -> ImageSet:
    """iNaturalist-2021-mini: labels count the folders of class Insecta in sorted order.

    Genus, family and order are the super-categories. Validation images, if present, are the split "test".
    """
    part = first_present(root, *INAT_TRAIN).name
    taxa = {folder: dict(zip(TAXON, folder.split("_"), strict=True)) for folder in class_folders(root / part)}
    insects = [folder for folder, ranks in taxa.items() if ranks["class"] == "Insecta"]
    if not insects:
        raise missing(root / part / "*_Insecta_*")
    train = [images_in(root, part, insects)]
    test = [images_in(root, name, insects) for name in INAT_TEST if (root / name).is_dir()][:1]
    names = [f"{taxa[folder]['genus']} {taxa[folder]['species']}" for folder in insects]
    groups = [[taxa[folder][rank] for folder in insects] for rank in ("genus", "family", "order")]
    return train_then_test(root, "inat-insects", train, test, names, groups)
