"""The glyphs: alphabet, drawing and data set."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTFont
from scipy.optimize import linear_sum_assignment

import justright
from justright.data import glyph_set, open_images
from justright.data.catalog.glyphs import (
    GLYPH_CLASSES,
    LUMA,
    MIN_CONTRAST,
    SCRIPTS,
    classes_of,
    draw_glyph,
    draw_look,
    font_folder,
    outline_mask,
    render,
)
from justright.utils.errors import BadImageError, DataError
from justright.utils.seeding import generator


@cache
def font(face):
    return TTFont(font_folder() / f"{face}.ttf", lazy=True)


def normalized_outline(face, glyph_name):
    """The outline moved to the origin and scaled to a longest side of 500, so only its shape is left."""
    glyphs = font(face).getGlyphSet()
    pen = DecomposingRecordingPen(glyphs)
    glyphs[glyph_name].draw(pen)
    steps = [(verb, [point for point in points if point is not None]) for verb, points in pen.value]
    points = [point for _, some in steps for point in some]
    if not points:
        return ()
    left, bottom = map(min, zip(*points, strict=True))
    right, top = map(max, zip(*points, strict=True))
    scale = 500 / max(right - left, top - bottom)
    return tuple(
        (verb, *((round((x - left) * scale), round((y - bottom) * scale)) for x, y in some)) for verb, some in steps
    )


@cache
def outlines_by_face():
    """For each font file: the outline of the missing-glyph box, and of each class the font draws."""
    drawn = defaultdict(dict)
    for glyph in GLYPH_CLASSES:
        for face in {"DejaVuSans", *glyph.faces}:
            name = font(face).getBestCmap().get(ord(glyph.character))
            if name is not None:
                drawn[face][glyph.character] = normalized_outline(face, name)
    return {face: (normalized_outline(face, ".notdef"), outlines) for face, outlines in drawn.items()}


def test_every_character_has_at_least_two_fonts():
    for glyph in GLYPH_CLASSES:
        assert len(glyph.faces) >= 2
        for face in glyph.faces:
            assert glyph.character in outlines_by_face()[face][1], f"{glyph.character!r} is not in {face}"


def test_no_character_draws_nothing_or_the_missing_glyph_box():
    for face, (missing, outlines) in outlines_by_face().items():
        for character, outline in outlines.items():
            assert outline, f"{face} draws nothing for {character!r}"
            assert outline != missing, f"{face} draws a box for {character!r}"


def test_no_two_classes_share_an_outline():
    for face, (_, outlines) in outlines_by_face().items():
        first = {}
        for character, outline in outlines.items():
            same = first.setdefault(outline, character)
            assert same == character, f"{same!r} and {character!r} are one shape in {face}"


def test_no_two_classes_look_alike_once_cut_to_their_ink():
    masks = np.zeros((len(GLYPH_CLASSES), 80, 80), dtype=np.float32)
    for row, glyph in enumerate(GLYPH_CLASSES):
        mask = np.asarray(outline_mask(glyph.faces[0], glyph.character))
        top, left = (80 - mask.shape[0]) // 2, (80 - mask.shape[1]) // 2
        masks[row, top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    flat = masks.reshape(len(masks), -1)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    likeness = flat @ flat.T - 2 * np.eye(len(flat), dtype=np.float32)
    a, b = np.unravel_index(likeness.argmax(), likeness.shape)
    assert likeness[a, b] < 0.96, f"{GLYPH_CLASSES[a].character!r} looks like {GLYPH_CLASSES[b].character!r}"


def test_look_of_an_image_is_the_same_on_every_machine():
    # pixels may follow the version of FreeType, what is chosen at random must not
    def rounded(value):
        if isinstance(value, float):
            return round(value, 6)
        return tuple(map(rounded, value)) if isinstance(value, tuple) else value

    looks = [
        draw_look(generator(seed, "glyph", "u0041-latin-capital-letter-a", 0), ("one", "two")) for seed in range(9)
    ]
    text = repr([rounded(tuple(look)) for look in looks])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "02f30f5aaad3de97"


def test_ink_stands_out_from_paper():
    for index in range(300):
        look = draw_look(generator(0, "contrast", index), ("face",))
        contrast = abs(np.dot(LUMA, look.ink) - np.dot(LUMA, look.paper)) / 255
        assert contrast > MIN_CONTRAST - 0.01


def test_glyph_is_inside_and_takes_a_fair_part_of_the_image():
    for index in range(200):
        glyph = GLYPH_CLASSES[(index * 37) % len(GLYPH_CLASSES)]
        look = draw_look(generator(0, "inside", index), glyph.faces)
        plain = look._replace(ink=(0, 0, 0), paper=(255, 255, 255), blotches=(0,) * 27, clutter=(), occluder=None)
        is_ink = render(plain, glyph.character, np.full((64, 64, 3), 128, dtype=np.uint8))[:, :, 0] < 128
        rim = np.concatenate([is_ink[0], is_ink[-1], is_ink[:, 0], is_ink[:, -1]])
        assert not rim.any()
        assert is_ink.sum() > 40


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
    table = tomllib.loads(files("justright.data.catalog").joinpath("glyphs.toml").read_text(encoding="utf-8"))
    characters = "".join(characters for _, _, _, characters in table["scripts"])
    assert "".join(glyph.character for glyph in GLYPH_CLASSES) == characters


def test_each_script_has_one_family():
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


def test_image_is_a_pure_function_of_seed_class_and_index():
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
def test_images_are_rgb_of_the_given_size(size):
    image = draw_glyph(0, 0, 0, size)
    assert image.shape == (size, size, 3)
    assert image.dtype == np.uint8


def test_labels_and_sizes_that_do_not_exist_are_rejected():
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


def test_glyphs_are_drawn_on_demand_with_family_and_script():
    images = glyph_set(per_class=2, scripts=["hebrew", "arrows"])
    assert len(images) == 2 * len(images.classes)
    assert images.hierarchy[int(images.labels[0])][1] in {"hebrew", "arrows"}
    assert images.image(0).size == (64, 64)
    assert images.image(0).tobytes() != images.image(1).tobytes()


def test_every_class_is_in_the_default_set_under_its_own_label():
    assert glyph_set(per_class=1).classes == {glyph.label: glyph.name for glyph in GLYPH_CLASSES}


def test_saved_set_draws_the_same_images_again(tmp_path):
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


def test_options_are_read_from_text():
    images = open_images("glyphs:per_class=3,seed=2,size=48,scripts=latin+greek")
    assert images.image(0).size == (48, 48)
    assert {above[1] for above in images.hierarchy.values()} == {"latin", "greek"}
    assert len(open_images("glyphs")) == 20 * len(GLYPH_CLASSES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("colour=red", "cannot be drawn"),
        ("seed=x", "cannot be drawn"),
        ("scripts=klingon", "klingon"),
        ("per_class=0", "at least 1"),
    ],
)
def test_unknown_options_are_rejected(options, message):
    with pytest.raises(DataError, match=message):
        open_images(f"glyphs:{options}")


def test_path_that_names_no_glyph_is_a_bad_image():
    images = glyph_set(per_class=1, scripts=["digits"])
    reader = next(iter(images.readers.values()))
    with pytest.raises(BadImageError, match="not a glyph"):
        reader.image("alphabets/latin/nothing/0")
