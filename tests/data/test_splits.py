from __future__ import annotations

import numpy as np
import pytest

from justright.data import ClassSplit, gcd_split, open_folder, open_images, read_class_split
from justright.utils.errors import DataError
from justright.utils.types import UNLABELED


@pytest.fixture
def photos(make_tree):
    return open_folder(make_tree({"a": 6, "b": 5, "c": 4, "d": 3}))


CLASSES = ClassSplit((0, 2), {"Similar": (1,), "Dissimilar": (3,)})


def test_labeled_is_half_of_the_old_images_drawn_by_the_legacy_generator(photos):
    split, _ = gcd_split(photos, CLASSES)
    of_old = [path for path, label in zip(photos.paths, photos.labels, strict=True) if label in (0, 2)]
    drawn = np.random.RandomState(0).choice(range(len(of_old)), replace=False, size=int(0.5 * len(of_old)))
    assert split.labeled.paths == [of_old[i] for i in sorted(drawn)]
    assert set(split.labeled.labels.tolist()) <= {0, 2}


def test_unlabeled_is_everything_else_in_order_and_without_labels(photos):
    split, truth = gcd_split(photos, CLASSES)
    assert split.unlabeled.paths == [path for path in photos.paths if path not in split.labeled.paths]
    assert set(split.unlabeled.labels.tolist()) == {UNLABELED}
    labels, is_old = truth.open_for_evaluation()
    assert [photos.classes[label] for label in labels] == [path[0] for path in split.unlabeled.paths]
    assert is_old.tolist() == [path[0] in "ac" for path in split.unlabeled.paths]


def test_a_split_knows_the_roles_of_the_classes(photos):
    split, _ = gcd_split(photos, CLASSES)
    assert split.old_classes == (0, 2)
    assert split.classes.new == (1, 3)
    assert split.classes.groups == {"Similar": (1,), "Dissimilar": (3,)}


def test_another_seed_draws_other_images(photos):
    assert gcd_split(photos, CLASSES, seed=1)[0].labeled.paths != gcd_split(photos, CLASSES)[0].labeled.paths


def test_a_split_of_another_data_set_is_refused(photos):
    with pytest.raises(DataError, match=r"1 classes that .* lacks, such as \[9\]"):
        gcd_split(photos, ClassSplit((0,), {"Medium": (9,)}))
    with pytest.raises(DataError, match="between 0 and 1"):
        gcd_split(photos, CLASSES, labeled_share=1.5)


def test_the_birds_split_as_published(real_data):
    birds = open_images(real_data / "cub200.zip").of_split("train")
    split, truth = gcd_split(birds, read_class_split(real_data / "ssb" / "cub_ssb_splits.json"))
    # 5,994 official images give 1,498 and 4,496; the copy lacks one image
    assert abs(len(split.labeled) - 1498) <= 1
    assert abs(len(split.unlabeled) - 4496) <= 1
    _, is_old = truth.open_for_evaluation()
    assert is_old.mean() == pytest.approx(1 / 3, abs=0.01)
