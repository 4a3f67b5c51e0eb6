# SPDX-License-Identifier: BSD-3-Clause
"""A connection between two processes of a cluster."""

import asyncio
import logging
import sys
import weakref
from collections import deque
from contextlib import suppress
from typing import Any

import dask.config
from dask.utils import parse_bytes, parse_timedelta
from distributed.comm.core import Comm, CommClosedError
from distributed.comm.utils import from_frames, to_frames

from ofipy._base.errors import AccessDenied, Again, FabricError
from ofipy._discovery.av import Peer
from ofipy.dask import wire
from ofipy.dask.hub import Ended, Hub

__all__ = ["OFI"]

_log = logging.getLogger("distributed.comm.ofi")


class OFI(Comm):
    """Messages to and from one other process; made by the connector and the listener.

    Parameters
    ----------
    hub : Hub
        By which endpoint; already taken for `number`.
    peer : Peer
        The other process.
    incarnation : int or None
        That one of the peer alone: a message that is missing ends the connection. None: the transport has none.
    number, far_number : int
        By which this side and the other one know the connection.
    local_address, peer_address : str
        As Dask shall see them.
    deserialize : bool
        Whether messages are unpickled here.
    """

    def __init__(
        self,
        hub: Hub,
        peer: Peer,
        incarnation: int | None,
        number: int,
        far_number: int,
        local_address: str,
        peer_address: str,
        deserialize: bool = True,
    ) -> None:
        super().__init__(deserialize=deserialize)
        self._hub, self._peer, self._incarnation = hub, peer, incarnation
        self._number, self._far_number = number, far_number
        self._local_addr, self._peer_addr = local_address, peer_address  # distributed's connect() reads these
        self._sent: deque[tuple[Any, int]] = deque()  # requests that may be under way, and their bytes
        self._owed = 0  # messages that the last head promised and that were not sent yet
        self._reading: Any = None
        self._frames: deque[Any] = deque()  # requests for what the last head promised
        self._said_goodbye = False  # the other side
        self._limit = parse_bytes(dask.config.get("distributed.comm.ofi.queue"))
        text = f"{local_address} to {peer_address}"
        self._ender = weakref.finalize(
            self, _end_dangling, text, hub, peer, incarnation, number, far_number, self._sent
        )
        self._ender.atexit = False

    @property
    def local_address(self) -> str:
        """Of this side."""
        return self._local_addr

    @property
    def peer_address(self) -> str:
        """Of the other one."""
        return self._peer_addr

    def closed(self) -> bool:
        """Whether this side has ended it, or has learned of its end."""
        return not self._ender.alive

    @property
    def extra_info(self) -> dict[str, str]:
        """By which way messages go: ``way``."""
        if self.closed():
            return {}
        return {"way": str(self._hub.endpoint.way(self._peer))}

    # reading

    async def read(self, deserializers: Any = None) -> Any:
        """Wait for the next message.

        Raises
        ------
        CommClosedError
            When either side has ended the connection, or the other process is gone.
        """
        self._check_open()
        try:
            frames = await self._read_frames()
        except FabricError as error:
            self.abort()
            raise CommClosedError(f"in {self!r}: {error}") from error
        except BaseException:  # what came of the message is lost
            self.abort()
            raise
        if frames is None:
            self.abort()
            raise CommClosedError(f"in {self!r}: closed by the other side")
        self._refuse_unproven()
        try:
            return await from_frames(
                frames,
                deserialize=self.deserialize,
                deserializers=deserializers,
                allow_offload=self.allow_offload,
            )
        except EOFError:
            self.abort()
            raise CommClosedError(f"in {self!r}: a truncated message") from None

    async def _read_frames(self) -> list[Any] | None:
        endpoint = self._hub.endpoint
        self._hub.tidy()
        self._reading = endpoint.trecv(
            self._peer, tag=wire.tag(wire.Kind.HEAD, self._number), incarnation=self._incarnation
        )
        message = await self._reading
        if self.closed():  # by another task; the hub reads what follows
            raise CommClosedError(f"in {self!r}: closed")
        self._reading = None
        head = wire.read_head(memoryview(message.data))
        if head is None:
            self._said_goodbye = True
            return None
        rest = [self._hub.memory.take(size) for size in head.following]
        tag = wire.tag(wire.Kind.FRAMES, self._number)
        self._frames.extend(
            endpoint.trecv_into(each, self._peer, tag=tag, incarnation=self._incarnation) for each in rest
        )
        for each in rest:
            message = await self._frames[0]
            self._frames.popleft()
            if message.length != len(each):
                raise CommClosedError(f"in {self!r}: the other side ended it within a message")
        return head.frames(rest)

    def _refuse_unproven(self) -> None:
        """Dask unpickles what comes, as :meth:`Endpoint.trecv_obj` does, so the same peers are refused."""
        lack = self._hub.endpoint.domain._proof.lack()
        if lack is None:
            return
        what, remedy = lack
        self.abort()
        denied = AccessDenied(
            f"{what}; the message was dropped unread", peer=self._peer_addr, operation="read", remedy=remedy
        )
        raise CommClosedError(f"in {self!r}: {denied}") from denied

    # writing

    async def write(self, msg: Any, serializers: Any = None, on_error: str = "message") -> int:
        """Send a message; return when it is under way, which needs nothing of its reader.

        Returns
        -------
        int
            Bytes.

        Raises
        ------
        CommClosedError
            As of :meth:`read`.
        """
        self._check_open()
        frames = await to_frames(
            msg,
            allow_offload=self.allow_offload,
            serializers=serializers,
            on_error=on_error,
            context={"sender": self.local_info, "recipient": self.remote_info, **self.handshake_options},
            frame_split_size=sys.maxsize,
        )
        self._check_open()
        head, rest, size = wire.pack_frames(frames)
        try:
            await self._send(head, wire.Kind.HEAD)
            self._owed = len(rest)
            for each in rest:
                await self._send(each, wire.Kind.FRAMES)
                self._owed -= 1
            while sum(size for _, size in self._sent) > self._limit:
                await self._sent[0][0]
                self._forget_sent()
        except FabricError as error:
            self.abort()
            raise CommClosedError(f"in {self!r}: {error}") from error
        except BaseException:  # a part of the message is under way
            self.abort()
            raise
        return size

    async def _send(self, piece: Any, kind: wire.Kind) -> None:
        self._forget_sent()
        while True:
            self._check_open()  # another task may have ended it, and nothing is sent after the goodbye
            try:
                request = self._hub.endpoint.tsend(
                    piece,
                    self._peer,
                    tag=wire.tag(kind, self._far_number),
                    incarnation=self._incarnation,
                )
            except Again:
                if self._sent:
                    await self._sent[0][0]
                else:
                    await asyncio.sleep(0)
                self._forget_sent()
            else:
                self._sent.append((request, len(piece)))
                if not request.done:
                    self._hub.see_to(request)
                return

    def _forget_sent(self) -> None:
        self._hub.tidy()
        while self._sent and self._sent[0][0].done:
            self._sent.popleft()[0].wait()  # raises what went wrong

    # end

    async def close(self) -> None:
        """End it; wait until what was written has arrived, for ``distributed.comm.ofi.linger`` at most."""
        if self.closed():
            return
        sent = [request for request, _ in self._sent]
        self.abort()
        linger = parse_timedelta(dask.config.get("distributed.comm.ofi.linger"))
        with suppress(FabricError, TimeoutError):
            async with asyncio.timeout(linger):
                for request in sent:
                    await request

    def abort(self) -> None:
        """End it at once, from any thread, with or without a loop; a second call does nothing."""
        if self._ender.detach() is not None:
            self._hub.have_done(self._leave_to_hub)

    def _leave_to_hub(self) -> None:
        for request in (self._reading, *self._frames):  # who awaits them learns of the end
            if request is not None:
                with suppress(FabricError):
                    request.cancel()
        self._hub.end(
            Ended(
                self._peer,
                self._number,
                self._far_number,
                incarnation=self._incarnation,
                sent=[request for request, _ in self._sent],
                owed=self._owed,
                reading=self._reading,
                frames=list(self._frames),
                said_goodbye=self._said_goodbye,
            )
        )

    def _check_open(self) -> None:
        if self.closed():
            raise CommClosedError(f"in {self!r}: closed")


def _end_dangling(
    text: str,
    hub: Hub,
    peer: Peer,
    incarnation: int | None,
    number: int,
    far_number: int,
    sent: deque[tuple[Any, int]],
) -> None:
    _log.warning("closing the dangling connection %s", text)
    hub.end(Ended(peer, number, far_number, incarnation=incarnation, sent=[request for request, _ in sent]))
