from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from justright.evaluation import Scores, evaluate
from justright.evaluation.scores import FORMAT
from justright.utils.errors import DataError
from justright.utils.files import write_json
from justright.utils.hashing import signed

SCORES = evaluate(np.array([0, 0, 1, 1, 2]), np.array([4, 4, 4, 7, 8]), np.array([True, True, False, False, False]))


def test_scores_print_as_one_line():
    assert "\n" not in str(SCORES)
    assert str(SCORES).startswith("All 80.0 [")
    assert "Old 100.0 [34.2, 100.0]" in str(SCORES)
    assert str(SCORES).endswith("(5 images, 3 classes, 3 clusters, v2)")


def test_loaded_scores_equal_saved_ones(tmp_path):
    SCORES.save(tmp_path / "deep" / "scores.json")
    loaded = Scores.load(tmp_path / "deep" / "scores.json")
    assert loaded.to_dict() == SCORES.to_dict()
    assert str(loaded) == str(SCORES)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["scores.json"]


def test_names_count_and_unknown_keys_load(tmp_path):
    path, names = tmp_path / "scores.json", {"all": 0.6, "old": 1.0, "new": math.nan}
    replace(SCORES, names=names).save(path)
    assert " | names count 60.0 / 100.0 / - | " in str(Scores.load(path))
    assert "names count" not in str(SCORES)
    write_json(path, signed({"format": FORMAT, "later": 1} | SCORES.to_dict()))
    assert Scores.load(path).to_dict() == SCORES.to_dict(), "an unknown key is ignored"


def test_nan_is_null_on_disk(tmp_path):
    scores = evaluate(np.array([0, 1]), np.array([0, 1]), np.array([False, False]))
    scores.save(tmp_path / "scores.json")
    text = (tmp_path / "scores.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["old"] is None
    assert math.isnan(Scores.load(tmp_path / "scores.json").old)
    assert "Old -" in str(scores)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "justright scores 1", "all": 1}', "[1", "3"])
def test_other_files_are_rejected(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(DataError, match=r"other\.json"):
        Scores.load(tmp_path / "other.json")
