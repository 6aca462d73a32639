"""The audit: bad files, copies, conflicts, odd classes, and its report."""

from __future__ import annotations

import json
import zipfile

import pytest
from tests.data.drawn_files import drawing, file_of, of_kind, paths, put

from justright.data.audit import audit, comparable_name, ignored_files, location
from justright.data.opening import open_images
from justright.data.quarantine import TooManyBadError, reason_of
from justright.utils.errors import BadImageError, BadKind, JustrightError


def test_exact_copies_are_one_group_across_a_zip_and_a_folder(photos, tmp_path):
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as opened:
        opened.writestr("cat/again.png", (photos / "cat" / "0.png").read_bytes())
        opened.writestr("cat/other.png", file_of(drawing(50)))
    report = audit([open_images(photos), open_images(tmp_path / "more.zip")])
    (found,) = of_kind(report, "copies_exact")
    assert paths(found) == {"cat/0.png", "cat/again.png"}
    assert not found.is_problem
    assert report.n_problems == 0


def test_target_copy_is_a_problem_in_a_pool_and_a_remark_if_labeled(photos, tmp_path):
    put(tmp_path / "new" / "same.png", drawing(0))
    put(tmp_path / "new" / "alike.jpg", file_of(drawing(1), "JPEG"))
    put(tmp_path / "new" / "fresh.png", drawing(50))
    report = audit([open_images(photos)], open_images(tmp_path / "new"))
    (exact,), (near,) = of_kind(report, "given_exact"), of_kind(report, "shared_near")
    assert paths(exact) == {"cat/0.png", "same.png"}
    assert paths(near) == {"dog/1.png", "alike.jpg"}
    assert exact.reason == "same content, in labeled and target: `justright discover` keeps the label"
    assert report.n_problems == 1
    report = audit([], open_images(tmp_path / "new"), pool=[open_images(photos)])
    assert of_kind(report, "shared_exact")[0].reason == "same content, in pool and target"


def test_folders_of_the_target_are_no_classes(photos, tmp_path):
    """So copies in two of them are no conflict, and no class is small."""
    put(tmp_path / "new" / "monday" / "same.png", drawing(50))
    put(tmp_path / "new" / "tuesday" / "same.png", drawing(50))
    put(tmp_path / "new" / "cat" / "fresh.png", drawing(60))
    report = audit([open_images(photos)], open_images(tmp_path / "new"))
    (found,) = report.findings
    assert (found.kind, found.is_problem) == ("copies_exact", False)
    assert {place.class_name for place in found.images} == {None}


def test_same_image_under_two_classes_is_a_conflict(photos):
    put(photos / "dog" / "same.png", drawing(0))
    put(photos / "cat" / "alike.jpg", file_of(drawing(1), "JPEG"))
    report = audit([open_images(photos)])
    (exact,), (near,) = of_kind(report, "conflict_exact"), of_kind(report, "conflict_near")
    assert paths(exact) == {"cat/0.png", "dog/same.png"}
    assert paths(near) == {"dog/1.png", "cat/alike.jpg"}
    assert "cat, dog" in exact.reason
    assert of_kind(report, "copies_exact") == of_kind(report, "copies_near") == []


def test_spellings_of_a_class_do_not_conflict(photos, tmp_path):
    put(tmp_path / "more" / "007.Cat" / "1.png", drawing(0))
    put(tmp_path / "more" / "007.Cat" / "2.png", drawing(50))
    put(tmp_path / "loose" / "1.png", drawing(0))
    report = audit([open_images(photos), open_images(tmp_path / "more"), open_images(tmp_path / "loose")])
    assert report.n_problems == 0
    put(tmp_path / "more" / "Lynx" / "1.png", drawing(0))
    report = audit([open_images(photos), open_images(tmp_path / "more")])
    assert len(of_kind(report, "conflict_exact")) == 1


def test_class_name_in_two_data_sets_is_a_remark(photos, tmp_path):
    for number in range(2):
        put(tmp_path / "new" / "003.Cat" / f"{number}.png", drawing(50 + number))
        put(tmp_path / "new" / "fox" / f"{number}.png", drawing(60 + number))
    report = audit([open_images(photos)], pool=[open_images(tmp_path / "new")])
    (found,) = report.findings
    assert (found.kind, found.is_problem, found.reason) == ("shared_class", False, "cat: in labeled and pool")
    assert [(each.side, each.dataset, each.class_name) for each in found.classes] == [
        ("labeled", "photos", "cat"),
        ("pool", "new", "003.Cat"),
    ]


def test_class_of_one_image_is_a_remark(photos):
    put(photos / "lynx" / "1.png", drawing(50))
    put(photos / "puma" / "1.png", b"")
    found = of_kind(audit([open_images(photos)]), "small_class")
    reasons = {finding.classes[0].class_name: finding.reason for finding in found}
    assert reasons == {"lynx": "1 image", "puma": "0 images, 1 bad"}


def test_wrong_ending_is_a_remark(photos):
    put(photos / "cat" / "really.jpg", drawing(50))
    (found,) = audit([open_images(photos)]).findings
    assert (found.kind, found.reason, paths(found)) == ("wrong_suffix", "holds PNG", {"cat/really.jpg"})


def test_empty_set_has_no_findings(tmp_path):
    (tmp_path / "none.csv").write_text("path,label\n")
    assert audit([open_images(tmp_path / "none.csv")]).findings == []
    assert audit([]).findings == []


def test_real_photos_of_ten_kinds_are_clean(real_data):
    report = audit([open_images(real_data / "cifar10.zip")], open_images(real_data / "clothing10.zip"))
    assert report.n_problems == 0
    assert report.n_images == 1600


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ("001.Black_footed_Albatross", "black footed albatross", True),
        ("birds/gulls/Herring_Gull", "herring-gull", True),
        ("12 Cat", "CAT", True),
        ("Cafe\u0301", "caf\u00e9", True),
        ("cat", "dog", False),
        ("7up", "up", False),
    ],
)
def test_comparable_names_ignore_case_and_numbers(left, right, is_same):
    assert (comparable_name(left) == comparable_name(right)) is is_same


@pytest.mark.parametrize("name", ["7", "007", "12/7", "", "_"])
def test_numeric_class_names_are_not_compared(name):
    assert comparable_name(name) is None


def test_names_that_look_alike_in_one_data_set_are_a_remark(tmp_path):
    for seed, name in enumerate(("cat", "Cat", "dog\u200b", "dog", "emu")):
        for number in range(2):
            put(tmp_path / "photos" / name / f"{number}.png", drawing(2 * seed + number))
    found = of_kind(audit([open_images(tmp_path / "photos")]), "alike_names")
    assert [[place.class_name for place in each.classes] for each in found] == [["Cat", "cat"], ["dog", "dog\u200b"]]
    assert not any(each.is_problem for each in found)


def test_files_that_are_no_images_by_name_are_listed(photos):
    put(photos / "cat" / "notes.txt", b"hello")
    put(photos / ".hidden", b"")
    ignored = ignored_files(photos, "labeled")
    assert [(place.dataset, place.path) for place in ignored] == [("photos", "cat/notes.txt")]
    report = audit([open_images(photos)], ignored=ignored)
    assert location(ignored[0].source, ignored[0].path) == str(photos / "cat" / "notes.txt")
    assert (len(of_kind(report, "ignored_file")), report.n_problems) == (1, 0)


def test_report_is_plain_json_with_every_bad_image(photos):
    put(photos / "cat" / "empty.jpg", b"")
    value = json.loads(json.dumps(audit([open_images(photos)]).to_json()))
    assert (value["n_images"], value["n_problems"], value["counts"]["bad_file"]) == (7, 1, 1)
    (bad,) = value["sources"][0]["quarantined"]
    assert bad == {
        "dataset": "photos",
        "source": f"folder:{photos}",
        "path": "cat/empty.jpg",
        "kind": "empty",
        "reason": "the file is empty",
    }


def test_words_in_a_path_do_not_change_the_kind():
    error = BadImageError("truncated/x.jpg: the file is empty", BadKind.EMPTY)
    assert reason_of(error, "truncated/x.jpg")[0] is BadKind.EMPTY


def test_kind_comes_from_the_error_not_its_text():
    for kind in BadKind:
        assert reason_of(BadImageError("x.jpg: kaputt", kind), "x.jpg") == (kind, "kaputt")
    assert reason_of(BadImageError("x.jpg: truncated"), "x.jpg")[0] is BadKind.UNREADABLE


def test_source_of_only_bad_images_is_rejected_at_any_limit(photos):
    for file in photos.rglob("*.png"):
        file.write_bytes(b"")
    report = audit([open_images(photos)])
    with pytest.raises(TooManyBadError, match="no image of photos can be read, 6 of 6 are bad") as error:
        report.refuse_above(1.0)
    assert "the file is empty" in str(error.value)
    assert "--max-bad" not in str(error.value)


def test_too_many_bad_images_error_has_share_limit_and_examples(photos):
    for number in range(4):
        put(photos / "cat" / f"empty{number}.jpg", b"")
    report = audit([open_images(photos)])
    with pytest.raises(TooManyBadError) as error:
        report.refuse_above(0.25)
    for part in ("4 of 10", "photos", "40.0%", "25.0%", "cat/empty0.jpg: the file is empty", "1 more", "--max-bad"):
        assert part in str(error.value)
    assert isinstance(error.value, JustrightError)
    report.refuse_above(0.4)  # the limit itself is allowed
    with pytest.raises(TooManyBadError):
        report.refuse_above(0.39)
