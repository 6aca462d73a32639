"""Training with one process or several; all other files are the same for both.

Each process computes the outputs of its share of a batch. All processes gather these outputs, with gradients, and
compute the same loss on the whole batch. The parameter gradients of all shares are summed, which is the gradient of a
single process.
"""

from __future__ import annotations

import gc
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from justright.data.image_set import ImageSet
from justright.data.readers import HASHED
from justright.utils.errors import JustrightError
from justright.utils.hashing import BLOCK
from justright.utils.parallel import blas_threads
from justright.utils.types import Array

T = TypeVar("T")

MAX_WAIT = timedelta(days=7)  # others wait while the first process extracts features, which may take long


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        # every process computes the same loss from the same rows, so the own part is complete as it is
        return gradients[0].chunk(dist.get_world_size(), dim=1)[dist.get_rank()].contiguous()


class Processes:
    """The processes that train together; without torchrun there is one."""

    def __init__(self) -> None:
        is_group = dist.is_available() and dist.is_initialized()
        self.n = dist.get_world_size() if is_group else 1
        self.rank = dist.get_rank() if is_group else 0

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def expect(self, n: int, folder: Path) -> None:
        """Raise if a training is resumed with another number of processes."""
        if n != self.n:
            start = f"torchrun --nproc-per-node {n} -m justright ..." if n > 1 else "the command without torchrun"
            raise JustrightError(
                f"number of processes that train {folder}: {n} before, {self.n} now",
                expected="the same number, because it changes the last bits",
                advice=f"{start}; or another --out, or delete that folder to start again",
            )

    def share(self, n_rows: int) -> slice:
        """Return the rows of a batch that this process computes."""
        if n_rows % self.n:
            raise JustrightError(
                f"a batch of {n_rows} for {self.n} processes",
                expected="a multiple of the number of processes",
                advice="another batch_size",
            )
        size = n_rows // self.n
        return slice(self.rank * size, (self.rank + 1) * size)

    def parts(self, n_rows: int, block: int) -> list[slice]:
        """Split rows into one part per process, at block borders, so that blocks equal those of a single process."""
        n_blocks = math.ceil(n_rows / block)
        ends = [min(n_rows, block * (n_blocks * rank // self.n)) for rank in range(self.n)] + [n_rows]
        return [slice(start, stop) for start, stop in pairwise(ends)]

    def exchange(self, rows: Array, parts: list[slice], device: torch.device) -> None:
        """Fill in the parts of `rows` that the other processes computed."""
        for source, part in enumerate(parts if self.n > 1 else ()):
            for start in range(part.start, part.stop, BLOCK):
                mine = rows[start : min(start + BLOCK, part.stop)]
                sent = torch.from_numpy(mine).to(device)
                dist.broadcast(sent, source)
                mine[:] = sent.cpu().numpy()

    def of_first(self, value: float, device: torch.device) -> float:
        """Return the value of the first process: clocks differ between processes."""
        sent = np.array([value])
        self.exchange(sent, [slice(0, 1)], device)
        return float(sent[0])

    def gather(self, rows: Float[Tensor, "views images _"]) -> Float[Tensor, "views all_images _"]:
        """Return the rows of all processes in order; gradients flow back to this process's rows."""
        return rows if self.n == 1 else _Gather.apply(rows)  # type: ignore[no-untyped-call]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all processes."""
        if self.n == 1:
            return
        own = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        flat = torch.cat([gradient.flatten() for gradient in own])
        dist.all_reduce(flat)
        for parameter, part in zip(parameters, torch.split(flat, [each.numel() for each in own]), strict=True):
            parameter.grad = part.view_as(parameter)

    def in_turn(self, work: Callable[[], T]) -> T:
        """Run `work` in the first process, then in the others, which reuse its files."""
        if not self.is_first:
            self.wait()
        done = work()
        if self.is_first:
            self.wait()
        return done

    def hash_together(self, images: ImageSet) -> None:
        """Hash the files in shares, one per process, and exchange the content ids."""
        if self.n == 1:
            return
        images.take(range(self.rank, len(images), self.n)).content_column(is_strict=False)
        known: list[dict[bytes, bytes]] = [{} for _ in range(self.n)]
        dist.all_gather_object(known, HASHED)
        for each in known:
            HASHED.update(each)

    def wait(self) -> None:
        """Wait for all processes."""
        if self.n > 1:
            dist.barrier()


@contextmanager
def joined_processes(device: str) -> Iterator[Processes]:
    """Join the processes that torchrun started, if any. All leave together, unless one fails.

    A failing process does not wait for the others: torchrun ends them and restarts all, up to --max-restarts times.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield Processes()
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    store, rank, n = next(rendezvous("env://", timeout=MAX_WAIT))
    if os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
        # After a restart the store of torchrun still holds addresses of ended processes. Each machine counts restarts
        # on its own: with several machines, TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 makes a new store.
        store = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=n, timeout=MAX_WAIT)
    yield Processes()
    gc.collect()  # tensors that still refer to the group should be gone by now: gloo may abort otherwise
    dist.barrier()
    dist.destroy_process_group()


_log = logging.getLogger(__name__)


@contextmanager
def torch_threads(n_threads: int | None, folder: Path) -> Iterator[int]:
    """Set the thread count of torch and BLAS within this block, with a warning if it changes.

    Parameters:
        n_threads: the count with which the run in `folder` was started; None keeps that of torch.
    """
    before = torch.get_num_threads()
    n = n_threads or before
    if n != before:
        _log.warning(
            "%s was started with OMP_NUM_THREADS=%d and now it is %d: continuing with %d, for the same result",
            folder,
            n,
            before,
            n,
        )
    torch.set_num_threads(n)
    try:
        with blas_threads(n):
            yield n
    finally:
        torch.set_num_threads(before)
