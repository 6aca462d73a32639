"""The insects of iNaturalist-2021, mini train set: 2,526 species with 50 images each."""

from __future__ import annotations

from pathlib import Path

from justright.data.catalog import DataSet
from justright.data.catalog.layouts import class_folders, first_present, images_in, missing, train_then_test
from justright.data.image_set import ImageSet
from justright.utils.errors import DataError

TRAIN, TEST = ("train_mini", "2021_train_mini"), ("val", "2021_valid")  # as in the archive, and as in torchvision
RANKS = ("number", "kingdom", "phylum", "class", "order", "family", "genus", "species")


def load(root: Path) -> ImageSet:
    """Labels count the folders of class Insecta in sorted order; genus, family and order are the super-categories.

    Validation images, if present, are the split "test".
    """
    part = first_present(root, *TRAIN).name
    taxa = {folder: _ranks(root / part / folder) for folder in class_folders(root / part)}
    insects = [folder for folder, ranks in taxa.items() if ranks["class"] == "Insecta"]
    if not insects:
        raise missing(root / part / "*_Insecta_*")
    train = [images_in(root, part, insects)]
    test = [images_in(root, name, insects) for name in TEST if (root / name).is_dir()][:1]
    names = [f"{taxa[folder]['genus']} {taxa[folder]['species']}" for folder in insects]
    groups = [[taxa[folder][rank] for folder in insects] for rank in ("genus", "family", "order")]
    return train_then_test(root, "inat-insects", train, test, names, groups)


def _ranks(folder: Path) -> dict[str, str]:
    parts = folder.name.split("_")
    if len(parts) != len(RANKS):
        raise DataError(f"{folder} is not a class folder", expected=f"a name made of {'_'.join(RANKS)}")
    return dict(zip(RANKS, parts, strict=True))


DATA_SET = DataSet(
    title="iNaturalist-2021-mini insects",
    loader=load,
    licence="non-commercial research and educational use, no redistribution",
    where="https://github.com/visipedia/inat_comp/tree/master/2021",
    layout="""\
    train_mini/00000_Animalia_Arthropoda_Insecta_.../*.jpg
    val/00000_Animalia_Arthropoda_Insecta_.../*.jpg (optional)""",
)
