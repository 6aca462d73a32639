"""Stanford Dogs: 120 breeds, images from ImageNet."""

from __future__ import annotations

from pathlib import Path

from justright.data.catalog.base import (
    Benchmark,
    Part,
    check_present,
    first_folder,
    read_mat,
    train_then_test,
    whole_numbers,
)
from justright.data.image_set import ImageSet
from justright.errors import DataError

N_CLASSES = 120


def load(root: Path) -> ImageSet:
    """Labels are the official class numbers minus 1; rows in the order of the lists, train before test.

    A class is called as its folder is (`n02085620-Chihuahua`). The official files hold no hierarchy.
    """
    images = root / first_folder(root, "Images", "images")
    names: dict[int, str] = {}
    train = _read_list(root, "train_list.mat", names)
    test = _read_list(root, "test_list.mat", names)
    check_present(images, train[0] + test[0])
    return train_then_test(images, "dogs", [train], [test], [names.get(label, "") for label in range(N_CLASSES)])


def _read_list(root: Path, name: str, names: dict[int, str]) -> Part:
    """Files and labels of one list; the folder of each new class is added to `names`."""
    file = next((root / place for place in (name, f"lists/{name}") if (root / place).is_file()), root / name)
    files, numbers = read_mat(file, "file_list", "labels")
    if len(files) != len(numbers):
        raise DataError(f"{file}: {len(files)} files and {len(numbers)} labels", expected="one label a file")
    labels = whole_numbers(numbers, 1, N_CLASSES, lambda row: f"{file}, row {row + 1}") - 1
    paths = [str(path) for path in files]
    for row, (path, label) in enumerate(zip(paths, labels.tolist(), strict=True), start=1):
        folder = path.partition("/")[0]
        if names.setdefault(label, folder) != folder:
            raise DataError(
                f"{file}, row {row}: class {label + 1} is {folder} here and {names[label]} before",
                expected="one folder a class",
            )
    return paths, labels


BENCHMARK = Benchmark(
    name="dogs",
    title="Stanford Dogs",
    loader=load,
    licence="images from ImageNet, under its terms (non-commercial research); see the site",
    where="http://vision.stanford.edu/aditya86/ImageNetDogs/",
    layout="""\
    train_list.mat, test_list.mat (or both in lists/)
    Images/n02085620-Chihuahua/*.jpg""",
)
