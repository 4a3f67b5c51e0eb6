# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed over gloo as a group, which has no barrier or reduction in another order than MPI's."""

import socket
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from fabtests.compare.team import Once, Team

__all__ = ["GlooTeam"]


class GlooTeam(Team):
    """One rank, over TCP on the loopback interface.

    Parameters
    ----------
    first : bool
        Whether it is rank 0, which the others ask for addresses.
    """

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        self._listener = socket.create_server(("127.0.0.1", 0)) if first else None

    def version(self) -> str:
        """Of torch."""
        return str(torch.__version__)

    def offer(self) -> int | None:
        """A free port, of rank 0."""
        return None if self._listener is None else self._listener.getsockname()[1]

    def meet(self, offers: list[Any], rank: int) -> None:
        """Make the process group."""
        self.size = len(offers)
        if self._listener is not None:
            self._listener.close()
        dist.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{offers[0]}", rank=rank, world_size=self.size
        )

    def prepare(self, mode: str, size: int) -> Once:
        """A blocking call on tensors that share memory with numpy's arrays."""
        given, got = self.buffers(mode, size)
        give = None if given is None else torch.from_numpy(given)
        get = None if got is None else torch.from_numpy(got)
        parts = None if get is None else list(get.chunk(self.size))
        calls: dict[str, Callable[[], Any]] = {
            "barrier": dist.barrier,
            "broadcast": lambda: dist.broadcast(give, 0),
            "reduce": lambda: dist.reduce(give, 0),
            "allreduce": lambda: dist.all_reduce(give),
            "gather": lambda: dist.gather(give, parts if self.first else None, 0),
            "scatter": lambda: dist.scatter(
                get, list(give.chunk(self.size)) if self.first and give is not None else None, 0
            ),
            "allgather": lambda: dist.all_gather(parts, give),
        }
        return calls[mode]

    def barrier(self) -> None:
        """Of all ranks."""
        dist.barrier()

    def close(self) -> None:
        """Leave the process group."""
        dist.destroy_process_group()
