# SPDX-License-Identifier: BSD-3-Clause
"""Memory that the other side reads and writes: its layout, its key, and operations on the peer's."""

import struct
from typing import Any

import ofipy
from fabtests.base.out_of_band import BLOCK
from fabtests.base.session import SYNC_BYTES, Bytes, Session

__all__ = ["CQ_DATA", "Memory", "cq_data", "pack_key", "unpack_key"]

CQ_DATA = 0x0123456789ABCDEF
"""Remote CQ data of the programs, cut to what the provider carries."""

# Address, length and key as a C program on libfabric keeps them in memory; our handle follows, with all that it knows.
_KEY = struct.Struct("=QQQ")

_ALIGNMENT = 64


def cq_data(info: ofipy.Info) -> int:
    """Remote CQ data that fits into what the provider carries."""
    return CQ_DATA & ((1 << (8 * info.cq_data_size)) - 1)


def pack_key(region: ofipy.Region) -> bytes:
    """What the other side needs to reach a region."""
    remote = region.remote
    return _KEY.pack(remote.offset, remote.length, remote.key) + bytes(remote)


def unpack_key(message: bytes, length: int) -> ofipy.RemoteRegion:
    """The other side's memory; a C program does not tell its length."""
    if len(message) > _KEY.size and not _is_padding(message[_KEY.size :]):
        return ofipy.RemoteRegion.from_bytes(message[_KEY.size :])
    offset, _, key = _KEY.unpack(message[: _KEY.size])
    access = ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE
    return ofipy.RemoteRegion(key=key, offset=offset, length=length, access=access)


def _is_padding(data: bytes) -> bool:
    return not any(data)


class Memory:
    """Memory on each side: room for what comes, and behind it what goes.

    One region where the device takes it whole, else a region for each half: Soft-RoCE refuses a GiB, which a window of
    the longest messages has.

    Parameters
    ----------
    session : Session
        Where both sides have met.
    places : int, optional
        How many of the longest messages there is room for; default: a window of them, as the programs in C have it.
        Where the other side reads, it has to compute the same.
    """

    def __init__(self, session: Session, places: int | None = None) -> None:
        session.require("rma")
        options = session.options
        self._session = session
        room = max(options.sizes.longest, BLOCK) * (places or options.window)
        self.half = -(-(room + SYNC_BYTES) // _ALIGNMENT) * _ALIGNMENT
        self.bytes = session.buffer(2 * self.half)
        self.rx, self.tx = self.bytes[: self.half], self.bytes[self.half :]
        try:
            self._regions = [self._register(self.bytes)]
        except ofipy.NoMemory:
            self._regions = [self._register(self.rx), self._register(self.tx)]
        self.data = cq_data(session.endpoint.info)
        self.remote, self._remote_tx = self._exchange()
        self._seen = 0

    def _register(self, memory: Bytes) -> ofipy.Region:
        access = ofipy.Access.LOCAL | ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE
        return self._session.endpoint.register(memory, access=access)

    def _exchange(self) -> tuple[ofipy.RemoteRegion, ofipy.RemoteRegion]:
        """The peer's incoming and outgoing half."""
        session, (first, *more) = self._session, self._regions
        session.send(b"".join([pack_key(first), *(bytes(each.remote) for each in more)]))
        said = session.take().tobytes()
        session.post()
        session.sync()
        handles = said[_KEY.size :]
        if not _is_padding(handles) and _KEY.unpack(said[: _KEY.size])[1] == self.half:
            middle = len(handles) // 2
            rx, tx = (ofipy.RemoteRegion.from_bytes(each) for each in (handles[:middle], handles[middle:]))
            return rx, tx
        whole = unpack_key(said, 2 * self.half)
        return whole[: self.half], whole[self.half :]

    def outgoing(self, offset: int) -> tuple[ofipy.Region, int]:
        """A place of the outgoing half as records name it: its region, and where in that."""
        region = self._regions[-1]
        return region, offset + (self.half if len(self._regions) == 1 else 0)

    def write(self, offset: int, size: int, *, data: bool = False, **more: Any) -> ofipy.Request:
        """Start a write of our outgoing half to the same place of the peer's incoming one."""
        session, end = self._session, offset + size
        if data:
            more["remote_data"] = self.data
        return session.endpoint.write(
            self.tx[offset:end], session.peer, self.remote[offset:end], room_timeout=session.limit, **more
        )

    def read(self, offset: int, size: int) -> ofipy.Request:
        """Start a read of the peer's outgoing half into our incoming one."""
        session, end = self._session, offset + size
        return session.endpoint.read(
            self.rx[offset:end], session.peer, self._remote_tx[offset:end], room_timeout=session.limit
        )

    def take_data(self, count: int) -> None:
        """Wait until `count` more writes with remote CQ data have come."""
        session = self._session
        while self._seen < count:
            rows = session.endpoint.cq.wait(session.limit)
            session.expect(
                bool(len(rows)), f"{self._seen} of {count} writes with data came in {session.limit:g} s"
            )
            for row in rows:
                session.expect(
                    int(row["data"]) == self.data,
                    f"remote CQ data {int(row['data']):#x} where {self.data:#x} was sent",
                )
            self._seen += len(rows)
        self._seen -= count

    def await_byte(self, index: int, value: int) -> None:
        """Wait until a byte of the incoming half has a value."""
        domain, rx = self._session.domain, self.rx
        while rx[index] != value:
            domain.progress()
