from __future__ import annotations

import pytest
import torch
from torch import nn

from justright.discovery.learner import trainable_copy
from justright.discovery.mugcd import follow


@pytest.fixture
def student() -> nn.Sequential:
    network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    network[0].requires_grad_(False)
    return network


def move(student, value):
    with torch.no_grad():
        for parameter in student.parameters():
            if parameter.requires_grad:
                parameter.fill_(value)


def test_two_updates_match_hand_computed_values(student):
    move(student, 1.0)
    teacher = trainable_copy(student)
    move(student, 5.0)
    follow(teacher, student, 0.75)  # 0.75 * 1 + 0.25 * 5 = 2
    assert teacher[1].weight.flatten().tolist() == pytest.approx([2.0] * 8)
    move(student, -2.0)
    follow(teacher, student, 0.5)  # 0.5 * 2 - 0.5 * 2 = 0
    assert teacher[1].bias.tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert student[1].bias.tolist() == [-2.0, -2.0], "the student does not change"


def test_momentum_1_stays_and_momentum_0_becomes_the_student(student):
    move(student, 1.0)
    teacher = trainable_copy(student)
    move(student, 3.0)
    follow(teacher, student, 1.0)
    assert (teacher[1].weight == 1.0).all()
    follow(teacher, student, 0.0)
    assert (teacher[1].weight == 3.0).all()


def test_frozen_parameters_do_not_move(student):
    teacher = trainable_copy(student)
    before = student[0].weight.clone()
    follow(teacher, student, 0.5)
    assert teacher[0].weight is student[0].weight
    assert torch.equal(student[0].weight, before)


def test_another_network_is_rejected(student):
    with pytest.raises(ValueError, match="shorter"):
        follow(trainable_copy(student), nn.Linear(3, 4).requires_grad_(False), 0.5)
