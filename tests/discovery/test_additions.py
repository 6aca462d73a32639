from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.discovery.tiny import Stopped, config_of, final_bytes, learned, newest, records

from justright.discovery import loop
from justright.discovery.additions import Additions
from justright.losses import DebiasedLoss, DetectorLoss, KnownEntropyLoss, LossParts

ON = {"known_scale": 2.0, "known_threshold": 0.0, "debiased_scale": 4.0, "debiased_threshold": 0.0}


def made(n_known=3, **settings) -> Additions:
    return Additions(config_of("simgcd", **settings), 5, n_known, 12, torch.Generator().manual_seed(0))


def test_nothing_is_added_unless_a_scale_is_set(split, backbone, bank, tmp_path):
    learned("simgcd", split, backbone, bank, tmp_path, n_epochs=1, detector_scale=1.0)
    assert not [name for name in final_bytes(tmp_path) if "additions" in name]
    assert not {"known_entropy", "debiased", "detector"} & records(tmp_path)[0].keys()


@pytest.mark.parametrize(
    ("settings", "n_known", "heads"),
    [
        (ON, 3, {"second", "margins"}),
        ({"known_scale": 2.0}, 3, set()),
        ({"debiased_scale": 1.0, "detector_scale": 0.0}, 3, {"second"}),
        (ON, 0, {"second"}),
    ],
)
def test_heads_are_there_for_what_is_asked_and_can_be_told(settings, n_known, heads):
    additions = made(n_known, **settings)
    outputs = additions(torch.randn(2, 4, 12))
    assert outputs.keys() == heads
    assert outputs.get("margins", torch.zeros(2, 4, 3)).shape == (2, 4, 3)


def test_the_loss_of_a_step_is_that_of_the_method_and_each_addition_by_its_scale():
    additions = made(**ON)
    config = additions.config
    drawn = torch.Generator().manual_seed(1)
    outputs = additions(torch.randn(2, 4, 12, generator=drawn)) | {"logits": torch.rand(2, 4, 5, generator=drawn)}
    labels, weight = torch.tensor([0, 1, -1, -1]), torch.tensor([1.0, 0.5, 1.0, 1.0])
    usual, logits, detector = additions.usual.clone(), outputs["logits"], DetectorLoss(config)
    total, terms = additions.added_to(LossParts(torch.tensor(1.0), {"own": torch.tensor(1.0)}), outputs, labels, weight)
    assert terms["known_entropy"] == KnownEntropyLoss(3, config)(logits, labels, usual) > 0
    assert terms["detector"] == detector(outputs["margins"], labels, weight)
    certainty = detector.certainty(outputs["margins"])
    assert terms["debiased"] == DebiasedLoss(config)(outputs["second"], logits, certainty, labels, weight)
    expected = 1.0 + 2.0 * terms["known_entropy"] + 0.01 * terms["detector"] + 4.0 * terms["debiased"]
    torch.testing.assert_close(total.detach(), expected)
    assert torch.equal(additions.usual, KnownEntropyLoss(3, config).moved(usual, logits))


@pytest.mark.parametrize("method", ["simgcd", "mugcd"])
def test_stopped_in_its_midst_it_goes_on_with_what_it_remembers(method, split, backbone, bank, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)  # after each step
    more = ON | {"n_steps": 3}
    learned(method, split, backbone, bank, tmp_path / "whole", **more)
    n_first = 6 if method == "mugcd" else 0  # steps of its first training, which has no additions
    with pytest.raises(Stopped):
        learned(method, split, backbone, bank, tmp_path / "cut", fit=stopped_after(n_first + 4), **more)
    assert newest(tmp_path / "cut").name == "step-000000004.safetensors"
    learned(method, split, backbone, bank, tmp_path / "cut", **more)
    whole = final_bytes(tmp_path / "whole")
    assert final_bytes(tmp_path / "cut") == whole
    assert records(tmp_path / "cut") == records(tmp_path / "whole")
    assert {"known_entropy", "debiased", "detector"} <= records(tmp_path / "whole")[0].keys()
    usual = np.frombuffer(whole["network/additions.usual"], np.float32)
    assert usual.sum() == pytest.approx(1, abs=1e-5)
    assert usual.std() > 0


def stopped_after(n_steps):
    """As `stop_after`, over all trainings of a method."""
    n_done = 0

    def track(steps, total, what):
        nonlocal n_done
        for step in steps:
            yield step
            n_done += what.startswith("training")
            if n_done == n_steps and what.startswith("training"):
                raise Stopped

    return {"track": track}
