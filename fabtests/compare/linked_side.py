# SPDX-License-Identifier: BSD-3-Clause
"""ofipy over ``link`` as a contender: the way to the other side is decided by the host that each believes to be on."""

import os
import subprocess
import sys

from fabtests.compare.ofipy_side import Ofipy

__all__ = ["Linked"]

LOOPBACK = "127.0.0.1"
IDLE_TAG = 3

# A third process, of another host to both sides: it says one word, and keeps its connection until its input ends.
IDLE_PEER = f"""
import sys, ofipy
with ofipy.open(provider="link") as ep:
    ep.tsend(b"", ep.insert(bytes.fromhex(sys.argv[1])), tag={IDLE_TAG}).wait()
    sys.stdin.read()
"""


class Linked(Ofipy):
    """A side whose endpoint has both ways open, the network's with an idle peer.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    way : str
        The provider that messages to the other side must go by: ``shm``, or ``tcp``, for which the sides claim
        different hosts.
    """

    def __init__(self, first: bool, *, way: str) -> None:
        self._way_meant = way
        if way != "shm":
            os.environ["OFIPY_HOST_ID"] = f"side {1 if first else 2}"
        os.environ["OFIPY_INTERFACE"] = LOOPBACK
        self._idle: subprocess.Popen[bytes] | None = None
        super().__init__(first, provider="link")

    def offer(self) -> str:
        """The endpoint's whole address: its text would not say which host this is."""
        return bytes(self._side.endpoint.address).hex()

    def meet(self, other: str) -> None:
        """Enter the other side's address, and have somebody idle at the network's way.

        Raises
        ------
        RuntimeError
            When the way is not the one that is meant.
        """
        endpoint = self._side.endpoint
        self._side.enter(bytes.fromhex(other))
        taken = endpoint.way(self._side.peer)
        if taken != self._way_meant:
            raise RuntimeError(f"messages would go by {taken}, not by {self._way_meant}")
        receive = endpoint.trecv(tag=IDLE_TAG)
        self._idle = subprocess.Popen(
            [sys.executable, "-P", "-c", IDLE_PEER, self.offer()],
            stdin=subprocess.PIPE,
            env=os.environ | {"OFIPY_HOST_ID": f"idle peer of {os.getpid()}"},
        )
        message = receive.wait(timeout=30)
        if message.source is None or endpoint.way(message.source) != "tcp":
            raise RuntimeError("the idle peer did not come by tcp")

    def close(self) -> None:
        """Let the idle peer go, and close the endpoint."""
        if self._idle is not None:
            self._idle.communicate(timeout=10)
        super().close()
