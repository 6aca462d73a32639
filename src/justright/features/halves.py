"""Where a network is cut, in general: what crosses the cut, and how a network is stopped there."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from justright.features.guarded_timm import Network

Stored = tuple[Float[Tensor, " batch ..."], ...]
"""What crosses the cut: one entry an image in each tensor, channels on the last axis."""


class Cut(ABC):
    """Prefix and suffix of one network. Gradients and modes are the caller's business."""

    names: tuple[str, ...]
    """A name for each stored tensor. The first is the large one, which a bank may keep in fewer bits."""

    tuned: tuple[str, ...]
    """The modules that training changes, by path in the network."""

    ends_in_norm: bool
    """Whether features leave the network through a norm of their own, as in a ViT, or as pooled activations."""

    def __init__(self, model: Network):
        self.model = model

    @abstractmethod
    def prefix(self, images: Float[Tensor, "batch 3 height width"]) -> Stored:
        """The frozen part."""

    @abstractmethod
    def suffix(self, stored: Stored) -> Float[Tensor, "batch dim"]:
        """The tuned part, the frozen final norm and the pooling."""


def whole(model: Network, images: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch dim"]:
    """The feature as the uncut network computes it."""
    return model.forward_head(model.forward_features(images), pre_logits=True)


class _Entered(Exception):  # noqa: N818
    """Carries what a module was called with out of a forward pass that need not go on."""


_asked = threading.local()  # each thread stops where it wants to; the hook itself stays, for others may be running


def _stop_if_asked(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    if getattr(_asked, "module", None) is module:
        raise _Entered(*positional, named)


def make_stoppable(module: nn.Module) -> None:
    """Have a forward pass end at this module where `entering` asks for it."""
    module.register_forward_pre_hook(_stop_if_asked, with_kwargs=True)


def entering(model: Network, module: nn.Module, images: Tensor) -> tuple[Any, ...]:
    """Run the model up to a stoppable module: its positional arguments, then its named ones as a dict."""
    _asked.module = module
    try:
        model.forward_features(images)
    except _Entered as entered:
        return entered.args
    finally:
        _asked.module = None
    raise RuntimeError(f"{type(model).__name__} never runs its last stage")
