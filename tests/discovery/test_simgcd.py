from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.discovery.tiny import config_of, data_of, final_bytes, learned

from justright.discovery.gcd import balanced_batches
from justright.discovery.simgcd import SimGCDLearner
from justright.losses import SimGCDObjective
from justright.models import teacher_temperature


@pytest.fixture
def learner(split, backbone):
    batches = balanced_batches(data_of(split), 8, seed=0)
    config = config_of("simgcd", n_epochs=40, entropy_scale=3.0)
    return SimGCDLearner(backbone, config, batches, 5, torch.Generator().manual_seed(0))


def test_the_network_is_its_own_teacher_at_the_temperature_of_the_epoch(learner):
    drawn = torch.Generator().manual_seed(1)
    outputs = {"projections": torch.randn(2, 4, 6, generator=drawn), "logits": torch.rand(2, 4, 5, generator=drawn)}
    labels, weight = torch.tensor([0, 1, -1, 4]), torch.tensor([1.0, 0.5, 1.0, 2.0])
    objective = SimGCDObjective(entropy_scale=3.0)
    for epoch in (0, 2, 39):
        found = learner.objective([outputs], [labels], [weight], epoch)
        temperature = teacher_temperature(epoch, 0.07, 0.04, learner.config.n_warmup)
        expected = objective(*outputs.values(), outputs["logits"], labels, weight, temperature_teacher=temperature)
        assert found.total == expected.total
    assert learner.config.n_warmup == 6  # the same share of 40 epochs as 30 of 200


def test_a_step_sees_two_weak_views_through_both_heads(learner, backbone):
    assert learner.streams == {"weak": 2}
    outputs = learner.outputs({"weak": backbone.prefix(torch.randn(6, 3, 16, 16))}, part=0)
    assert outputs["projections"].shape == (2, 3, 8)
    assert outputs["logits"].shape == (2, 3, 5)
    assert outputs["logits"].abs().max() <= 1


def test_the_prototypes_decide(split, backbone, bank, tmp_path):
    method = learned("simgcd", split, backbone, bank, tmp_path)
    prototypes = np.frombuffer(final_bytes(tmp_path)["network/heads.classifier.prototypes"], np.float32).reshape(5, -1)
    unit = [row / np.linalg.norm(row) for row in (*prototypes, *method.features_)]
    cosine = np.stack(unit[5:]) @ np.stack(unit[:5]).T
    assert method.labels_.tolist() == cosine.argmax(axis=1).tolist()
    assert (method.confidence_ > 0.2 - 1e-6).all()
    assert (method.confidence_ <= 1).all()


def test_first_parameters_of_heads_do_not_depend_on_the_global_generator(split, backbone, bank, tmp_path):
    for number in (0, 1):
        torch.manual_seed(number)
        learned("simgcd", split, backbone, bank, tmp_path / str(number), n_epochs=1)
    assert final_bytes(tmp_path / "0") == final_bytes(tmp_path / "1")
