from __future__ import annotations

import pytest

from justright.data import glyph_set, open_images
from justright.data.catalog.glyphs import GLYPH_CLASSES
from justright.errors import BadImageError, DataError


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
