"""Frozen conv nets on a CPU through OpenVINO, an extra: `pip install 'justright[cpu]'`.

Two to three times as fast as torch, and equal to it up to rounding in float32 (benchmarks/bench_fast_cpu.py). ViTs gain
a tenth at best, for most of their time is matrix products that torch does near the pace of the processor
(benchmarks/bench_vit_bound.py), so they stay with torch, and so does a network that cannot be converted or comes out
otherwise. What was computed names its runtime in the header of a store, the key of a cache and the name of a bank.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from justright.utils.parallel import n_cores

_log = logging.getLogger(__name__)

TOLERANCE = 1e-4  # results may differ by this share of the largest number; a network that differs more stays with torch


@lru_cache(maxsize=1)
def _openvino() -> Any:
    """The runtime, or None where it is not installed."""
    # it reports its import, and each conversion, to its makers: a library that sees private images reports to nobody
    telemetry = {name: sys.modules[name] for name in sys.modules if name == "openvino_telemetry"}
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    try:
        import openvino
        from openvino.frontend.pytorch import ts_decoder  # noqa: F401
    except ImportError:
        return None
    finally:
        del sys.modules["openvino_telemetry"]
        sys.modules.update(telemetry)
    return openvino


class NetworkPart(nn.Module):
    """Some of what a network computes, as a module of its own."""

    def __init__(self, network: nn.Module, compute: Callable[[Tensor], Tensor | tuple[Tensor, ...]]):
        super().__init__()
        self.network, self.compute = network, compute

    def forward(self, given: Tensor) -> Tensor | tuple[Tensor, ...]:
        """What it computes."""
        return self.compute(given)


class FastModule:
    """A frozen module, compiled. Any number of threads may call it, with one core each."""

    def __init__(self, compiled: Any):
        self._compiled, self._own = compiled, threading.local()
        self.name = f"openvino {version('openvino')}"  # what it runs on

    def __call__(self, images: Tensor) -> tuple[Tensor, ...]:
        """What the module gives, as new tensors."""
        if not hasattr(self._own, "request"):
            self._own.request = self._compiled.create_infer_request()
        found = self._own.request.infer([np.ascontiguousarray(images.numpy())])
        return tuple(torch.from_numpy(np.array(found[place])) for place in range(len(self._compiled.outputs)))


_kept: OrderedDict[str, FastModule | None] = OrderedDict()
_compiling = threading.Lock()
N_KEPT = 8


class CompiledOnce:
    """A fast module, made at first use, and anew when the tensors it depends on have changed.

    Those with the same name in a process share one, so copies of a network cost nothing; another process makes its own.
    """

    def __init__(self) -> None:
        self._seen: tuple[tuple[int, int], ...] = ()
        self._fast: FastModule | None = None

    def compiled(
        self, module: nn.Module, example: Tensor, name: Callable[[], str], tensors: Iterable[Tensor]
    ) -> FastModule | None:
        """The module for batches of images like the example, or None where torch is to be used.

        `name` says what is computed, from the bytes of `tensors`; it is asked only when one of these was written to.
        """
        seen = tuple((tensor.data_ptr(), tensor._version) for tensor in tensors)
        if seen == self._seen:
            return self._fast
        with _compiling:
            key = name()
            if key not in _kept:
                _kept[key] = fast_module(module, example)
            _kept.move_to_end(key)
            while len(_kept) > N_KEPT:
                _kept.popitem(last=False)
            self._fast = _kept[key]
            self._seen = seen
        return self._fast

    def __reduce__(self) -> tuple[type[CompiledOnce], tuple[()]]:
        return CompiledOnce, ()


def fast_module(module: nn.Module, example: Tensor) -> FastModule | None:
    """The module for batches of images like the example, or None where torch is to be used."""
    openvino = _openvino()
    if openvino is None or example.device.type != "cpu":
        return None
    with torch.inference_mode():
        expected = module(example)
    expected = expected if isinstance(expected, tuple) else (expected,)
    try:
        made = FastModule(_compiled(openvino, module, example))
        found = made(example)
    except Exception as error:  # it fails on networks it does not know in more ways than anyone has listed
        _log.info("openvino cannot run this network, torch does: %s", str(error).partition("\n")[0])
        return None
    is_same = all(
        (one - other).abs().max() <= TOLERANCE * other.abs().max() for one, other in zip(found, expected, strict=True)
    )
    return made if is_same else None


def _compiled(openvino: Any, module: nn.Module, example: Tensor) -> Any:
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of tracing, about branches on shapes that are fixed here
        decoder = TorchScriptPythonDecoder(torch.jit.trace(module, example, check_trace=False, strict=False))  # type: ignore[no-untyped-call]
    frontend = openvino.frontend.FrontEndManager().load_by_framework("pytorch")
    converted = frontend.convert(frontend.load(decoder))
    converted.reshape([-1, *example.shape[1:]])
    # float32 is asked for because processors with other units take bfloat16 by themselves
    streams = n_cores()  # a thread of its own for each that may call at the same time
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": streams, "NUM_STREAMS": streams}
    return openvino.Core().compile_model(converted, "CPU", options)
