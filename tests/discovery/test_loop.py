from __future__ import annotations

import copy
import json
import logging

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.discovery.tiny import (
    TRAINED,
    Stopped,
    backbone_of_noise,
    config_of,
    data_of,
    drawn_split,
    final_bytes,
    learned,
    newest,
    records,
    stop_after,
)

from justright.discovery import base
from justright.discovery.configs import LARGE_VIT, SHARE_OF_LARGE_VIT, SHARE_WITHOUT_NORM
from justright.discovery.loop import DivergedError, Training, learning_rate
from justright.discovery.processes import Processes
from justright.features.bank import FreshViews, ViewBank
from justright.utils.errors import DataError

LOW_RATE = {"learning_rate": 0.01}


@pytest.fixture
def trainings(monkeypatch):
    """All trainings that are created; none of them runs."""
    created = []

    class Recorded(Training):
        def run(self, what):
            created.append(self)

    monkeypatch.setattr(base, "Training", Recorded)
    return created


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "truncated":
        del content[len(content) // 2 :]
    else:
        content[-5] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["truncated", "a bit flipped"])
@pytest.mark.parametrize("name", ["simgcd", "mugcd"])
def test_damaged_newest_checkpoint_falls_back_to_the_previous_one(
    name, how, split, backbone, bank, uninterrupted, tmp_path, saved_often, caplog
):
    whole = uninterrupted(name).folder
    with pytest.raises(Stopped):
        learned(name, split, backbone, bank, tmp_path / "damaged", progress=stop_after(8))
    folder = tmp_path / "damaged" / "stage1" if name == "mugcd" else tmp_path / "damaged"
    damage(newest(folder), how)
    with caplog.at_level(logging.WARNING):
        learned(name, split, backbone, bank, tmp_path / "damaged")
    assert "step-000000008.safetensors is damaged" in caplog.text
    assert "using the checkpoint before it" in caplog.text
    assert final_bytes(tmp_path / "damaged") == final_bytes(whole)
    assert records(tmp_path / "damaged") == records(whole)


def test_two_damaged_checkpoints_raise(split, backbone, bank, tmp_path, saved_often):
    learned("gcd", split, backbone, bank, tmp_path)
    for path in (tmp_path / "checkpoint").glob("step-*"):
        damage(path, "truncated")
    for _ in range(2):  # the second call raises as well
        with pytest.raises(DataError, match=r"(?s)every checkpoint in .* is damaged.*delete the folder"):
            learned("gcd", split, backbone, bank, tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 1}, "seed: 0 before, 1 now"),
        ({"learning_rate": 0.2}, "config.learning_rate: 0.1 before, 0.2 now"),
        ({"micro_batch": 3}, "config.micro_batch: None before, 3 now"),
        ({"n": 6}, "n_categories: 5 before, 6 now"),
        ({"weight": np.linspace(0.1, 2, 12)}, "data.weights: "),
        ({"weight": np.arange(12) % 2.0}, "data.used: "),
        ({"weight": np.linspace(0.1, 2, 12), "fit": {"weighting": "resample"}}, "data.chance: None before, "),
        ({"held_out_share": 0.5}, "data.used: "),
    ],
)
def test_resume_rejects_changed_settings(changed, message, split, backbone, bank, uninterrupted, tmp_path):
    uninterrupted("simgcd", n_epochs=1, copy_to=tmp_path)
    with pytest.raises(DataError, match="was trained with other settings") as raised:
        learned("simgcd", split, backbone, bank, tmp_path, n_epochs=1, **changed)
    assert message in str(raised.value)


def test_resume_rejects_other_images_or_backbone(split, backbone, bank, uninterrupted, tmp_path):
    uninterrupted("gcd", n_epochs=1, copy_to=tmp_path)
    with pytest.raises(DataError, match=r"data\.labeled_images: .*\n  data\.target_images: "):
        learned("gcd", drawn_split(seed=1), backbone, bank, tmp_path, n_epochs=1)
    with pytest.raises(DataError, match="backbone: "):
        learned("gcd", split, backbone_of_noise(seed=1), bank, tmp_path, n_epochs=1)
    tuned_less = copy.deepcopy(backbone)
    tuned_less.model.blocks[-1].mlp.requires_grad_(False)
    with pytest.raises(DataError, match="other settings:\n  frozen: "):
        learned("gcd", split, tuned_less, bank, tmp_path, n_epochs=1)


def test_resume_rejects_changed_stage1_of_mugcd(split, backbone, bank, uninterrupted, tmp_path):
    uninterrupted("mugcd", n_epochs=1, copy_to=tmp_path)
    with pytest.raises(DataError, match=r"config\.out_dim: 8 before, 4 now"):
        learned("mugcd", split, backbone, bank, tmp_path, n_epochs=1, stage1=config_of("gcd", n_epochs=1, out_dim=4))


def test_finished_training_does_not_run_again(split, backbone, bank, uninterrupted, tmp_path, monkeypatch):
    first = uninterrupted("simgcd", copy_to=tmp_path).method
    before = final_bytes(tmp_path)
    monkeypatch.setattr(Training, "_step", lambda *_: pytest.fail("trained again"))
    again = learned("simgcd", split, backbone, bank, tmp_path)
    assert final_bytes(tmp_path) == before
    assert again.labels_.tolist() == first.labels_.tolist()
    assert again.confidence_.tolist() == first.confidence_.tolist()


def test_resume_drops_damaged_lines_of_metrics(split, backbone, bank, uninterrupted, tmp_path, saved_often):
    whole = uninterrupted("gcd").folder
    with pytest.raises(Stopped):
        learned("gcd", split, backbone, bank, tmp_path / "cut", progress=stop_after(7))  # in the second epoch
    path = tmp_path / "cut" / "metrics.jsonl"
    path.write_text(path.read_text() + '{"epoch": 1, "loss": 2.5}\n\0\0\0\n{"epoch": 1, "learning_r')
    learned("gcd", split, backbone, bank, tmp_path / "cut")
    assert records(tmp_path / "cut") == records(whole)
    assert [list(record) for record in records(tmp_path / "cut")] == [list(record) for record in records(whole)]


def test_metrics_without_checkpoint_start_over(split, backbone, bank, tmp_path):
    with pytest.raises(Stopped):
        learned("gcd", split, backbone, bank, tmp_path, progress=stop_after(7))
    assert len(records(tmp_path)) == 1
    learned("gcd", split, backbone, bank, tmp_path)
    assert [record["epoch"] for record in records(tmp_path)] == [0, 1]


@pytest.fixture
def make_row_nan(monkeypatch):
    """A function that makes the weak views of a row NaN."""

    def make_nan(row):
        batch = ViewBank.batch

        def with_nan(self, rows, views):
            stored = batch(self, rows, views)
            if type(self.transform).__name__ == "Weak":
                stored[0][torch.from_numpy(rows == row)] = torch.nan
            return stored

        monkeypatch.setattr(ViewBank, "batch", with_nan)

    return make_nan


@pytest.mark.parametrize("name", TRAINED)
def test_non_finite_image_stops_training_and_is_named(name, split, backbone, bank, tmp_path, saved_often, make_row_nan):
    data = data_of(split)
    n_before = 3
    batches = data.batches(8, seed=0).rows(0)
    row = next(row for row in batches[n_before] if row not in batches[:n_before])
    make_row_nan(row)
    folder = tmp_path / "stage1" if name == "mugcd" else tmp_path
    with pytest.raises(DivergedError) as stopped:
        learned(name, split, backbone, bank, tmp_path, batch_size=8)
    message = str(stopped.value)
    if name != "xcon":  # whose experts draw from the same images, perhaps earlier
        assert f"epoch 1, step {n_before + 1} of" in message
        assert newest(folder).name == f"step-{n_before:09d}.safetensors"
    terms = ("self_contrastive", "experts", "mean_shift", "smoothed_contrastive")
    assert any(term in message for term in terms)
    assert data.images.ids[row] in message
    assert "lower learning rate" in message
    assert all(torch.isfinite(tensor).all() for tensor in load_file(newest(folder)).values())


def test_failed_step_changes_no_parameter(split, backbone, bank, tmp_path, saved_often, monkeypatch):
    method = trained_until_an_infinite_gradient("simgcd", 3, split, backbone, bank, tmp_path, monkeypatch)
    saved = load_file(newest(tmp_path))
    for name, tensor in method.backbone_.tuned_state().items():
        assert torch.equal(tensor, saved[f"network/backbone.model.{name}"])


def trained_until_an_infinite_gradient(name, step, split, backbone, bank, folder, monkeypatch):
    seen, methods = [], []
    fit = base.TrainedDiscovery.fit

    def recorded(self, *arguments, **options):
        methods.append(self)
        return fit(self, *arguments, **options)

    def make_infinite(self, parameters):
        seen.append(1)
        if len(seen) == step:
            parameters[0].grad[0] = torch.inf

    monkeypatch.setattr(base.TrainedDiscovery, "fit", recorded)
    monkeypatch.setattr(Processes, "sum_gradients", make_infinite)
    with pytest.raises(DivergedError, match=f"the gradient is not finite in epoch 1, step {step} of 5"):
        learned(name, split, backbone, bank, folder)
    return methods[0]


@pytest.mark.parametrize("name", ["gcd", "simgcd", "mugcd"])
def test_bank_and_fresh_views_give_the_same_losses(name, split, backbone, bank, tmp_path, monkeypatch):
    settings = {"bank_precision": "float32", "n_epochs": 2, **LOW_RATE}
    if name == "mugcd":
        settings["stage1"] = config_of("gcd", n_epochs=1, bank_precision="float32", **LOW_RATE)
    learned(name, split, backbone, bank, tmp_path / "bank", **settings)
    monkeypatch.setattr(FreshViews, "choose", ViewBank.choose)  # drawn as those of the bank
    monkeypatch.setattr(FreshViews, "n_views", 2, raising=False)
    monkeypatch.setattr(ViewBank, "build", only_plain(ViewBank.build))
    if name == "mugcd":
        settings["stage1"] = config_of("gcd", n_epochs=1, views="fresh", bank_precision="float32", **LOW_RATE)
    learned(name, split, backbone, bank, tmp_path / "fresh", **settings | {"views": "fresh"})
    for stored, fresh in zip(records(tmp_path / "bank"), records(tmp_path / "fresh"), strict=True):
        assert fresh == pytest.approx(stored, rel=1e-5, abs=1e-5)


def only_plain(build):
    def checked(self, *arguments):
        assert type(self.transform).__name__ == "Plain", "fresh views store nothing"
        return build(self, *arguments)

    return checked


@pytest.mark.parametrize("name", TRAINED)
def test_micro_batches_keep_loss_and_gradients(name, split, backbone, bank, tmp_path):
    whole = learned(name, split, backbone, bank, tmp_path / "whole", n_epochs=1, **LOW_RATE)
    assert whole.config_.micro_batch is None
    settings = {"micro_batch": 3, "n_epochs": 1, **LOW_RATE}
    if name == "mugcd":
        settings["stage1"] = config_of("gcd", **settings)
    learned(name, split, backbone, bank, tmp_path / "parts", **settings)
    assert records(tmp_path / "parts")[0] == pytest.approx(records(tmp_path / "whole")[0], rel=1e-5)
    found = load_file(newest(tmp_path / "parts"))
    for key, tensor in load_file(newest(tmp_path / "whole")).items():  # momentum is a sum of gradients
        torch.testing.assert_close(found[key], tensor, rtol=1e-3, atol=1e-4, msg=key)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_stays_close_and_can_be_resumed(
    precision, split, backbone, bank, uninterrupted, tmp_path, saved_often
):
    half = {"precision": precision, "n_epochs": 4 if precision == "float16" else 2, **LOW_RATE}
    learned("simgcd", split, backbone, bank, tmp_path / "half", **half)
    single, other = records(uninterrupted("simgcd", **LOW_RATE).folder), records(tmp_path / "half")
    assert other[0] != single[0]
    if precision == "bfloat16":
        assert other[0]["loss"] == pytest.approx(single[0]["loss"], rel=0.02)
        assert other[1]["loss"] == pytest.approx(single[1]["loss"], rel=0.1)
    else:  # the scaler of float16 skips the first steps until its scale is small enough
        assert other[3]["loss"] < 0.8 * other[0]["loss"]
    assert all(tensor.dtype == torch.float32 for tensor in load_file(newest(tmp_path / "half")).values())
    with pytest.raises(Stopped):
        learned("simgcd", split, backbone, bank, tmp_path / "again", progress=stop_after(7), **half)
    learned("simgcd", split, backbone, bank, tmp_path / "again", **half)
    assert final_bytes(tmp_path / "again") == final_bytes(tmp_path / "half")


def test_learning_rate_follows_the_schedule(split, backbone, bank, tmp_path, monkeypatch):
    used, step = [], torch.optim.SGD.step

    def recorded(self, *arguments):
        used.append({group["lr"] for group in self.param_groups})
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.SGD, "step", recorded)
    learned("simgcd", split, backbone, bank, tmp_path, n_epochs=4, learning_rate=0.2, floor_share=0.01)
    expected = [learning_rate(epoch, 4, 0.2, 0.01) for epoch in range(4)]
    assert used == [{rate} for rate in expected for _ in range(5)]
    assert [record["learning_rate"] for record in records(tmp_path)] == expected


def test_simgcd_decays_matrices_only(split, backbone, bank, trainings):
    learned("simgcd", split, backbone, bank)
    (training,) = trainings
    vectors, matrices = sorted(training.optimizer.param_groups, key=lambda group: group["weight_decay"])
    assert matrices["weight_decay"] == 5e-5
    assert all(p.ndim > 1 for p in matrices["params"])
    assert vectors["weight_decay"] == 0
    assert all(p.ndim == 1 for p in vectors["params"])
    assert len(matrices["params"]) + len(vectors["params"]) == len(training.trained)
    assert matrices["momentum"] == vectors["momentum"] == 0.9


@pytest.mark.parametrize("name", ["gcd", "xcon"])
def test_gcd_and_xcon_decay_all_parameters(name, split, backbone, bank, trainings):
    learned(name, split, backbone, bank)
    (group,) = trainings[0].optimizer.param_groups
    assert group["weight_decay"] == 5e-5
    assert len(group["params"]) == len(trainings[0].trained)


@pytest.mark.parametrize("name", TRAINED)
def test_backbone_share_scales_the_learning_rate(name, split, backbone, bank, monkeypatch):
    used, step = [], Training._step

    def recorded(self, *arguments):
        rates = {id(p): group["lr"] for group in self.optimizer.param_groups for p in group["params"]}
        used.append({rates[id(p)] for part, p in self.trained.items() if part.startswith("backbone.")})
        used.append({rates[id(p)] for part, p in self.trained.items() if not part.startswith("backbone.")})
        return step(self, *arguments)

    monkeypatch.setattr(Training, "_step", recorded)
    learned(name, split, backbone, bank, n_epochs=1, n_steps=1, learning_rate=0.2, backbone_share=0.25)
    assert used[-2:] == [{0.05}, {0.2}]


@pytest.mark.parametrize(("ends_in_norm", "share"), [(True, 1.0), (False, SHARE_WITHOUT_NORM)])
def test_networks_without_norm_default_to_a_low_rate(
    ends_in_norm, share, split, backbone, bank, trainings, monkeypatch
):
    monkeypatch.setattr(type(backbone.cut), "ends_in_norm", ends_in_norm)
    learned("gcd", split, backbone, bank)
    groups = trainings[0].optimizer.param_groups
    shares = {id(p): group["share"] for group in groups for p in group["params"]}
    found = {name.startswith("backbone."): shares[id(p)] for name, p in trainings[0].trained.items()}
    assert found == {True: share, False: 1.0}


@pytest.mark.parametrize("steady_share", [0.6, 0.0])
@pytest.mark.parametrize("dim", [LARGE_VIT - 1, LARGE_VIT])
def test_only_a_large_vit_at_a_steady_rate_gets_a_low_rate(dim, steady_share):
    is_low = steady_share > 0 and dim == LARGE_VIT
    share = config_of("gcd", steady_share=steady_share).tuned_share(ends_in_norm=True, dim=dim)
    assert share == (SHARE_OF_LARGE_VIT if is_low else 1.0)


def test_backbone_share_0_trains_the_heads_only(split, backbone, bank):
    method = learned("simgcd", split, backbone, bank, backbone_share=0.0)
    before = backbone.tuned_state()
    assert all(torch.equal(tensor, before[name]) for name, tensor in method.backbone_.tuned_state().items())


@pytest.mark.parametrize("name", ["gcd", "xcon", "simgcd"])
def test_last_epoch_is_used(name, uninterrupted):
    folder, method = uninterrupted(name)
    saved = load_file(newest(folder))
    for key, tensor in method.backbone_.tuned_state().items():
        assert torch.equal(tensor, saved[f"network/backbone.model.{key}"])


def test_only_the_last_block_and_the_heads_are_trained(backbone, uninterrupted):
    before, after = backbone.full_state_dict(), uninterrupted("simgcd").method.backbone_.full_state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.startswith("blocks.1.") for name in changed)
    assert torch.equal(before["norm.weight"], after["norm.weight"])


def test_every_trained_parameter_gets_a_gradient(split, backbone, bank, monkeypatch):
    def check(self, parameters):
        assert all(p.grad is not None for p in parameters)

    monkeypatch.setattr(Processes, "sum_gradients", check)
    for name in TRAINED:
        learned(name, split, backbone, bank, n_epochs=1)


def test_metrics_have_a_line_per_epoch_with_every_term(uninterrupted):
    written = (uninterrupted("simgcd").folder / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in written.splitlines()]
    terms = ["loss", "self_contrastive", "sup_contrastive", "classification", "distillation", "mean_entropy"]
    assert all(list(line) == ["epoch", "learning_rate", *terms, "seconds"] for line in lines)
    assert [line["epoch"] for line in lines] == [0, 1]


def test_without_a_folder_nothing_is_kept(split, backbone, bank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learned("gcd", split, backbone, bank)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "n_stages"), [("simgcd", 1), ("mugcd", 2)])
def test_center_is_the_same_after_resume(name, n_stages, split, backbone, bank, uninterrupted, tmp_path, saved_often):
    folder, whole = uninterrupted(name, center="always")
    with pytest.raises(Stopped):
        learned(name, split, backbone, bank, tmp_path / "left", center="always", progress=stop_after(7, n_stages - 1))
    again = learned(name, split, backbone, bank, tmp_path / "left", center="always")
    assert again.assigner_.center.tobytes() == whole.assigner_.center.tobytes()
    assert final_bytes(tmp_path / "left") == final_bytes(folder)
