from __future__ import annotations

import pytest
import torch
from torch import nn

from justright.discovery.mugcd import MeanTeacher


@pytest.fixture
def student() -> nn.Sequential:
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    network[0].requires_grad_(False)
    return network


def move(student, value):
    with torch.no_grad():
        for parameter in student.parameters():
            if parameter.requires_grad:
                parameter.fill_(value)


def test_teacher_starts_as_its_student(student):
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(MeanTeacher(student)(x), student.eval()(x))


def test_two_updates_match_hand_computed_values(student):
    move(student, 1.0)
    teacher = MeanTeacher(student)
    move(student, 5.0)
    teacher.update(student, 0.75)  # 0.75 * 1 + 0.25 * 5 = 2
    assert teacher.network[2].weight.flatten().tolist() == pytest.approx([2.0] * 8)
    move(student, -2.0)
    teacher.update(student, 0.5)  # 0.5 * 2 - 0.5 * 2 = 0
    assert teacher.network[2].bias.tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert student[2].bias.tolist() == [-2.0, -2.0], "the student does not change"


def test_momentum_1_stays_and_momentum_0_becomes_the_student(student):
    move(student, 1.0)
    teacher = MeanTeacher(student)
    move(student, 3.0)
    teacher.update(student, 1.0)
    assert (teacher.network[2].weight == 1.0).all()
    teacher.update(student, 0.0)
    assert (teacher.network[2].weight == 3.0).all()


def test_frozen_parameters_are_shared_and_tuned_ones_are_not(student):
    teacher = MeanTeacher(student)
    assert teacher.network[0].weight is student[0].weight
    assert teacher.network[2].weight is not student[2].weight
    before = student[0].weight.clone()
    teacher.update(student, 0.5)
    assert torch.equal(student[0].weight, before)


def test_buffers_are_copied(student):
    teacher = MeanTeacher(student)
    student.train()(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))
    assert not torch.equal(teacher.network[1].running_mean, student[1].running_mean)
    teacher.update(student, 0.9)
    assert torch.equal(teacher.network[1].running_mean, student[1].running_mean)
    assert torch.equal(teacher.network[1].num_batches_tracked, student[1].num_batches_tracked)


def test_teacher_has_no_gradient(student):
    teacher = MeanTeacher(student)
    assert not any(p.requires_grad for p in teacher.parameters())
    assert student[2].weight.requires_grad
    assert not teacher(torch.ones(2, 3)).requires_grad


def test_teacher_stays_in_evaluation_mode(student):
    teacher = MeanTeacher(student.train())
    assert nn.ModuleList([teacher]).train()[0] is teacher
    assert not any(module.training for module in teacher.modules())
    assert student.training


def test_another_network_is_rejected(student):
    with pytest.raises(ValueError, match="shorter"):
        MeanTeacher(student).update(nn.Linear(3, 4).requires_grad_(False), 0.5)
