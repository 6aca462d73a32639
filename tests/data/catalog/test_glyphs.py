from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import justright
from justright.data.catalog.glyph_alphabet import BLOCKS
from justright.data.catalog.glyph_drawing import outline_mask
from justright.data.catalog.glyphs import GLYPH_CLASSES, SCRIPTS, classes_of, draw_glyph, draw_glyphs
from justright.errors import DataError

SOME = [(label, index) for label in range(0, len(GLYPH_CLASSES), 90) for index in (0, 7)]


def checksum(pairs):
    return hashlib.sha256(b"".join(draw_glyph(3, label, index).tobytes() for label, index in pairs)).hexdigest()


def test_there_are_hundreds_of_classes_with_unique_safe_names():
    names = [glyph.name for glyph in GLYPH_CLASSES]
    assert len(names) >= 300
    assert len(set(names)) == len(names)
    assert all(name.isascii() and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)
    assert names[0] == "u0041-latin-capital-letter-a"


def test_labels_are_positions_in_the_table():
    assert [glyph.label for glyph in GLYPH_CLASSES] == list(range(len(GLYPH_CLASSES)))
    assert "".join(glyph.character for glyph in GLYPH_CLASSES) == "".join(block.characters for block in BLOCKS)


def test_two_levels_stand_above_the_class_and_each_script_has_one_family():
    assert len(set(SCRIPTS)) == len(SCRIPTS) >= 15
    assert 3 <= len({glyph.family for glyph in GLYPH_CLASSES}) < len(SCRIPTS)
    assert {glyph.script for glyph in GLYPH_CLASSES} == set(SCRIPTS)
    assert len({(glyph.script, glyph.family) for glyph in GLYPH_CLASSES}) == len(SCRIPTS)
    assert all(len(classes_of(script)) >= 5 for script in SCRIPTS)


def test_classes_of_several_scripts_come_in_the_order_of_the_table():
    both = classes_of("hebrew", "latin")
    assert both == classes_of("latin") + classes_of("hebrew")
    with pytest.raises(DataError, match="klingon"):
        classes_of("klingon")


def test_an_image_is_a_pure_function_of_seed_class_and_index():
    forward = [draw_glyph(3, label, index) for label, index in SOME]
    outline_mask.cache_clear()
    backward = [draw_glyph(3, label, index) for label, index in reversed(SOME)]
    np.testing.assert_array_equal(forward, backward[::-1])


def test_another_process_draws_the_same_bytes():
    program = f"""
import hashlib
from justright.data.catalog.glyphs import draw_glyph
images = [draw_glyph(3, label, index).tobytes() for label, index in {SOME!r}]
print(hashlib.sha256(b"".join(images)).hexdigest())
"""
    source = str(Path(justright.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": "5"}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == checksum(SOME)


def test_index_seed_and_class_each_change_the_image():
    base = draw_glyph(0, 5, 0)
    for other in (draw_glyph(0, 5, 1), draw_glyph(1, 5, 0), draw_glyph(0, 6, 0)):
        assert np.abs(base.astype(int) - other).mean() > 5


@pytest.mark.parametrize("size", [16, 64, 100])
def test_images_are_rgb_of_the_size_asked_for(size):
    image = draw_glyph(0, 0, 0, size)
    assert image.shape == (size, size, 3)
    assert image.dtype == np.uint8


def test_a_batch_is_its_images_stacked():
    labels, indices = np.array([3, 1, 4]), np.array([1, 5, 9])
    batch = draw_glyphs(2, labels, indices, size=32)
    np.testing.assert_array_equal(batch[1], draw_glyph(2, 1, 5, size=32))
    assert batch.shape == (3, 32, 32, 3)
    assert draw_glyphs(2, [], [], size=32).shape == (0, 32, 32, 3)


def test_labels_and_sizes_that_do_not_exist_are_refused():
    for label in (-1, len(GLYPH_CLASSES)):
        with pytest.raises(DataError, match=str(label)):
            draw_glyph(0, label, 0)
    with pytest.raises(DataError, match="8 pixels"):
        draw_glyph(0, 0, 0, size=8)


def kmeans(points, n_clusters, rng, n_steps=12):
    centroids = points[rng.choice(len(points), n_clusters, replace=False)]
    for _ in range(n_steps):
        clusters = ((centroids**2).sum(axis=1) - 2 * points @ centroids.T).argmin(axis=1)
        members = np.eye(n_clusters, dtype=np.float32)[clusters]
        sizes = members.sum(axis=0)[:, None]
        centroids = np.where(sizes > 0, members.T @ points / np.maximum(sizes, 1), centroids)
    return clusters


def matched_accuracy(clusters, labels, n_clusters):
    counts = np.zeros((n_clusters, n_clusters), dtype=int)
    np.add.at(counts, (clusters, labels), 1)
    return counts[linear_sum_assignment(-counts)].sum() / len(labels)


def test_kmeans_on_raw_pixels_does_badly():
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(GLYPH_CLASSES), 50, replace=False)
    labels = np.repeat(np.arange(50), 40)
    images = draw_glyphs(0, chosen[labels], np.tile(np.arange(40), 50))
    points = images[:, ::2, ::2].reshape(len(images), -1).astype(np.float32) / 255
    assert matched_accuracy(kmeans(points, 50, rng), labels, 50) < 0.15
