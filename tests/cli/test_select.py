"""`justright select` on the command line."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree as ET

import click
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.cli.conftest import invoke
from tests.forked_programs import Program

from justright.cli import main
from justright.data.columns import NAME
from justright.data.opening import open_images
from justright.features.table import FeatureTable
from justright.runs.selection import load_selection
from justright.runs.spec import RunSpec
from justright.selection import BetaSelector, Selector
from justright.utils.errors import DataError

CENTERS = 0.6 + np.random.default_rng(0).normal(size=(16, 8))


def features(labels, seed):
    rng = np.random.default_rng(seed)
    return (CENTERS[labels] + rng.normal(0, 0.2, (len(labels), 8))).astype(np.float32)


@pytest.fixture
def stores(tmp_path):
    """Two data sets of labeled features, and a target whose store has labels, other labels, or none."""
    for number, (name, n) in enumerate({"birds": 6, "pets": 4}.items()):
        labels = np.repeat(np.arange(n), 6)
        columns = {"label": labels, "class_name": [f"c{label}" for label in labels], "dataset": [name] * len(labels)}
        FeatureTable.of(features(labels + 6 * number, number), **columns).write(tmp_path / name)
    truth = np.repeat(np.arange(10, 16), 8)
    x = features(truth, 9)
    FeatureTable.of(x, label=truth).write(tmp_path / "target")
    FeatureTable.of(x, label=truth[::-1].copy()).write(tmp_path / "permuted")
    FeatureTable.of(x).write(tmp_path / "blind")
    return tmp_path


@pytest.fixture
def call(stores):
    def call(*words, pools=("birds", "pets"), target="target", exit_code=0):
        given = [*(str(stores / pool) for pool in pools), "--target", str(stores / target), *map(str, words)]
        done = CliRunner().invoke(main, ["select", *given])
        assert done.exit_code == exit_code, done.output
        return done

    return call


BETA = ("--selector", "beta", "--domain", "affine")
BINS = ("--selector", "bins", "--n-clusters", 6, "--no-discard")


@pytest.mark.parametrize(
    "words",
    [
        ("--selector", "none"),
        BETA,
        ("--level", "image", *BETA, "--reduction", 0.1),
        BINS,
        ("--selector", "cui", "--n-clusters", 6, "--n-classes", 4),
    ],
)
def test_saved_weights_are_loaded_again(call, stores, words):
    out = stores / "weights.parquet"
    done = call(*words, "--out", out)
    assert "all" in done.stdout
    saved = load_selection(out)
    assert saved.images.column_names == ["id", "dataset", "path", "label", "class_name", "weight", "reason"]
    assert saved.images.num_rows == 60
    assert saved.classes["class_name"].to_pylist()[6] == "pets/c0"
    assert saved.classes["n_images"].to_pylist() == [6] * 10
    assert saved.images["class_name"].to_pylist()[-1] == "pets/c3"
    assert all(saved.images["reason"].to_pylist())
    if "image" not in words:
        by_class = np.array(saved.classes["weight"])[np.array(saved.images["label"])]
        assert saved.sample_weight.tolist() == by_class.tolist()
        assert saved.images["reason"][0].as_py() == saved.classes["reason"][0].as_py()
    else:
        assert len(set(saved.sample_weight.tolist())) > 10


def test_weights_are_those_of_the_library(call, stores):
    call(*BETA, "--alpha", 3, "--out", stores / "w.parquet")
    tables = [FeatureTable.open(stores / name) for name in ("birds", "pets")]
    pool = np.concatenate([table.features for table in tables])
    labels = np.concatenate([tables[0].labels, tables[1].labels + 6])
    fitted = BetaSelector(3.0, domain="affine").fit(pool, labels, FeatureTable.open(stores / "target").features)
    saved = load_selection(stores / "w.parquet")
    assert saved.classes["weight"].to_numpy() == pytest.approx(fitted.class_weight_)
    assert saved.about["params"]["alpha"] == 3


@pytest.mark.parametrize("words", [BETA, BINS])
def test_target_labels_do_not_reach_the_weights(call, stores, words):
    written = []
    for target in ("target", "permuted", "blind"):
        out = stores / target / ".." / f"{target}.parquet"
        call(*words, "--out", out, target=target)
        written.append((out.read_bytes(), out.with_name(f"{target}.classes.parquet").read_bytes()))
    assert written[0] == written[1] == written[2]


def test_json_has_everything(call, stores):
    options = ("--stability", 5, "--diagnose", stores / "birds", "--draws", 2, "--json", "--out", stores / "w.parquet")
    done = call(*BINS, *options)
    value = json.loads(done.stdout)
    assert value["selector"] == "bins"
    assert [row["dataset"] for row in value["sources"]] == ["birds", "pets", "all"]
    assert {"distance", "bin", "kept_share", "reason"} <= set(value["classes"][0])
    assert value["stability"]["n_resamples"] == 5
    assert value["diagnosis"]["verdict"]
    assert value["written"][0].endswith("w.parquet")
    assert json.loads(call(*BINS, "--stability", 5, "--json").stdout)["classes"] == value["classes"]


def test_text_has_counts_and_verdict(call, stores):
    done = call(*BETA, "--stability", 3, "--n-clusters", 6, "--diagnose", stores / "birds", "--draws", 2)
    for message in ("birds", "most similarity", "always kept", "Take "):
        assert message in done.stdout
    assert "Linear discriminants" in done.stdout


def test_figures_and_page(call, stores):
    done = call(*BINS, "--figures", stores / "figures", "--html", stores / "page.html")
    assert ET.parse(stores / "figures" / "ranked.svg").getroot().tag.endswith("svg")
    assert "Without some images" in done.stderr
    assert "birds/c0" in (stores / "page.html").read_text(encoding="utf-8")


def test_page_shows_images_of_the_feature_source(call, stores, make_tree):
    photos = make_tree({f"c{n}": 5 for n in range(6)})
    images = open_images(photos).with_ids()
    index = images.table.set_column(
        images.table.schema.get_field_index("source"), "source", pa.array(["folder:../photos"] * 30).cast(NAME)
    )
    table = FeatureTable(features(images.labels, 3), index, FeatureTable.open(stores / "birds").header)
    table.write(stores / "seen")
    words = (*BETA, "--html", stores / "page.html")
    assert "Without some images" not in call(*words, pools=["seen"]).stderr
    html = (stores / "page.html").read_text(encoding="utf-8")
    assert html.count("data:image/webp") == 6
    photos.rename(stores / "moved")
    done = call(*words, pools=["seen"])
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("--selector", "bins"), {}, "--n-clusters K"),
        (("--selector", "bins", "--n-clusters", 6, "--alpha", 2), {}, "--alpha belongs to beta"),
        (("--alpha", 2), {}, "--selector none together with --alpha"),
        (("--no-select",), {}, "--no-select belongs to bins"),
        (("--preset", "official", "--alpha", 2), {}, "--preset official"),
        (("--selector", "bins", "--n-clusters", 49), {}, "48 target images for 49 clusters"),
        (("--selector", "beta", "--threshold", 99), {}, "weights are 0 at threshold 99"),
        ((), {"pools": ("birds", "birds")}, "called 'birds'"),
        ((), {"pools": ("birds", "blind")}, "have no label"),
        ((), {"pools": ("nowhere",)}, "no feature store"),
        (("--selector", "beta"), {"target": "empty"}, "the target is empty"),
        (("--selector", "beta"), {"target": "wide"}, "9 dimensions, while the pool has 8"),
        (("--selector", "beta"), {"target": "nan"}, "target"),
        (("--selector", "beta"), {"pools": ("one",)}, "one class only"),
        (("--diagnose", "birds"), {}, "--diagnose without --n-clusters"),
    ],
)
def test_user_errors_show_one_message(call, stores, words, options, message):
    FeatureTable.of(np.zeros((0, 8), np.float32)).write(stores / "empty")
    FeatureTable.of(np.ones((3, 9), np.float32)).write(stores / "wide")
    FeatureTable.of(np.full((3, 8), np.nan, np.float32)).write(stores / "nan")
    FeatureTable.of(np.ones((3, 8), np.float32), label=np.zeros(3, int)).write(stores / "one")
    done = call("--out", stores / "w.parquet", *words, **options, exit_code=1)
    assert done.output.count("Error: ") == 1
    assert message in done.output
    assert "Traceback" not in done.output
    assert not (stores / "w.parquet").exists()


def test_select_and_discover_have_the_same_default_selector(call):
    defaults = set()
    for name in ("select", "discover"):
        command = main.get_command(click.Context(main), name)
        params = command.get_params(click.Context(command))
        defaults.add(next(param.show_default for param in params if param.name == "selector"))
    assert defaults == {RunSpec.selector}
    value = json.loads(call("--json").stdout)
    assert value["selector"] == RunSpec.selector
    assert "label_outlook" not in value, "a forecast that was never compared with real gains"


def test_preset_uses_beta_by_default(call):
    assert json.loads(call("--preset", "paper", "--json").stdout)["selector"] == "beta"
    words = ("--preset", "paper", "--selector", "cui", "--n-clusters", 6, "--json")
    assert json.loads(call(*words).stdout)["selector"] == "cui"


def test_unwritable_output_raises(call, stores):
    (stores / "file").write_text("in the way")
    assert "Error: " in call(*BETA, "--out", stores / "file" / "w.parquet", exit_code=1).output


def test_file_without_weights_raises(stores):
    with pytest.raises(DataError, match="does not hold weights"):
        load_selection(stores / "nothing.parquet")


def test_official_preset_bounds_the_weights(call, stores):
    call("--preset", "official", "--out", stores / "w.parquet")
    weight = load_selection(stores / "w.parquet").sample_weight
    assert weight.min() >= 0.01
    assert weight.max() == 1


def test_importing_the_command_loads_nothing_heavy():
    code = "import sys, justright.cli.select; print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("'torch'", "'sklearn'", "'matplotlib'", "'ot'"):
        assert heavy not in out


def test_every_engine_writes_the_same_weights(call, stores):
    for engine in ("local", "processes"):
        call("--engine", engine, "--workers", 2, *BETA, "--out", stores / f"{engine}.parquet")
    assert (stores / "local.parquet").read_bytes() == (stores / "processes.parquet").read_bytes()


FAR = (
    "--selector",
    "beta",
    "--alpha",
    20,
    "--beta",
    1,
    "--reduction",
    "median",
    "--stability",
    10,
)  # nearly all weights vanish


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_nearly_zero_weights_warn_once_with_options(stores, more):
    """In a separate process, where no test captures the log."""
    stored = [str(stores / name) for name in ("birds", "pets", "target")]
    words = ["select", *stored[:2], "--target", stored[2], *map(str, FAR), *more]
    done = Program(*words).end()
    assert done.code == 0, done.err
    assert "below" not in done.out
    notes = [line for line in done.err.splitlines() if "below" in line]
    advice = "try --domain affine or --normalize mean (in Python domain='affine' or normalize='mean')"
    assert notes == [f"Note: 100% of the weights are below 0.001: labels will hardly count; {advice}."]
    if more:
        assert json.loads(done.out)["selector"] == "beta"
        assert done.err.splitlines() == notes


def test_library_warns_once(stores, caplog):
    table, target = FeatureTable.open(stores / "birds"), FeatureTable.open(stores / "target")
    with caplog.at_level(logging.WARNING):
        BetaSelector(20.0, 1.0, reduction="median").fit(table.features, table.labels, target.features)
    (record,) = caplog.records
    assert "in Python domain='affine' or normalize='mean'" in record.getMessage()


def test_stores_are_read_from_an_address(call, stores, tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTRIGHT_HOME", str(tmp_path / "home"))
    there = f"memory://{tmp_path.name}"
    for name in ("birds", "target"):
        FeatureTable.open(stores / name).write(f"{there}/{name}")
    words = [*map(str, BINS), "--stability", "2", "--diagnose", f"{there}/birds", "--draws", "2", "--json"]
    here = json.loads(call(*words[:-5], "--json", pools=("birds",)).stdout)
    done = invoke(["select", f"{there}/birds", "--target", f"{there}/target", *words])
    result = json.loads(done.stdout)
    assert result["request"]["pool"] == f"{there}/birds"
    assert result["classes"] == here["classes"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--diagnose", "birds"), "--diagnose without --n-clusters"),
        (("--diagnose", "wide", "--n-clusters", 6), "do not belong together"),
        (("--n-clusters", 49), "48 target images for 49 clusters"),
        (("--out", "w.csv"), "a name that ends in .parquet"),
        (("--html", "birds/store.json/page.html"), "Not a directory"),
        (("--selector", "beta", "--threshold", 1, "--normalize", "max"), "threshold=1 together with"),
    ],
)
def test_invalid_options_raise_before_selection(call, stores, monkeypatch, words, message):
    monkeypatch.setattr(Selector, "fit_stream", lambda *_, **__: pytest.fail("selecting has begun"))
    monkeypatch.chdir(stores)
    wide = FeatureTable.of(np.ones((3, 9), np.float32), label=np.zeros(3, int))
    FeatureTable(wide.features, wide.index, replace(wide.header, backbone={"name": "another"})).write(stores / "wide")
    assert message in call(*words, exit_code=1).output
