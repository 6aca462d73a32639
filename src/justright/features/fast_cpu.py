"""Frozen conv nets on a CPU through OpenVINO, an extra: `pip install 'justright[cpu]'`.

Two to three times as fast as torch, and equal to it up to rounding in float32 (benchmarks/bench_fast_cpu.py). ViTs gain
a tenth at best, because torch computes their matrix products near the limit of the processor
(benchmarks/bench_vit_bound.py), so torch runs them. Torch also runs networks that cannot be converted, or whose results
differ. The runtime is part of the header of a store and of the keys of the cache.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from justright.utils.parallel import n_cores

_log = logging.getLogger(__name__)

TOLERANCE = 1e-4  # results may differ by this share of the largest number; torch runs networks that differ more


@lru_cache(maxsize=1)
def _openvino() -> Any:
    """The runtime, or None if it is not installed."""
    # OpenVINO reports its import and each conversion to its makers through this package, and only a file in the user's
    # home turns that off. If the package cannot be imported, nothing is reported.
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
    """A part of a network as a module."""

    def __init__(self, network: nn.Module, compute: Callable[[Tensor], Tensor | tuple[Tensor, ...]]):
        super().__init__()
        self.network, self.compute = network, compute

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Compute the part."""
        return self.compute(images)


class FastModule:
    """A frozen module, compiled. Any number of threads may call it, with one core each."""

    def __init__(self, compiled: Any):
        self._compiled, self._local = compiled, threading.local()  # each thread has a request of its own
        self.name = f"openvino {version('openvino')}"  # what it runs on

    def __call__(self, images: Tensor) -> tuple[Tensor, ...]:
        """The outputs of the module, as new tensors."""
        if not hasattr(self._local, "request"):
            self._local.request = self._compiled.create_infer_request()
        outputs = self._local.request.infer([np.ascontiguousarray(images.numpy())])
        return tuple(torch.from_numpy(np.array(outputs[number])) for number in range(len(self._compiled.outputs)))


_cache: dict[str, FastModule | None] = {}
_compiling = threading.Lock()


def cached_module(name: str, module: nn.Module, example: Tensor) -> FastModule | None:
    """`fast_module`, called once in a process for each name: copies of a network share the result."""
    with _compiling:
        if name not in _cache:
            _cache[name] = fast_module(module, example)
        return _cache[name]


def fast_module(module: nn.Module, example: Tensor) -> FastModule | None:
    """The module for batches of images like the example, or None if torch is to be used."""
    openvino = _openvino()
    if openvino is None or example.device.type != "cpu":
        return None
    with torch.inference_mode():
        expected = module(example)
    expected = expected if isinstance(expected, tuple) else (expected,)
    try:
        fast = FastModule(_compiled(openvino, module, example))
        outputs = fast(example)
    except Exception as error:  # it raises many kinds of errors for networks that it does not support
        _log.info("openvino cannot run this network, torch does: %s", str(error).partition("\n")[0])
        return None
    for output, other in zip(outputs, expected, strict=True):
        if not (output - other).abs().max() / other.abs().max() <= TOLERANCE:  # NaN too
            return None
    return fast


def _compiled(openvino: Any, module: nn.Module, example: Tensor) -> Any:
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of tracing, about branches on shapes that are fixed here
        decoder = TorchScriptPythonDecoder(torch.jit.trace(module, example, check_trace=False, strict=False))  # type: ignore[no-untyped-call]
    frontend = openvino.frontend.FrontEndManager().load_by_framework("pytorch")
    converted = frontend.convert(frontend.load(decoder))
    converted.reshape([-1, *example.shape[1:]])
    # float32 is set because OpenVINO uses bfloat16 on processors that have it
    streams = n_cores()  # threads that may call at the same time
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": streams, "NUM_STREAMS": streams}
    return openvino.Core().compile_model(converted, "CPU", options)
