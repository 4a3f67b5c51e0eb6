# SPDX-License-Identifier: BSD-3-Clause
"""ofipy as a contender: one endpoint a side, and a way to use it for each mode."""

from typing import Literal

from fabtests.compare.connected import ConnectedSide
from fabtests.compare.contender import Contender, Times
from fabtests.compare.ways import WAYS, StreamsInC, Way
from ofipy.pingpong.side import Side

__all__ = ["Ofipy"]


class Ofipy(Contender):
    """Every mode of :data:`~fabtests.compare.ways.WAYS`.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    provider : str
        Provider by name.
    progress : str
        As of :func:`ofipy.open`.
    connected : bool
        By endpoints of type ``msg``.
    """

    distribution = "ofipy"

    def __init__(
        self,
        first: bool,
        *,
        provider: str,
        progress: Literal["manual", "auto"] = "auto",
        connected: bool = False,
    ) -> None:
        super().__init__(first)
        kind = ConnectedSide if connected else Side
        self._side: Side = kind(first, provider=provider, progress=progress)
        self._way: Way | None = None

    def offer(self) -> str:
        """The endpoint's address."""
        return self._side.offer()

    def meet(self, other: str) -> None:
        """Enter the other side's address."""
        self._side.meet(other)

    def prepare(self, size: int, mode: str) -> None:
        """Make the way anew, with new memory, as the peers do: a mode is measured alike alone and beside others."""
        self._leave()
        self._way = WAYS[mode](self._side, size)
        self.outgoing, self.incoming = self._way.outgoing, self._way.incoming

    def _leave(self) -> None:
        if self._way is not None:
            self._way.close()
        self._way = None

    @property
    def way(self) -> Way:
        """The mode that was prepared."""
        assert self._way is not None, "nothing was prepared"
        return self._way

    def exchange(self, count: int) -> None:
        """Ping-pong in the mode prepared."""
        self.way.exchange(count)

    def sample(self, count: int) -> Times:
        """Nanoseconds of single round trips."""
        return self.way.sample(count)

    def stream(self, window: int) -> None:
        """One window in the mode prepared."""
        self.way.reads = self.reads
        self.way.stream(window)

    def windows(self, window: int, count: int) -> Times:
        """Windows in the mode prepared, timed where the mode's loop is."""
        if isinstance(self.way, StreamsInC):
            return self.way.windows(window, count)
        return super().windows(window, count)

    def settle(self) -> None:
        """What the mode does between windows."""
        self.way.settle()

    def close(self) -> None:
        """Close the endpoint."""
        self._leave()
        self._side.close()
