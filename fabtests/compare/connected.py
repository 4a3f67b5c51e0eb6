# SPDX-License-Identifier: BSD-3-Clause
"""One end of a connection."""

from typing import Literal

import ofipy
from ofipy.pingpong.side import Side

__all__ = ["ConnectedSide"]

TIMEOUT = 30  # seconds; seldom more than one


class ConnectedSide(Side):
    """The first side listens, the other one connects; until they have met the first has no endpoint.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    provider : str
        Provider by name.
    progress : str
        As of :func:`ofipy.open`.
    """

    def __init__(self, first: bool, *, provider: str, progress: Literal["manual", "auto"] = "auto") -> None:
        self.first = first
        self._peer = None
        self._listener: ofipy.PassiveEndpoint | None = None
        if first:
            self._listener = ofipy.listen(provider=provider, caps="msg|rma", progress=progress)
        else:
            self.endpoint = ofipy.open(provider=provider, ep_type="msg", caps="msg|rma", progress=progress)

    def offer(self) -> str:
        """Where the first side listens."""
        return "" if self._listener is None else str(self._listener.address)

    def enter(self, address: str | bytes) -> None:
        """Connect, or accept."""
        if self._listener is not None:
            self.endpoint = self._listener.wait(timeout=TIMEOUT).accept()
        else:
            self.endpoint.connect(address).wait(timeout=TIMEOUT)
        self._peer = self.endpoint.peer

    def close(self) -> None:
        """Close everything, which the first side opened with its listener."""
        if self._listener is not None:
            self._listener.close()
        else:
            self.endpoint.close()
