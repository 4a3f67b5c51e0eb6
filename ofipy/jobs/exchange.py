# SPDX-License-Identifier: BSD-3-Clause
"""Dissemination over an endpoint of the job's own: one call at a time, in the same order everywhere."""

import threading
from collections.abc import Mapping

from ofipy._base.errors import TimedOut
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.fabric import Domain
from ofipy._requests import Hold
from ofipy.jobs.dissemination import Dissemination, Round, rounds
from ofipy.jobs.launcher import Deadline

__all__ = ["Exchange"]

_REMEDY = "every process of the job must make this call; timeout= is how long this one waits for the others"
_ROUNDS_MAX = 64  # so many bits are enough for the size of any job


class Exchange:
    """What the processes of a job tell each other.

    Parameters
    ----------
    endpoint : Endpoint
        For this alone: every tag is its own.
    rank, size : int
        Of this process and its job.
    partners : mapping of int to Peer
        Those of :func:`ofipy.jobs.dissemination.partners`, by rank.
    """

    def __init__(
        self, endpoint: Endpoint[Domain], rank: int, size: int, partners: Mapping[int, Peer]
    ) -> None:
        self._endpoint = endpoint
        self._rank = rank
        self._size = size
        self._partners = partners
        self._lock = threading.Lock()
        self._sequence = 0

    def gather(self, block: bytes, deadline: Deadline) -> list[bytes]:
        """Everybody's block by rank.

        Raises
        ------
        TimedOut
            When somebody did not call in time.
        """
        with Hold(self._lock):
            work = Dissemination(self._rank, self._size, block, sequence=self._sequence)
            self._sequence += 1
            for step in rounds(self._rank, self._size):
                self._round(work, step, deadline)
            return work.result()

    def _round(self, work: Dissemination, step: Round, deadline: Deadline) -> None:
        tag = (self._sequence - 1) * _ROUNDS_MAX + step.number
        coming = self._endpoint.trecv(tag=tag)
        try:
            # Held until both are over: a send is only over when its buffer is free.
            sent = self._endpoint.tsend(work.message(step), self._partners[step.to], tag=tag)
            message = coming.wait(timeout=deadline.left())
            sent.wait(timeout=deadline.left())
        except BaseException as error:
            coming.cancel()
            if isinstance(error, TimedOut):
                raise deadline.missed(f"nothing came from rank {step.source}", _REMEDY) from None
            raise
        work.take(step, bytes(message.data))

    def close(self) -> None:
        """Close the endpoint."""
        self._endpoint.close(linger=0)
