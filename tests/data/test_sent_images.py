"""Parts of a set that are sent: the same images, and little else."""

from __future__ import annotations

import pickle

import numpy as np

from justright.data.image_set import ImageSet
from justright.data.opening import open_images
from justright.data.sent_images import SENT, sent, sent_in_parts

LETTERS = open_images("glyphs:scripts=hebrew,per_class=4")


def test_a_part_gives_the_images_of_its_rows():
    rows = np.array([3, 4, 40])
    part = ImageSet(sent(LETTERS, rows), LETTERS.readers)
    assert part.paths == [LETTERS.paths[row] for row in rows]
    assert [part.image(slot).tobytes() for slot in range(3)] == [LETTERS.image(int(row)).tobytes() for row in rows]


def test_labels_stay_here_and_a_part_is_small_however_large_the_set_is():
    many = ImageSet.concat([LETTERS] * 50)
    part = sent(many, range(1000, 1016))
    assert part.column_names == list(SENT)
    assert len(pickle.dumps(part)) < 10_000


def test_parts_are_the_whole_in_order():
    parts = list(sent_in_parts(LETTERS, 30))
    assert [part.num_rows for part in parts] == [30, 30, 28]
    assert [path for part in parts for path in part["path"].to_pylist()] == LETTERS.paths
    assert sent(LETTERS, np.array([], int)).num_rows == 0
