"""The teacher of muGCD: a moving average of its student."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


def own_copy(network: Module) -> Module:
    """A copy that may be tuned; what is frozen is shared with the original."""
    # What deepcopy finds in its memo it takes as copied already: a frozen prefix need not lie in memory twice.
    frozen: dict[int, Any] = {id(p): p for p in network.parameters() if not p.requires_grad}
    return copy.deepcopy(network, frozen)


class MeanTeacher(nn.Module):
    """A copy of a student that follows it slowly and never learns by gradients.

    theta_T <- w theta_T + (1 - w) theta_S,     w the momentum

    It starts as its student. Parameters that need no gradient then are shared with the student instead of copied, so
    freeze first. Buffers, such as the running statistics of batch normalization, are taken over as they are, and the
    teacher stays in evaluation mode so as not to change its own.
    """

    def __init__(self, student: nn.Module):
        super().__init__()
        self.network = own_copy(student).requires_grad_(False)
        self.eval()

    def forward(self, *inputs: Tensor) -> Any:
        """What the averaged network gives, without gradient."""
        with torch.no_grad():
            return self.network(*inputs)

    def update(self, student: nn.Module, momentum: float) -> None:
        """Move one step towards the student; 1 stays, 0 becomes the student."""
        with torch.no_grad():
            for average, latest in zip(self.network.parameters(), student.parameters(), strict=True):
                if latest.requires_grad:
                    average.lerp_(latest, 1 - momentum)
            for held, current in zip(self.network.buffers(), student.buffers(), strict=True):
                held.copy_(current)

    def train(self, mode: bool = True) -> MeanTeacher:
        """Stay in evaluation mode, also when the network that holds this teacher goes to train."""
        return super().train(False)
