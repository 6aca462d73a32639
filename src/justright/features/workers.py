"""Workers that compute with torch, one core each.

They are threads by default: Pillow and torch release the interpreter's lock, and nothing is copied between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import TypeVar

import PIL
import torch

from justright.utils.context import current
from justright.utils.errors import JustrightError
from justright.utils.parallel import Engine, threads

Task = TypeVar("Task")
Pixels = TypeVar("Pixels")
Result = TypeVar("Result")


def on_one_core_each(
    work: Callable[[Task], Result], tasks: Iterable[Task], n_workers: int, engine: Engine | None = None
) -> Generator[Result, None, None]:
    """Results in the order of the tasks: from an engine, or from threads of this process.

    Only one task more than there are threads is submitted ahead, because batches take memory.
    """
    return (engine or threads(n_workers, n_workers + 1))(partial(_on_one_core, work), tasks)


def _on_one_core(work: Callable[[Task], Result], task: Task) -> Result:
    torch.set_num_threads(1)  # holds for the thread that calls it
    return work(task)


def decode_and_compute(
    decode: Callable[[Task], Pixels],
    compute: Callable[[Pixels], Result],
    tasks: Iterable[Task],
    device: torch.device,
    n_workers: int,
) -> Generator[Result, None, None]:
    """Results in the order of the tasks, from the engine of the context or from threads.

    On a CPU workers do both; for another device workers only decode.
    """
    engine = current().engine
    if device.type == "cpu":
        yield from on_one_core_each(partial(_in_turn, decode, compute), tasks, n_workers, engine)
        return
    with closing(on_one_core_each(decode, tasks, n_workers, engine)) as decoded:
        yield from map(compute, decoded)


def _in_turn(decode: Callable[[Task], Pixels], compute: Callable[[Pixels], Result], task: Task) -> Result:
    return compute(decode(task))


@contextmanager
def one_core_a_thread() -> Iterator[None]:
    """Let torch compute with one core per thread inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def tools(device: torch.device, runtime: str = "torch") -> dict[str, str]:
    """Device and versions that may change the last bits of a result."""
    is_cuda = device.type == "cuda"
    chip = torch.cuda.get_device_name(device) if is_cuda else torch.backends.cpu.get_cpu_capability()
    result = {"device": f"{device.type} {chip}", "torch": torch.__version__, "pillow": PIL.__version__}
    return result if runtime == "torch" else result | {"runtime": runtime}


def refuse_other_tools(here: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Raise if results of this machine would differ by rounding: a cluster may have different machines."""
    if here != expected:
        raise JustrightError(
            f"a worker computes with {here}",
            expected=f"{expected}, as on the machine that started the work, or results would differ by rounding",
            advice="machines of one kind with the same packages",
        )
