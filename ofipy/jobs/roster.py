# SPDX-License-Identifier: BSD-3-Clause
"""What the core is told of the ranks that have left, for the endpoints of the program."""

from collections.abc import Sequence

from ofipy._base.binding import check, ffi, lib
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.fabric import Domain

__all__ = ["Roster"]


class Roster:
    """The ranks of a job, and which have left it.

    Parameters
    ----------
    size : int
        Of the job.
    """

    def __init__(self, size: int) -> None:
        roster = ffi.new("struct ofp_roster **")
        check(lib.ofp_roster_open(size, roster), operation="job")
        self._pointer = ffi.gc(roster[0], lib.ofp_roster_close)

    def depart(self, rank: int, died: bool) -> None:
        """A rank has left; any thread may say so."""
        check(lib.ofp_roster_depart(self._pointer, rank, died), operation="job")

    def follow(self, endpoint: Endpoint[Domain], peers: Sequence[Peer], *, waits: bool = True) -> None:
        """Have an endpoint end what names a rank that has left.

        Parameters
        ----------
        endpoint : Endpoint
            What knows the ranks as `peers`.
        peers : sequence of Peer
            By rank.
        waits : bool
            Where a peer is gone, wait up to a second until it is known how its process ended.
        """
        check(
            lib.ofp_roster_follow(self._pointer, endpoint._pointer("peers"), list(map(int, peers)), waits),
            operation="peers",
        )
