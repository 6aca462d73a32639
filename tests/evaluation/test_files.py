from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from justright.evaluation.files import copy_truth, read_checked, read_judged
from justright.utils.errors import DataError, MissingDataError
from justright.utils.types import UNLABELED

PREDICTIONS = "id,cluster,confidence\n007,3,0.9\n07,3,0.2\n7,5,0.5\n"
TRUTH = "id,class_name,is_old\n7,wren,false\n007,jay,true\n07,jay,true\n"


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_rows_are_joined_by_id(write):
    judged = read_judged(write("p.csv", PREDICTIONS), write("t.csv", TRUTH))
    assert judged.y_pred.tolist() == [3, 3, 5]
    assert [judged.class_names[c] for c in judged.y_true.tolist()] == ["jay", "jay", "wren"]
    assert judged.is_old.tolist() == [True, True, False]
    assert judged.has_kept_labels is None


def test_tables_are_judged_like_files(write):
    predictions = pa.table({"id": ["007", "07", "7"], "cluster": [3, 3, 5]})
    truth = pa.table({"id": ["7", "007", "07"], "class_name": ["wren", "jay", "jay"], "is_old": [False, True, True]})
    result, expected = read_judged(predictions, truth), read_judged(write("p.csv", PREDICTIONS), write("t.csv", TRUTH))
    assert result.y_pred.tolist() == expected.y_pred.tolist()
    assert result.y_true.tolist() == expected.y_true.tolist()


def test_old_known_classes_have_kept_their_labels(write):
    files = write("p.csv", PREDICTIONS), write("t.csv", TRUTH)
    assert read_judged(*files, ["jay"], known_classes=["jay"]).has_kept_labels.tolist() == [True, True, False]
    assert not read_judged(*files, ["wren"], known_classes=["jay"]).has_kept_labels.any()


def test_parquet_may_have_text_clusters_and_dictionaries(write, tmp_path):
    pq.write_table(pa.table({"path": ["b", "a"], "cluster": ["new-1", "jay"]}), tmp_path / "p.parquet")
    names = pa.array(["jay", "wren"]).dictionary_encode()
    truth = {"id": [None, None], "path": ["a", "b"], "label": [4, 9], "class_name": names, "is_old": [1, 0]}
    pq.write_table(pa.table(truth | {"has_kept_labels": [True, False]}), tmp_path / "t.parquet")
    judged = read_judged(tmp_path / "p.parquet", tmp_path / "t.parquet")
    assert judged.y_true.tolist() == [9, 4]
    assert judged.y_pred.tolist() == [1, 0]
    assert judged.class_names == {4: "jay", 9: "wren"}
    assert judged.has_kept_labels is not None
    assert judged.has_kept_labels.tolist() == [False, True]


def test_only_known_images_have_names(write):
    rows = [
        "007,3,jay,known,predicted",
        "07,3,others/wren,known,predicted",
        "7,5,new-001,discovered,predicted",
        "8,4,owl,known,predicted",
        "9,3,jay,neither,predicted",
        "10,3,jay,known,given",
    ]
    predictions = write("p.csv", "id,cluster,category,kind,source\n" + "\n".join(rows))
    truth = write("t.csv", TRUTH + "8,jay,true\n9,jay,true\n10,jay,true\n")
    judged = read_judged(predictions, truth)
    jay, wren, none = 0, 1, 2
    assert judged.class_names == {jay: "jay", wren: "wren"}
    assert judged.called.tolist() == [jay, wren, UNLABELED, none, UNLABELED]
    unnamed = write("u.csv", "id,label,is_old\n" + "".join(f"{i},1,true\n" for i in ("007", "07", *range(7, 11))))
    assert read_judged(predictions, unnamed).called is None
    assert read_judged(write("p.csv", PREDICTIONS), write("t.csv", TRUTH)).called is None


def test_equal_ids_are_distinguished_by_path(write):
    predictions = write("p.csv", "id,path,cluster\nx,a.png,0\nx,b.png,1\n")
    truth = write("t.csv", "id,path,label,is_old\nx,b.png,8,0\nx,a.png,7,1\n")
    assert read_judged(predictions, truth).y_true.tolist() == [7, 8]


def test_repeated_ids_and_paths_are_used_together(write):
    predictions = write("p.csv", "id,path,cluster\nx,a.png,0\nx,b.png,1\ny,a.png,2\n")
    truth = write("t.csv", "id,path,label,is_old\ny,a.png,9,0\nx,b.png,8,0\nx,a.png,7,1\n")
    assert read_judged(predictions, truth).y_true.tolist() == [7, 8, 9]
    twice = write("twice.csv", "id,path,cluster\nx,a.png,0\nx,a.png,1\ny,a.png,2\n")
    with pytest.raises(DataError, match="lists 1 images more than once"):
        read_judged(twice, truth)


def test_checks_are_joined_by_id(write):
    sample = read_checked(write("p.csv", PREDICTIONS), write("c.csv", "id,is_right\n7,true\n007,false\n"))
    assert sample.checked.tolist() == [2, 0]
    assert sample.is_right.tolist() == [True, False]
    assert sample.confidence is not None
    assert sample.confidence.tolist() == [0.9, 0.2, 0.5]


@pytest.mark.parametrize(
    ("predictions", "truth", "message"),
    [
        (PREDICTIONS + "8,1,0.5\n9,1,0.5\n", TRUTH, "2 of 5 images in .*p.csv are not in .*t.csv, e.g. 8, 9"),
        (PREDICTIONS, TRUTH + "8,jay,true\n", "1 of 4 images in .*t.csv are not in .*p.csv, e.g. 8"),
        (PREDICTIONS + "7,1,0.5\n", TRUTH, "p.csv lists 1 images more than once, e.g. 7"),
        (PREDICTIONS, TRUTH + "7,jay,true\n", "t.csv lists 1 images more than once, e.g. 7"),
        ("path,cluster\na,0\n", TRUTH, "share neither an id nor a path"),
        ("id,group\n7,0\n", "id,label,is_old\n7,0,true\n", "p.csv has no column cluster"),
        ("id,cluster\n7,0\n", "id,label\n7,0\n", "t.csv has no column is_old"),
        ("id,cluster\n7,0\n", "id,is_old\n7,true\n", "(?s)t.csv has no column label.*label or class_name"),
        ("id,cluster\n7,0.5\n", "id,label,is_old\n7,0,true\n", "Column cluster of .* holds double"),
        ("id,cluster\n7,0\n", "id,label,is_old\n7,0,2\n", "Column is_old of .* holds 2"),
        ("id,cluster\n7,0\n8,\n", "id,label,is_old\n7,0,1\n8,0,1\n", "Column cluster of .* is empty in 1 of 2"),
        ("", TRUTH, "p.csv cannot be read"),
    ],
)
def test_mismatched_files_are_rejected_with_reasons(write, predictions, truth, message):
    with pytest.raises(DataError, match=message):
        read_judged(write("p.csv", predictions), write("t.csv", truth))


def test_only_csv_and_parquet_are_read(write, tmp_path):
    with pytest.raises(DataError, match=r"\.pkl"):
        read_judged(write("p.pkl", "x"), write("t.csv", TRUTH))
    with pytest.raises(MissingDataError, match="no file"):
        read_judged(tmp_path / "absent.csv", write("t.csv", TRUTH))
    with pytest.raises(DataError, match="cannot be read"):
        read_judged(write("p.parquet", "no parquet"), write("t.csv", TRUTH))


def test_text_as_confidence_is_rejected(write):
    predictions = write("p.csv", "id,cluster,confidence\na,0,high\n")
    with pytest.raises(DataError, match=r"Column confidence of .* holds string"):
        read_checked(predictions, write("c.csv", "id,is_right\na,1\n"))


def test_class_names_are_compared_in_one_unicode_form(tmp_path):
    mac, other = "mu\u0308we", "m\u00fcwe"
    rows = f"path,class_name,is_old\n1,{mac},1\n2,{other},1\n3,emu,0\n"
    (tmp_path / "truth.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "found.csv").write_text(f"path,category\n1,{other}\n2,{mac}\n3,emu\n", encoding="utf-8")
    copy_truth(tmp_path / "truth.csv", tmp_path / "truth.parquet", [])
    for truth in ("truth.csv", "truth.parquet"):
        judged = read_judged(tmp_path / "found.csv", tmp_path / truth)
        assert judged.class_names == {0: "emu", 1: other}
        assert judged.y_true.tolist() == judged.y_pred.tolist() == [1, 1, 0]


def test_given_categories_are_not_evaluated(write):
    given = "id,cluster,source\n007,3,predicted\n07,3,given\n7,5,predicted\n"
    judged = read_judged(write("p.csv", given), write("t.csv", TRUTH))
    assert judged.y_pred.tolist() == [3, 5]
    assert judged.is_old.tolist() == [True, False]
    assert judged.is_given.tolist() == [False, True, False]
    with pytest.raises(DataError, match="was given by a person"):
        read_judged(write("p.csv", given.replace("predicted", "given")), write("t.csv", TRUTH))
