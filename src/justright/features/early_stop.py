"""Run a network only up to one of its modules."""

from __future__ import annotations

import threading
from typing import Any

from torch import Tensor, nn

from justright.features.guarded_timm import Network


class _Entered(Exception):  # noqa: N818
    """Carries what a module was called with out of a forward pass that need not go on."""


_asked = threading.local()  # each thread stops where it wants to; the hook itself stays, for others may be running


def make_stoppable(module: nn.Module) -> None:
    """Have a forward pass end at this module where `arguments_at` asks for it."""
    module.register_forward_pre_hook(_stop_if_asked, with_kwargs=True)


def _stop_if_asked(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    if getattr(_asked, "module", None) is module:
        raise _Entered(*positional, named)


def arguments_at(model: Network, module: nn.Module, images: Tensor) -> tuple[Any, ...]:
    """Run the model up to a stoppable module: its positional arguments, then its named ones as a dict."""
    _asked.module = module
    try:
        model.forward_features(images)
    except _Entered as entered:
        return entered.args
    finally:
        _asked.module = None
    raise RuntimeError(f"{type(model).__name__} never runs its last stage")
