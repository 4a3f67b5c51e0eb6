# SPDX-License-Identifier: BSD-3-Clause
"""The scheme ``ofi``: how connections are asked for and accepted, and what its addresses mean."""

import asyncio
import inspect
import logging
import random
from contextlib import suppress
from typing import Any

from distributed.comm.addressing import parse_host_port, unparse_host_port
from distributed.comm.core import BaseListener, CommClosedError, Connector
from distributed.comm.registry import Backend
from distributed.comm.utils import ensure_concrete_host
from distributed.utils import ensure_ip, get_ip, get_ipv6

from ofipy._base import config
from ofipy._base.errors import AddressInUse, FabricError, IncompatiblePeer, InvalidArgument, NotSupported
from ofipy._discovery.av import Peer
from ofipy.dask import wire
from ofipy.dask.comm import OFI
from ofipy.dask.hub import Hub

__all__ = ["OFIBackend"]

_log = logging.getLogger("distributed.comm.ofi")

_PREFIX = "ofi://"
_PORTS = range(32768, 61000)  # to choose from where the transport has none of its own
_TRIES = 100


def _refuse_encryption(address: str, arguments: dict[str, Any]) -> None:
    if arguments.get("require_encryption") and config.value("ENCRYPTION") != "required":
        raise RuntimeError(
            f"encryption required by Dask configuration, refusing communication from/to {_PREFIX + address!r}: "
            "set OFIPY_ENCRYPTION=required and OFIPY_AUTH_KEY_FILE for every process of the cluster"
        )


class OFIConnector(Connector):
    """Calls listeners."""

    async def connect(self, address: str, deserialize: bool = True, **connection_args: Any) -> OFI:
        """Connect to ``host:port``.

        Raises
        ------
        RuntimeError
            When Dask requires encryption.
        ValueError
            When it is no address.
        OSError
            When nobody answers there; Dask tries again.
        """
        _refuse_encryption(address, connection_args)
        host, port = parse_host_port(address)
        hub = Hub.of_loop()
        peer = hub.endpoint.insert(unparse_host_port(ensure_ip(host), port))
        number = hub.take()
        # The port is no port: nobody can call there. It tells connections of this host apart.
        local = _PREFIX + unparse_host_port(get_ip(host), 1 + number % 65535)
        try:
            await hub.reach(peer)
            incarnation = hub.incarnation(peer)
            far_number = await self._call(hub, peer, incarnation, number, local)
        except BaseException:
            hub.let_go()
            raise
        return OFI(hub, peer, incarnation, number, far_number, local, _PREFIX + address, deserialize)

    @staticmethod
    async def _call(hub: Hub, peer: Peer, incarnation: int | None, number: int, local: str) -> int:
        answer = hub.endpoint.trecv(peer, tag=wire.tag(wire.Kind.ANSWER, number), incarnation=incarnation)
        try:
            await hub.endpoint.tsend(
                wire.pack_call(number, local),
                peer,
                tag=wire.tag(wire.Kind.CALL),
                incarnation=incarnation,
            )
            far_number = wire.read_answer(bytes((await answer).data), str(peer.address))
        finally:
            if not answer.done:
                answer.cancel()
        if far_number is None:
            raise CommClosedError(f"{peer.address} takes no connections any more")
        return far_number


class OFIListener(BaseListener):
    """Takes calls at ``host:port``; of parameters as distributed's TCPListener."""

    prefix = _PREFIX

    def __init__(
        self,
        address: str,
        comm_handler: Any,
        deserialize: bool = True,
        allow_offload: bool = True,
        default_host: str | None = None,
        default_port: int = 0,
        **connection_args: Any,
    ) -> None:
        super().__init__()
        _refuse_encryption(address, connection_args)
        self._host, self._port = parse_host_port(address, default_port)
        self._default_host = default_host
        self._handler = comm_handler
        self._deserialize, self._allow_offload = deserialize, allow_offload
        self._hub: Hub | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the endpoint, and take calls from now on."""
        self._hub, self._port = _open_at(self._host, self._port)
        self._hub.take()
        self._accepting = asyncio.create_task(self._accept(self._hub))

    def stop(self) -> None:
        """Take no more calls; connections whose handshake is not over end, others go on."""
        if self._accepting is None or self._hub is None:
            return
        with suppress(RuntimeError):  # the loop is closed
            self._accepting.cancel()
        self._accepting = None
        self.abort_handshaking_comms()
        self._hub.let_go()

    async def _accept(self, hub: Hub) -> None:
        while True:
            try:
                message = await hub.endpoint.trecv(tag=wire.tag(wire.Kind.CALL))
                self._take(hub, message)
            except InvalidArgument as error:
                _log.info("at %s: %s", self.listen_address, error)
            except FabricError as error:
                if hub.endpoint.closed:
                    return
                _log.warning("at %s: %s", self.listen_address, error)

    def _take(self, hub: Hub, message: Any) -> None:
        versions, far_number, address = wire.read_call(bytes(message.data))
        tag = wire.tag(wire.Kind.ANSWER, far_number)
        if message.source is None:
            raise InvalidArgument("a call of somebody who is not known")
        try:
            wire.check_versions(versions, address)
        except IncompatiblePeer:
            hub.endpoint.tsend(wire.pack_answer(None), message.source, tag=tag)
            raise
        incarnation = message.incarnation if hub.binds else None
        number = hub.take()
        hub.endpoint.tsend(wire.pack_answer(number), message.source, tag=tag, incarnation=incarnation)
        comm = OFI(
            hub,
            message.source,
            incarnation,
            number,
            far_number,
            self.contact_address,
            address,
            self._deserialize,
        )
        comm.allow_offload = self._allow_offload
        task = asyncio.create_task(self._handle(comm))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, comm: OFI) -> None:
        try:
            await self.on_connection(comm)
        except CommClosedError:
            _log.info("%s closed before the handshake was over", comm)
            return
        handled = self._handler(comm)
        if inspect.isawaitable(handled):
            await handled

    @property
    def listen_address(self) -> str:
        """Where it listens."""
        if self._hub is None:
            raise ValueError("the listener was not started")
        return f"{_PREFIX}{unparse_host_port(self._host, self._port)}"

    @property
    def contact_address(self) -> str:
        """Where others reach it."""
        host = ensure_concrete_host(self._host, default_host=self._default_host)
        return f"{_PREFIX}{unparse_host_port(host, self._port)}"


def _open_at(host: str, port: int) -> tuple[Hub, int]:
    """One that is found at ``host:port``, any port for 0; and the port."""
    try:
        hub = Hub.open(port or None, node=host or "0.0.0.0")
    except NotSupported:
        return _open_named(port)
    found = str(hub.endpoint.address).rpartition(":")[2]
    if found.isdecimal():
        return hub, int(found)
    # A transport within this host, which has names in place of ports.
    hub.endpoint.close()
    return _open_named(port)


def _open_named(port: int) -> tuple[Hub, int]:
    for _ in range(_TRIES):
        chosen = port or random.choice(_PORTS)
        try:
            return Hub.open(chosen), chosen
        except AddressInUse:
            if port:
                raise
    raise AddressInUse(f"{_TRIES} names that were drawn are all in use", operation="listen")


class OFIBackend(Backend):
    """What `distributed` asks of a scheme."""

    def get_connector(self) -> OFIConnector:
        """Who calls."""
        return OFIConnector()

    def get_listener(
        self, loc: str, handle_comm: Any, deserialize: bool, **connection_args: Any
    ) -> OFIListener:
        """Who takes calls."""
        return OFIListener(loc, handle_comm, deserialize, **connection_args)

    def get_address_host(self, loc: str) -> str:
        """The host of ``host:port``."""
        return str(parse_host_port(loc)[0])

    def get_address_host_port(self, loc: str) -> tuple[str, int]:
        """Both."""
        host, port = parse_host_port(loc)
        return host, port

    def resolve_address(self, loc: str) -> str:
        """With the address in place of a name."""
        host, port = parse_host_port(loc)
        return str(unparse_host_port(ensure_ip(host), port))

    def get_local_address_for(self, loc: str) -> str:
        """Where this host is reached by that one, at any port."""
        host, _ = parse_host_port(loc)
        host = ensure_ip(host)
        return str(unparse_host_port(get_ipv6(host) if ":" in host else get_ip(host), None))
