"""Lists of text and MATLAB variables; what is damaged is named with its line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import savemat

from justright.data.catalog.official_files import Listing, read_lines, read_mat, whole_numbers
from justright.errors import DataError


def listing(tmp_path, name: str, text: str) -> Listing:
    (tmp_path / name).write_text(text)
    return Listing.read(tmp_path / name)


def test_lines_lose_a_byte_order_mark_and_empty_lines_at_the_end(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n\n")
    assert read_lines(tmp_path / "a.txt") == ["one", "two"]
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"b\.txt is not text"):
        read_lines(tmp_path / "b.txt")


def test_a_line_is_cut_at_its_first_space(tmp_path):
    found = listing(tmp_path, "a.txt", "1 black footed albatross\n2 gull\n")
    assert (found.keys, found.values) == (["1", "2"], ["black footed albatross", "gull"])


@pytest.mark.parametrize(("text", "message"), [("1 a\n2\n", "line 2: '2'"), ("1 a\n1 b\n", "line 2: 1 stands there")])
def test_a_line_without_a_value_or_with_a_key_again_is_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        listing(tmp_path, "a.txt", text)


def test_rows_are_found_by_key_in_any_order(tmp_path):
    parts, images = listing(tmp_path, "parts", "3 1\n1 0\n2 0\n"), listing(tmp_path, "images", "1 x\n2 y\n3 z\n")
    assert parts.numbers(0, 1)[parts.rows_of(images)].tolist() == [0, 0, 1]
    with pytest.raises(DataError, match="images, line 3: 3 is not in"):
        listing(tmp_path, "few", "1 0\n2 0\n").rows_of(images)
    with pytest.raises(DataError, match="many, line 4: 4 is not in images"):
        listing(tmp_path, "many", "1 0\n2 0\n3 0\n4 0\n").rows_of(images)


@pytest.mark.parametrize("value", ["7", "-1", "1.5", "x", None, float("nan")])
def test_a_value_that_is_no_whole_number_within_bounds_is_named(value):
    with pytest.raises(DataError, match=rf"row 1: {value}"):
        whole_numbers([2, value], 0, 6, lambda row: f"row {row}")


def test_matlab_variables_have_one_axis_even_with_one_entry(tmp_path):
    savemat(tmp_path / "a.mat", {"labels": np.array([[3]]), "files": np.array(["x"], dtype=object)})
    labels, files = read_mat(tmp_path / "a.mat", "labels", "files")
    assert (labels.tolist(), files.tolist()) == ([3], ["x"])


def test_a_matlab_file_that_lacks_something_is_refused(tmp_path):
    savemat(tmp_path / "a.mat", {"labels": np.empty((0,))})
    with pytest.raises(DataError, match="labels is empty"):
        read_mat(tmp_path / "a.mat", "labels")
    with pytest.raises(DataError, match="no variable names"):
        read_mat(tmp_path / "a.mat", "names")
    (tmp_path / "b.mat").write_bytes(b"no matlab file" * 20)
    with pytest.raises(DataError, match="cannot be read"):
        read_mat(tmp_path / "b.mat", "labels")
    with pytest.raises(FileNotFoundError):
        read_mat(tmp_path / "c.mat", "labels")
