"""Herbarium-19 and the insects of iNaturalist-2021: species of plants and animals, one folder each."""

from __future__ import annotations

from pathlib import Path

from justright.data.catalog import DataSet
from justright.data.catalog.layouts import class_folders, first_present, images_in, missing, train_then_test
from justright.data.image_set import ImageSet
from justright.errors import DataError

RANKS = ("number", "kingdom", "phylum", "class", "order", "family", "genus", "species")


def load_herbarium(root: Path) -> ImageSet:
    """Labels are ImageFolder's: folders sorted as strings, so `10` comes before `2`. Validation is called "test"."""
    first, second = "small-train", "small-validation"
    folders = class_folders(root / first)
    if unknown := sorted(set(class_folders(root / second)) - set(folders)):
        raise DataError(f"{root / second / unknown[0]} is no class of {first}", expected="the same classes in both")
    train, test = images_in(root, first, folders), images_in(root, second, folders)
    return train_then_test(root, "herbarium19", [train], [test], folders)


def load_insects(root: Path) -> ImageSet:
    """Labels count the folders of class Insecta in sorted order; genus, family and order are the super-categories.

    Validation images, where they are there, are called "test".
    """
    part = first_present(root, "train_mini", "2021_train_mini").name  # as in the archive, and as torchvision has it
    taxa = {folder: _ranks(root / part / folder) for folder in class_folders(root / part)}
    insects = [folder for folder, ranks in taxa.items() if ranks["class"] == "Insecta"]
    if not insects:
        raise missing(root / part / "*_Insecta_*")
    train = [images_in(root, part, insects)]
    test = [images_in(root, name, insects) for name in ("val", "2021_valid") if (root / name).is_dir()][:1]
    names = [f"{taxa[folder]['genus']} {taxa[folder]['species']}" for folder in insects]
    groups = [[taxa[folder][rank] for folder in insects] for rank in ("genus", "family", "order")]
    return train_then_test(root, "inat-insects", train, test, names, groups)


def _ranks(folder: Path) -> dict[str, str]:
    parts = folder.name.split("_")
    if len(parts) != len(RANKS):
        raise DataError(f"{folder} is no class folder", expected=f"a name made of {'_'.join(RANKS)}")
    return dict(zip(RANKS, parts, strict=True))


HERBARIUM = DataSet(
    title="Herbarium-19",
    loader=load_herbarium,
    licence="rules of the competition; see the site",
    where="https://www.kaggle.com/c/herbarium-2019-fgvc6",
    layout="""\
    small-train/0/*.jpg
    small-validation/0/*.jpg""",
)

INAT_INSECTS = DataSet(
    title="iNaturalist-2021-mini insects",
    loader=load_insects,
    licence="non-commercial research and educational use, no redistribution",
    where="https://github.com/visipedia/inat_comp/tree/master/2021",
    layout="""\
    train_mini/00000_Animalia_Arthropoda_Insecta_.../*.jpg
    val/00000_Animalia_Arthropoda_Insecta_.../*.jpg (if there)""",
)
