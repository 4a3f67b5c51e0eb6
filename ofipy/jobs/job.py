# SPDX-License-Identifier: BSD-3-Clause
"""The job as a program sees it."""

from types import TracebackType
from typing import Any, Self

from ofipy._base.contents import plain_bytes
from ofipy._base.errors import Unreachable
from ofipy._base.lifetime import ProcessBound
from ofipy._discovery.address import Address
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.group import Group, join_group
from ofipy._objects.open import open as open_endpoint
from ofipy.jobs.launcher import Deadline
from ofipy.jobs.member import Member

__all__ = ["Job"]


class Job(ProcessBound):
    """The processes that were started together, and this one among them. Made by :func:`ofipy.job`.

    Every process of the job makes the same calls of :meth:`peers`, :meth:`exchange` and :meth:`barrier` in the same
    order; each waits for the others.
    """

    __slots__ = ("_hosts", "_local", "_member")

    _instead = "call ofipy.job() in that process, if it is one of the job"

    def __init__(self, member: Member) -> None:
        self._member = member
        self._hosts = [name for _, name in member.hosts]
        own, _ = member.hosts[member.rank]
        self._local = [rank for rank, (host, _) in enumerate(member.hosts) if host == own]

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return self._member.rank

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self._member.size

    @property
    def local_rank(self) -> int:
        """Number of this process among those of its host."""
        return self._local.index(self.rank)

    @property
    def local_size(self) -> int:
        """How many processes its host has: those that can share memory."""
        return len(self._local)

    @property
    def hosts(self) -> list[str]:
        """Name of each process' host, by rank, as the launcher knows it."""
        return list(self._hosts)

    @property
    def launcher(self) -> str:
        """Who started it, such as ``ofipy run``, ``PMIx``, ``PMI-1``, ``torchrun`` or ``Slurm``; ``alone``: nobody."""
        return self._member.launcher_name

    def exchange(self, data: bytes, *, timeout: float | None = None) -> list[bytes]:
        """Give every process some bytes, and get those of every process.

        Parameters
        ----------
        data : bytes-like
            Up to 4 GiB, of any length on each.
        timeout : float, optional
            Seconds to wait for the others; None: for ever.

        Returns
        -------
        list of bytes
            By rank; the own among them.

        Raises
        ------
        TimedOut
            When a process did not call in time. The job is of no use after it.
        """
        return self._member.gather(plain_bytes(data, "exchange"), Deadline.of(timeout))

    def barrier(self, *, timeout: float | None = None) -> None:
        """Wait until every process has called this; parameters and errors as of :meth:`exchange`."""
        self._member.gather(b"", Deadline.of(timeout))

    def peers(self, endpoint: Any, *, timeout: float | None = None) -> list[Peer]:
        """Exchange the addresses of an endpoint of each process, and enter them.

        Nobody sends by its endpoint before all have entered all. In an address vector that was empty the peer of
        rank r is number r. When this returns, other processes of the job would notice the death of any of them.

        Parameters
        ----------
        endpoint : Endpoint
            One of each process; of the same provider, and opened after :func:`ofipy.job`.
        timeout : float, optional
            As of :meth:`exchange`.

        Returns
        -------
        list of Peer
            By rank; the own among them.

        Raises
        ------
        Unreachable
            On every process, when the job has several hosts and an endpoint was opened before :func:`ofipy.job`.
        TimedOut
            As of :meth:`exchange`.
        """
        deadline = Deadline.of(timeout)
        keyless = endpoint.domain._began < self._member.key_since
        blobs = self._member.gather(bytes([keyless]) + bytes(endpoint.address), deadline)
        addresses = [Address.from_bytes(blob[1:]) for blob in blobs]
        self._check_found(
            [rank for rank, address in enumerate(addresses) if blobs[rank][0] or address.connects_only]
        )
        peers = [endpoint.insert(address) for address in addresses]
        self._member.follow(endpoint, peers, deadline)
        self._member.gather(b"", deadline)
        return peers

    def group(self, endpoint: Endpoint[Any] | None = None, *, timeout: float | None = None) -> Group:
        """Make a group of all processes of the job; each makes this call.

        Parameters
        ----------
        endpoint : Endpoint, optional
            One of each process, as of :meth:`peers`. Default: one that this opens, and that closes with the group.
        timeout : float, optional
            As of :meth:`exchange`.

        Returns
        -------
        Group
            Its ranks are those of the job. A process may make several.

        Raises
        ------
        NotSupported
            When the transport carries no groups: endpoints of type ``msg`` and ``dgram``, and some of libfabric's
            providers.
        Busy
            Over ``ofi:…``, when a receive is posted that would get messages of the group.
        Unreachable, TimedOut
            As of :meth:`peers`.
        """
        opened = open_endpoint() if endpoint is None else endpoint
        try:
            peers = self.peers(opened, timeout=timeout)
            deadline = Deadline.of(timeout)
            return join_group(
                opened,
                self.rank,
                peers,
                lambda block: self._member.gather(block, deadline),
                owns_endpoint=endpoint is None,
            )
        except BaseException:
            if endpoint is None:
                opened.close(linger=0)
            raise

    def _check_found(self, early: list[int]) -> None:
        """Refuse endpoints that have no key, or that nobody connects to, where some peer is on another host."""
        hosts = {host for host, _ in self._member.hosts}
        if early and len(hosts) > 1:
            raise Unreachable(
                f"the endpoint of rank {', '.join(map(str, early))} was opened before the job was joined, so "
                "it has not its key or does not listen to the network, and the job has several hosts",
                operation="peers",
                remedy="call ofipy.job() before ofipy.open()",
            )

    @property
    def closed(self) -> bool:
        """Whether this process has left the job."""
        return self._member.closed

    def close(self) -> None:
        """Leave the job; its key is forgotten, what was opened with it goes on. A second call does nothing.

        At the end of the interpreter it happens by itself.
        """
        self._member.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<Job rank {self.rank} of {self.size}, {self.launcher}{state}>"
