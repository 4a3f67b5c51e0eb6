# SPDX-License-Identifier: BSD-3-Clause
"""One side of a program of two: its endpoint, the peer it has met, and the sequence of their messages."""

import contextlib
import os
import sys
import time
from collections import deque
from types import TracebackType
from typing import Any, Self

import click
import numpy as np
import numpy.typing as npt

import ofipy
from fabtests.base.meeting import described, exchange, read_difference
from fabtests.base.needs import require
from fabtests.base.options import Options
from fabtests.base.out_of_band import BLOCK, OOB_PORT, OutOfBand
from fabtests.base.output import Report
from fabtests.base.pattern import pattern
from fabtests.base.program import Failed, Program
from fabtests.base.waiting import WAYS
from fabtests.base.where import cores_of, host_of, towards

__all__ = ["LIMIT", "READY", "Session"]

Bytes = npt.NDArray[np.uint8]

READY = "fabtests ready"
"""How the line begins by which a server says where it is."""

SYNC_BYTES = 4
"""Bytes of a ready message, and of the last one."""

LIMIT = 120.0
"""Seconds that one operation may take where the user names no time."""

LISTEN_SECONDS = 10.0
"""In which a C server listens for connections over the fabric, once it has taken the TCP connection beside it."""


class Session:
    """Opens what the program needs, and meets the other side unless the program does that.

    Parameters
    ----------
    program : Program
        What it needs.
    options : Options
        Of the command line.
    """

    def __init__(self, program: Program, options: Options) -> None:
        self.program = program
        self.options = options
        self.client = options.client
        self.report = Report(options)
        self.sent = 0
        self.received = 0
        self.oob: OutOfBand | None = None
        self.listener: ofipy.PassiveEndpoint | None = None
        self._peer: ofipy.Peer | None = None
        self._posted: deque[tuple[ofipy.Request, Bytes]] = deque()
        self._control: Bytes | None = None
        self._in_any_order = self._synchronised = False
        self._lasting = contextlib.ExitStack()
        self._stack = self._lasting.enter_context(contextlib.ExitStack())
        self._wait = WAYS[options.wait]
        self.require(program.caps)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    # ---------------------------------------------------------------------------------------------- meeting

    def require(self, caps: str) -> None:
        """End as not run when the provider lacks one of these capabilities, in this type of endpoint.

        Raises
        ------
        NotRun
            With what is missing.
        """
        require(caps, provider=self.options.provider, ep_type=self.options.ep_type)

    @property
    def out_of_band_sync(self) -> bool:
        """Whether synchronisation goes over the TCP connection."""
        return self.options.oob_sync is not None or "sync" in self.program.out_of_band

    @property
    def out_of_band_address(self) -> bool:
        """Whether addresses go over the TCP connection."""
        options = self.options
        asked = options.oob_sync is not None or options.oob_address is not None
        return asked or "address" in self.program.out_of_band

    def _open(self) -> None:
        options = self.options
        if options.pin_core is not None:
            os.sched_setaffinity(0, cores_of(options.pin_core))
        if self.out_of_band_sync or self.out_of_band_address:
            asked = (options.oob_sync, options.oob_address, options.oob_port)
            port = next((each for each in asked if each is not None), 0 if options.announce else OOB_PORT)
            host = None if not self.client else options.oob_host or host_of(options.host or "")
            self.oob = OutOfBand(host=host, port=port, node=options.oob_host or options.source_address)
            self._lasting.callback(self.oob.close)
        self._open_endpoint()

    def reopen(self, *, ready: bool = True) -> None:
        """Close the endpoint, and open and meet anew; the TCP connection stays.

        Parameters
        ----------
        ready : bool
            Whether a client first waits for the server's word over that connection.
        """
        self._stack.close()
        self.sent = self.received = 0
        self._peer, self._synchronised = None, False
        self._posted.clear()
        self._open_endpoint(ready=ready)

    def _open_endpoint(self, *, ready: bool = True) -> None:
        if self.options.ep_type == "msg":
            self._open_connected()
        else:
            self._open_unconnected(ready=ready)
        if self.program.meet:
            self.meet()

    def _open_unconnected(self, *, ready: bool) -> None:
        if self.oob is not None and self.client and ready:
            self.oob.ready()
        self._owner = self._stack.enter_context(
            ofipy.open(**self._where(), ep_type=self.options.ep_type, caps=self.program.caps)
        )
        if not self.program.open:
            self.endpoint = self._owner
            return
        self.endpoint = self.make_endpoint(service=self.service)
        # Out of band the options come first, and say how much room a message needs; a datagram would be lost meanwhile.
        if not self.out_of_band_address or self.options.ep_type == "dgram":
            self._post_ahead()
        if not self.client:
            self.announce()
            if self.oob is not None:
                if not self.oob.connected:
                    self.oob.accept()
                self.oob.ready()

    def _open_connected(self) -> None:
        if self.client:
            self._owner = self._stack.enter_context(
                ofipy.open(**self._where(), ep_type="msg", caps=self.program.caps)
            )
            if self.program.meet:
                self.endpoint = self.connect()
                self._post_ahead()
            return
        self.listener = self._stack.enter_context(
            ofipy.listen(self.service, **self._where(), caps=self.program.caps)
        )
        self.announce()
        if self.oob is not None:
            self.oob.accept()
        if self.program.meet:
            self.endpoint = self.accept()
            self._post_ahead()

    def _where(self) -> dict[str, Any]:
        options = self.options
        node = options.source_address or (towards(options.host) if options.host else None)
        return {
            "provider": options.provider,
            "node": node,
            "progress": options.progress,
            "threading": "safe" if options.threading == "completion" else options.threading,
        }

    @property
    def service(self) -> str | None:
        """Port or name that the endpoint is to be found at; None: any."""
        options = self.options
        # A client that connects is told no address.
        told = self.out_of_band_address and options.ep_type != "msg"
        return None if self.client or told or options.source_port == "0" else options.source_port

    @property
    def domain(self) -> ofipy.Domain:
        """The domain of everything here."""
        return self.listener.domain if self.listener is not None else self._owner.domain

    def make_endpoint(self, **more: Any) -> ofipy.Endpoint:
        """Open an endpoint as the program and the options want it."""
        endpoint = self.domain.endpoint(**self.endpoint_options(), **more)
        return self._stack.enter_context(endpoint.enable())

    def another(self) -> ofipy.Endpoint:
        """Open one more endpoint, in a domain of its own."""
        where = {**self._where(), "ep_type": self.options.ep_type, "caps": self.program.caps}
        complete = "delivery" if self.options.delivery else None
        return self._stack.enter_context(ofipy.open(**where, complete=complete))

    def endpoint_options(self) -> dict[str, Any]:
        """What an endpoint is made with."""
        values: dict[str, Any] = {"counters": {}}
        if self.options.delivery:
            values["complete"] = "delivery"
        if self.options.completion == "counter" or self.program.counters:
            self.tx_counter, self.rx_counter = self.domain.counter(), self.domain.counter()
            values["counters"] |= {"send": self.tx_counter, "recv": self.rx_counter}
        if self.program.remote_events:
            self.access_counter, self.write_counter = self.domain.counter(), self.domain.counter()
            values["counters"] |= {"remote_write": self.access_counter, "write": self.write_counter}
        return values

    def connect(self, data: bytes = b"", **more: Any) -> ofipy.Endpoint:
        """Client: connect a new endpoint to the server, which may not listen yet where both have met by TCP."""
        end = time.monotonic() + LISTEN_SECONDS
        while True:
            endpoint = self.make_endpoint(**more)
            try:
                endpoint.connect(self.server_address(), data=data).wait(timeout=self.limit)
            except ofipy.ConnectionRefused:
                if self.oob is None or time.monotonic() > end:
                    raise
                endpoint.close()
                time.sleep(0.2)
            else:
                return endpoint

    def accept(self, data: bytes = b"", **more: Any) -> ofipy.Endpoint:
        """Server: accept the next connection."""
        assert self.listener is not None
        request = self.listener.wait(timeout=self.options.timeout)
        return self.keep(request.accept(data=data, **self.endpoint_options(), **more))

    def keep(self, endpoint: ofipy.Endpoint) -> ofipy.Endpoint:
        """Close an endpoint with the session."""
        return self._stack.enter_context(endpoint)

    def server_address(self) -> str:
        """Where the server is: HOST and the port, or HOST where that is a whole address."""
        host = self.options.host or ""
        if "://" in host:
            return host
        return (
            f"[{host}]:{self.options.destination_port}"
            if ":" in host
            else f"{host}:{self.options.destination_port}"
        )

    def announce(self) -> None:
        """Server: say where it is, to who started it."""
        if self.options.announce:
            where = (self.listener or self.endpoint).address
            print(READY, where, self.oob.port if self.oob else 0, flush=True)

    def meet(self) -> None:
        """Exchange addresses; connected endpoints know each other."""
        if self.options.ep_type != "msg":
            self._peer = exchange(self, self.endpoint)
            if not self._posted:
                self._post_ahead()
        if self.late_receives and self._posted:
            self._sync_in_band(post=False)

    def next_client(self, *, reconnects: bool = True) -> None:
        """Server of several clients: meet the next one.

        Parameters
        ----------
        reconnects : bool
            Whether it comes by a TCP connection of its own.
        """
        if self.out_of_band_address and reconnects:
            assert self.oob is not None
            self.oob.accept()
            self.oob.ready()
        self.sent = self.received = 0
        self._peer = None
        self.meet()

    @property
    def peer(self) -> ofipy.Peer:
        """The other side."""
        return self.endpoint.peer if self._peer is None else self._peer

    @peer.setter
    def peer(self, peer: ofipy.Peer) -> None:
        self._peer = peer

    # --------------------------------------------------------------------------------------------- messages

    @property
    def late_receives(self) -> bool:
        """Whether receives are posted when they are wanted, not ahead."""
        return self.options.late_receives or self.program.late_receives

    @property
    def limit(self) -> float:
        """Seconds that an operation may take."""
        return self.options.timeout or LIMIT

    @property
    def size(self) -> int:
        """Bytes of a message, in programs of one size."""
        return self.options.sizes.sizes[0]

    @property
    def room(self) -> int:
        """Bytes that every receive has room for."""
        return min(max(self.options.sizes.longest, BLOCK), self.endpoint.info.max_msg_size)

    def wait(self, request: Any) -> Any:
        """Wait for an operation as ``-c`` says."""
        return self._wait(self.endpoint.cq, request, self.limit)

    def _post_ahead(self) -> None:
        if self.program.post:
            self.post()

    def post(self, buffer: Bytes | None = None, *, tag: int | None = None) -> None:
        """Post a receive behind those that are posted."""
        if buffer is None:
            buffer = self._room()
        if self.program.tagged:
            number = self.received if tag is None else tag
            request = self.endpoint.trecv_into(buffer, tag=number, room_timeout=self.limit)
        else:
            request = self.endpoint.recv_into(buffer, room_timeout=self.limit)
        self.received += 1
        self._posted.append((request, buffer))

    def _room(self) -> Bytes:
        # The contents of a control message are looked at before the next receive is posted.
        if self._control is None or self._control.size < self.room:
            self._control = self.buffer(self.room)
        return self._control

    def post_for_data(self, count: int) -> None:
        """Have `count` receives posted, for as many writes with data.

        An RDMA device that connects two endpoints gives such a write the oldest receive, and lets the writer pause
        when there is none. The receive comes back behind the others, so messages may meet them in any order.
        """
        self._in_any_order = self.options.ep_type == "msg"
        while self._in_any_order and len(self._posted) < count:
            self.post()

    def posted(self, index: int = -1) -> tuple[ofipy.Request, Bytes]:
        """Take over a posted receive: the last one unless told."""
        found = self._posted[index]
        del self._posted[index]
        return found

    def take(self) -> Bytes:
        """Wait for the receive that was posted first, or for any where their order does not hold; what came."""
        request, buffer = self.posted(self._first_to_come()) if self._in_any_order else self._posted.popleft()
        if self.options.completion == "counter":
            self.rx_counter.wait(self.received - len(self._posted), self.limit)
        self.wait(request)
        return buffer[: request.length]

    def _first_to_come(self) -> int:
        requests = [request for request, _ in self._posted]
        return requests.index(ofipy.wait_any(requests, self.limit))

    def receive(self) -> Bytes:
        """Take the next message, and post a receive for the one after it."""
        data = self.take()
        self.post()
        return data

    def start_send(self, message: Any, *, tag: int | None = None, **more: Any) -> ofipy.Request:
        """Send, and do not wait."""
        if self.options.inject is not None and len(message) <= self.options.inject:
            more.setdefault("flags", "inject")
        if self.program.tagged:
            number = self.sent if tag is None else tag
            request = self.endpoint.tsend(message, self.peer, tag=number, room_timeout=self.limit, **more)
        else:
            request = self.endpoint.send(message, self.peer, room_timeout=self.limit, **more)
        self.sent += 1
        return request

    def send(self, message: Any, *, tag: int | None = None, **more: Any) -> None:
        """Send, and wait until the buffer may be used again."""
        request = self.start_send(message, tag=tag, **more)
        if self.options.completion == "counter":
            self.tx_counter.wait(self.sent, self.limit)
        self.wait(request)

    def sync(self) -> None:
        """Return when the other side has come to the same point."""
        if self.out_of_band_sync:
            assert self.oob is not None
            self.oob.sync()
        else:
            self._sync_in_band(post=True)

    def _sync_in_band(self, *, post: bool) -> None:
        # The client's first one between connected endpoints, which exchange no names, carries its options.
        first = self.options.ep_type == "msg" and not self._synchronised
        self._synchronised = True
        if self.client:
            self.send(described(self) if first else _NOTHING, complete="delivery")
        difference = read_difference(self, self.take())
        if not self.client:
            self.send(described(self) if difference is not None else _NOTHING, complete="delivery")
        if difference is not None:
            raise difference
        if post:
            self.post()

    def ready(self) -> None:
        """Tell the sender that a window was taken."""
        self.send(pattern(SYNC_BYTES))

    def finish(self) -> None:
        """Meet the other side for the last time."""
        if self.out_of_band_sync:
            assert self.oob is not None
            self.oob.ready()
            return
        if not self._posted:
            self.post()
        if self.client:
            self.send(pattern(SYNC_BYTES), complete="transmit")
            self.take()
        else:
            self.take()
            self.send(pattern(SYNC_BYTES), complete="transmit")

    # ----------------------------------------------------------------------------------------------- others

    def buffer(self, size: int) -> Bytes:
        """Memory for messages, aligned to pages with ``-l``."""
        if not self.options.align:
            return np.zeros(size, np.uint8)
        import mmap

        return np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8)[:size]

    def expect(self, condition: bool, what: str) -> None:
        """Fail when something is not as it has to be."""
        if not condition:
            raise Failed(what)

    def passed(self, what: str) -> None:
        """Say that a step went well."""
        if not self.options.as_json and not self.options.machine_readable:
            click.echo(f"GOOD: {what}")
            sys.stdout.flush()

    def close(self) -> None:
        """Close everything."""
        self._lasting.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_NOTHING = np.zeros(0, np.uint8)
