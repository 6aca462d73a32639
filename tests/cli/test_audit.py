from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from tests.cli.conftest import invoke
from tests.data.drawn_files import bomb, drawing, file_of, put

from justright.cli.audit import N_SHOWN


def jpeg(seed: int) -> bytes:
    return file_of(drawing(seed), "JPEG")


BAD_FILES = {
    "zero.jpg": (b"", "the file is empty"),
    "diary.jpg": (b"Dear diary ...", "not an image"),
    "cut.jpg": (jpeg(99)[:900], "truncated"),
    "gigapixel.png": (bomb(100_000), "too large"),
    "noise.png": (np.random.default_rng(0).bytes(3000), "not an image"),
}


def run(*arguments: object) -> Result:
    return invoke(["audit", *arguments], exit_code=None)


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes of three clean images; their parent is the current folder."""
    monkeypatch.chdir(tmp_path)
    for seed in range(6):
        put(tmp_path / "photos" / ("cat", "dog")[seed % 2] / f"{seed}.jpg", jpeg(seed))
    return tmp_path / "photos"


def test_clean_folder_has_no_findings(photos):
    done = run(photos)
    assert (done.exit_code, done.stdout) == (0, "6 images read: no problems, no remarks\n")


def test_one_of_every_kind_of_bad_file_is_reported_with_its_reason(photos):
    for name, (content, _) in BAD_FILES.items():
        (photos / "cat" / name).write_bytes(content)
    (photos / "cat" / "gone.jpg").symlink_to("nowhere")
    (photos / "dog" / "same.jpg").write_bytes(jpeg(0))
    drawing(1).save(photos / "dog" / "again.png")
    (photos / "lynx").mkdir()
    (photos / "lynx" / "only.jpg").write_bytes(jpeg(50))
    (photos / "notes.txt").write_text("hello")
    done = run(photos, "--max-bad", 1)
    assert done.exit_code == 1
    rows = {line.split("│")[2].strip(): line for line in done.stdout.splitlines() if line.count("│") == 4}
    reasons = {f"cat/{name}": reason for name, (_, reason) in BAD_FILES.items()}
    reasons |= {"cat/gone.jpg": "No such file", "notes.txt": "does not end like an image"}
    for path, reason in reasons.items():
        assert reason in rows[f"photos/{path}"]
    assert "filed under cat, dog" in rows["photos/cat/0.jpg"]
    assert "photos/dog/same.jpg" in rows
    assert "look alike" in done.stdout
    assert "1 image" in rows["labeled photos: lynx"]
    assert done.stdout.splitlines()[-1] == "15 images read: 7 problems, 3 remarks"


def test_findings_are_shown_before_the_limit_fails(photos, tmp_path):
    (photos / "cat" / "zero.jpg").write_bytes(b"")
    done = run(photos, "--out", tmp_path / "audit.json")
    assert done.exit_code == 1
    assert "cat/zero.jpg" in done.stdout
    assert "1 of 7 images of photos are bad (14.3%)" in done.stderr
    assert "Expected: at most 0.05 of a source (5.0%)" in done.stderr
    assert (tmp_path / "audit.json").exists()
    below = run(photos, "--max-bad", 0.2)
    assert (below.exit_code, below.stderr.strip()) == (1, "")


def test_json_output_equals_the_out_file(photos, tmp_path):
    (photos / "cat" / "zero.jpg").write_bytes(b"")
    done = run(photos, "--json", "--max-bad", 1, "--out", tmp_path / "new" / "audit.json")
    assert done.exit_code == 1
    value = json.loads(done.stdout)
    assert value == json.loads((tmp_path / "new" / "audit.json").read_text())
    assert value["bad_files"]["empty"] == value["n_problems"] == 1
    assert value["sources"][0]["quarantined"][0]["path"] == "cat/zero.jpg"


def test_remarks_alone_do_not_fail(photos, tmp_path):
    (photos / "cat" / "copy.jpg").write_bytes(jpeg(0))
    others = tmp_path / "others" / "001.CAT"
    others.mkdir(parents=True)
    for seed in (20, 21):
        (others / f"{seed}.jpg").write_bytes(jpeg(seed))
    done = run(photos, "--pool", others.parent)
    assert done.exit_code == 0, done.output
    assert "pool others: 001.CAT" in done.stdout
    assert done.stdout.splitlines()[-1] == "9 images read: no problems, 2 remarks"


def test_labeled_image_of_the_target_fails(photos, tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "x.jpg").write_bytes(jpeg(0))
    drawing(1).resize((50, 50)).save(tmp_path / "target" / "y.png")
    done = run(photos, "--target", tmp_path / "target")
    assert done.exit_code == 1
    assert "copy of a target image" in done.stdout
    assert "near copy of a target image" in done.stdout
    assert "in labeled and target" in done.stdout
    assert "pool" not in done.stdout


def test_photo_folder_is_the_target_and_its_folders_are_no_classes(tmp_path):
    for day in ("monday", "tuesday"):
        (tmp_path / "photos" / day).mkdir(parents=True)
        (tmp_path / "photos" / day / "1.jpg").write_bytes(jpeg(0))
    done = run("--target", tmp_path / "photos")
    assert done.exit_code == 0, done.output
    assert "filed under" not in done.stdout
    assert run(tmp_path / "photos").exit_code == 1, "as labeled images they contradict each other"
    assert "Name images to look at" in run().output


def test_long_list_is_cut_with_a_pointer_to_the_rest(photos):
    for number in range(N_SHOWN + 5):
        (photos / "cat" / f"note{number:02}.txt").touch()
    assert "… and 5 more, see --out or --json" in run(photos).stdout
    out = Path("audit.json")
    assert f"… and 5 more, see {out}" in run(photos, "--out", out).stdout
    assert json.loads(out.read_text())["counts"]["ignored_file"] == N_SHOWN + 5


def test_names_cannot_write_to_the_terminal(photos):
    (photos / "cat" / "\x1b[2Jwipe\n.jpg").write_bytes(b"")
    done = run(photos)
    assert "\x1b" not in done.output
    assert "\\x1b[2Jwipe\\n.jpg" in done.stdout
    assert "\\x1b[2Jwipe\\n.jpg" in done.stderr


@pytest.mark.parametrize("name", ["photo[copy].jpg", "[bold]x.jpg", "[link=x]y.jpg"])
def test_brackets_in_a_name_are_part_of_it(photos, name):
    (photos / "cat" / name).write_bytes(b"")
    assert f"photos/cat/{name}" in run(photos).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Name images to look at: LABELED, --pool or --target"),
        (["nowhere"], 1, "no such file or folder: nowhere"),
        (["nowhere", "--near", 11], 2, "0<=x<=10"),
        (["nowhere", "--max-bad", 2], 2, "2 is not from 0 to 1"),
    ],
)
def test_invalid_options_are_explained(arguments, code, message):
    done = run(*arguments)
    assert done.exit_code == code
    assert message in done.stderr


def test_unwritable_folder_is_reported(photos):
    done = run(photos, "--out", photos / "cat" / "0.jpg" / "audit.json")
    assert (done.exit_code, "cannot be written" in done.stderr) == (1, True)


def test_help_lists_problems_and_examples():
    done = run("--help")
    for part in ("Problems, exit code 1", "Remarks, exit code 0", "justright audit birds --near 2"):
        assert part in done.stdout


def test_engines_give_equal_results(photos):
    (photos / "bad.jpg").write_bytes(b"")
    here, there = (run(photos, "--json", *more) for more in ((), ("--engine", "processes", "--workers", 1)))
    assert here.exit_code == there.exit_code == 1
    assert json.loads(here.stdout) == json.loads(there.stdout)
