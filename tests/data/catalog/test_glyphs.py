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
from justright.data import glyph_set, open_images
from justright.data.catalog.glyph_alphabet import BLOCKS
from justright.data.catalog.glyph_drawing import outline_mask
from justright.data.catalog.glyphs import GLYPH_CLASSES, SCRIPTS, classes_of, draw_glyph
from justright.utils.errors import BadImageError, DataError

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
    images = np.stack([draw_glyph(0, int(label), index) for label in chosen for index in range(40)])
    points = images[:, ::2, ::2].reshape(len(images), -1).astype(np.float32) / 255
    assert matched_accuracy(kmeans(points, 50, rng), labels, 50) < 0.15


def test_the_set_draws_on_demand_and_knows_family_and_script():
    images = glyph_set(per_class=2, scripts=["hebrew", "arrows"])
    assert len(images) == 2 * len(images.classes)
    assert images.hierarchy[int(images.labels[0])][1] in {"hebrew", "arrows"}
    assert images.image(0).size == (64, 64)
    assert images.image(0).tobytes() != images.image(1).tobytes()


def test_every_class_is_in_the_default_set_under_its_own_label():
    assert glyph_set(per_class=1).classes == {glyph.label: glyph.name for glyph in GLYPH_CLASSES}


def test_a_saved_set_draws_the_same_images_again(tmp_path):
    images = glyph_set(per_class=1, scripts=["digits"], seed=3, size=32).with_ids()
    images.save(tmp_path / "digits.parquet")
    again = open_images(tmp_path / "digits.parquet")
    assert again.ids == images.ids
    assert again.image(4).tobytes() == images.image(4).tobytes()
    assert (tmp_path / "digits.parquet").stat().st_size < 20_000, "pixels went into the file"


def test_ids_tell_seed_size_class_and_index_apart():
    ids = [
        glyph_set(per_class=2, scripts=["digits"], seed=seed, size=size).with_ids().ids
        for seed in (0, 1)
        for size in (32, 64)
    ]
    assert len({name for names in ids for name in names}) == 4 * 20


def test_options_in_words():
    images = open_images("glyphs:per_class=3,seed=2,size=48,scripts=latin+greek")
    assert images.image(0).size == (48, 48)
    assert {above[1] for above in images.hierarchy.values()} == {"latin", "greek"}
    assert len(open_images("glyphs")) == 20 * len(GLYPH_CLASSES)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("colour=red", "cannot be drawn"),
        ("seed=x", "cannot be drawn"),
        ("scripts=klingon", "klingon"),
        ("per_class=0", "at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(words, complaint):
    with pytest.raises(DataError, match=complaint):
        open_images(f"glyphs:{words}")


def test_a_path_that_names_no_glyph_is_a_bad_image():
    images = glyph_set(per_class=1, scripts=["digits"])
    reader = next(iter(images.readers.values()))
    with pytest.raises(BadImageError, match="names no glyph"):
        reader.image("alphabets/latin/nothing/0")
