"""Stanford Dogs: 120 breeds, images from ImageNet."""

from __future__ import annotations

from pathlib import Path

from justright.data.catalog import DataSet, layouts
from justright.data.columns import levels_of
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError

N_CLASSES = 120

KINDS = (
    (2085620, 2087046, ("toy dog",)),
    (2087394, 2087394, ("hunting dog",)),
    (2088094, 2092339, ("hunting dog", "hound")),
    (2093256, 2098413, ("hunting dog", "terrier")),
    (2099267, 2099849, ("hunting dog", "sporting dog", "retriever")),
    (2100236, 2100583, ("hunting dog", "sporting dog", "pointer")),
    (2100735, 2101006, ("hunting dog", "sporting dog", "setter")),
    (2101388, 2102973, ("hunting dog", "sporting dog", "spaniel")),
    (2104029, 2104365, ("working dog", "watchdog")),
    (2105056, 2106662, ("working dog", "shepherd dog")),
    (2107142, 2107312, ("working dog", "watchdog", "pinscher")),
    (2107574, 2108000, ("working dog", "Sennenhund")),
    (2108089, 2108089, ("working dog",)),
    (2108422, 2108551, ("working dog", "mastiff")),
    (2108915, 2108915, ("working dog", "bulldog")),
    (2109047, 2109525, ("working dog",)),
    (2109961, 2110185, ("working dog", "sled dog")),
    (2110627, 2110627, ("working dog", "watchdog", "pinscher")),
    (2111889, 2112350, ("spitz",)),
    (2112706, 2112706, ("griffon",)),
    (2113023, 2113186, ("corgi",)),
    (2113624, 2113799, ("poodle",)),
    (2115641, 2116738, ("wild dog",)),
)
"""Kinds of dogs in WordNet, coarse to fine, by ranges of synset numbers, which are consecutive within a kind.
Breeds in no range (dalmatian, pug, Newfoundland, ...) are directly under dog."""


def load(root: Path) -> ImageSet:
    """Labels are the official class numbers minus 1; rows are in the order of the lists, train before test.

    The class name is the folder (`n02085620-Chihuahua`). Its synset number gives the super-categories, which are not
    in the official files.
    """
    images = layouts.first_present(root, "Images", "images")
    names: dict[int, str] = {}
    train = _read_list(root, "train_list.mat", names)
    test = _read_list(root, "test_list.mat", names)
    layouts.check_present(images, train[0] + test[0])
    folders = [names.get(label, "") for label in range(N_CLASSES)]
    levels = levels_of([kind_of(folder) for folder in folders])
    return layouts.train_then_test(images, "dogs", [train], [test], folders, superclasses=levels)


def kind_of(folder: str) -> tuple[str, ...]:
    """The super-categories of a breed, coarse to fine; empty if it is directly under dog in WordNet."""
    number = folder.removeprefix("n").partition("-")[0]
    if not number.isdecimal():
        return ()
    return next((kind for first, last, kind in KINDS if first <= int(number) <= last), ())


def _read_list(root: Path, name: str, names: dict[int, str]) -> layouts.LabeledPaths:
    """Files and labels of one list; adds the folder of each new class to `names`."""
    file = layouts.first_present(root, name, f"lists/{name}")
    files, numbers = layouts.read_mat(file, "file_list", "labels")
    if len(files) != len(numbers):
        raise DataError(f"{file}: {len(files)} files and {len(numbers)} labels", expected="one label per file")
    labels = layouts.whole_numbers(numbers, 1, N_CLASSES, lambda row: f"{file}, row {row + 1}") - 1
    paths = [str(path) for path in files]
    for row, (path, label) in enumerate(zip(paths, labels.tolist(), strict=True), start=1):
        folder = path.partition("/")[0]
        if names.setdefault(label, folder) != folder:
            problem = f"{file}, row {row}: class {label + 1} is {folder} here and {names[label]} before"
            raise DataError(problem, expected="one folder per class")
    return paths, labels


DATA_SET = DataSet(
    title="Stanford Dogs",
    loader=load,
    licence="images from ImageNet, under its terms (non-commercial research); see the site",
    where="http://vision.stanford.edu/aditya86/ImageNetDogs/",
    layout="""\
    train_list.mat, test_list.mat (or both in lists/)
    Images/n02085620-Chihuahua/*.jpg""",
)
