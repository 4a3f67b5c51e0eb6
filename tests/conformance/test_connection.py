# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints of type msg: listeners, requests, private data, the end of a connection. Both sides are in this process."""

import asyncio
import errno
import pickle
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from sides import Target

import ofipy

pytestmark = pytest.mark.needs("connections")

TIMEOUT = 20

OpenDomain = Callable[..., ofipy.Domain]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ofipy.Endpoint]]:
    """The endpoints of a test: one that were dropped before its domain is closed would warn."""
    made: list[ofipy.Endpoint] = []
    enable = ofipy.Endpoint.enable

    def enable_and_keep(endpoint: ofipy.Endpoint) -> ofipy.Endpoint:
        made.append(endpoint)
        return enable(endpoint)

    monkeypatch.setattr(ofipy.Endpoint, "enable", enable_and_keep)
    yield made
    made.clear()


@pytest.fixture
def open_domain(target: Target, kept: list[ofipy.Endpoint]) -> Iterator[OpenDomain]:
    """Opens domains for connected endpoints; closes them at the end."""
    made = []
    connecting = target.connected()
    assert connecting is not None

    def make(progress: str = "auto") -> ofipy.Domain:
        made.append(connecting.open_domain(progress=progress))
        return made[-1]

    yield make
    for domain in made:
        domain.fabric.close()


@pytest.fixture
def listener(open_domain: OpenDomain) -> ofipy.PassiveEndpoint:
    """One that listens, in a domain of its own."""
    made = open_domain().passive_endpoint()
    made.listen()
    return made


@pytest.fixture
def client(open_domain: OpenDomain) -> ofipy.Endpoint:
    """An endpoint to be connected, in a domain of its own."""
    return open_domain().endpoint().enable()


def connect(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> ofipy.Endpoint:
    """The listener's end of a connection."""
    connection = client.connect(listener.address)
    server = listener.wait(timeout=TIMEOUT).accept()
    connection.wait(timeout=TIMEOUT)
    return server


def test_private_data_both_ways(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    longest = client.info.max_private_data
    assert longest >= 56
    asked, answer = bytes(range(256))[:longest], b"\0welcome\0"
    connection = client.connect(bytes(listener.address), data=asked)
    request = listener.wait(timeout=TIMEOUT)
    assert request.data == asked
    assert request.info == listener.domain.info
    assert request.info.ep_type is ofipy.EndpointType.MSG
    assert not connection.done
    server = request.accept(data=answer)
    assert connection.wait(timeout=TIMEOUT) == connection.wait() == answer
    assert connection.done
    assert connection.exception() is None
    assert client.peer_address == listener.address
    assert server.peer_address == request.address == server.peer.address


def test_an_alias_has_the_connection_of_its_endpoint(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint
) -> None:
    alias = client.alias(complete="delivery")
    connection = alias.connect(listener.address)
    server = listener.wait(timeout=TIMEOUT).accept()
    connection.wait(timeout=TIMEOUT)
    assert (alias.peer, alias.peer_address) == (client.peer, client.peer_address)
    into = bytearray(8)
    receive = server.alias().trecv_into(into, tag=3)
    alias.tsend(b"by alias", tag=3).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).source is server.peer
    assert into == b"by alias"
    alias.shutdown()
    alias.close()
    for use in (alias.shutdown, alias.accept, lambda: alias.connect(listener.address)):
        with pytest.raises(ofipy.Closed):
            use()


def test_messages_need_no_peer(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    server = connect(listener, client)
    client.tsend(b"request", tag=3).wait(timeout=TIMEOUT)
    room = bytearray(16)
    got = server.trecv_into(room, tag=3).wait(timeout=TIMEOUT)
    assert bytes(room[: got.length]) == b"request"
    assert got.source is server.peer
    assert server.peer is not client.peer
    server.send(b"answer", None).wait(timeout=TIMEOUT)
    got = client.recv_into(room, client.peer).wait(timeout=TIMEOUT)
    assert (bytes(room[: got.length]), got.source) == (b"answer", client.peer)
    ping, pong = client.prepare_tsend(b"again", tag=4), server.prepare_trecv(room, tag=4)
    for _ in range(3):
        pong.start()
        ping.start()
        assert pong.wait(timeout=TIMEOUT).length == 5
        ping.wait(timeout=TIMEOUT)


def test_receives_may_be_posted_first(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    rooms = bytearray(5), bytearray(5)
    with pytest.raises(ofipy.NotConnected):
        client.tsend(b"early", tag=1)
    mine = client.trecv_into(rooms[0], tag=1)
    connection = client.connect(listener.address)
    early = client.tsend(b"early", tag=1)
    request = listener.wait(timeout=TIMEOUT)
    server = listener.domain.endpoint(request=request).enable()
    yours = server.trecv_into(rooms[1], tag=1)
    assert server.peer_address == request.address
    server.accept().wait(timeout=TIMEOUT)
    server.tsend(b"first", tag=1).wait(timeout=TIMEOUT)
    ofipy.wait_all([mine, early], timeout=TIMEOUT)
    yours.wait(timeout=TIMEOUT)
    connection.wait(timeout=TIMEOUT)
    assert rooms == (b"first", b"early")


def test_a_rejected_request(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    connection = client.connect(listener.address)
    request = listener.wait(timeout=TIMEOUT)
    request.reject(data=b"full")
    with pytest.raises(ofipy.ConnectionRefused) as caught:
        connection.wait(timeout=TIMEOUT)
    assert caught.value.data == b"full"
    assert str(listener.address) in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.data, copy.peer) == (b"full", caught.value.peer)
    assert isinstance(connection.exception(), ConnectionRefusedError)
    for answer in request.accept, request.reject:
        with pytest.raises(ofipy.InvalidArgument, match="answered before"):
            answer()
    with pytest.raises(ofipy.NotConnected):
        client.send(b"anyway")


def test_nobody_listens(open_domain: OpenDomain, client: ofipy.Endpoint) -> None:
    bound = open_domain().passive_endpoint()
    with pytest.raises(ofipy.ConnectionRefused) as caught:
        client.connect(bound.address).wait(timeout=TIMEOUT)
    assert caught.value.data == b""
    address = bound.address
    bound.close()
    with pytest.raises(ofipy.ConnectionRefused):
        open_domain().endpoint().enable().connect(address).wait(timeout=TIMEOUT)


def test_nobody_answers(listener: ofipy.PassiveEndpoint, open_domain: OpenDomain) -> None:
    domain = open_domain()
    clients = [domain.endpoint().enable() for _ in range(3)]
    connections = [each.connect(listener.address, data=bytes([i])) for i, each in enumerate(clients)]
    requests = sorted((listener.wait(timeout=TIMEOUT) for _ in clients), key=lambda request: request.data)
    with pytest.raises(ofipy.TimedOut):
        connections[0].wait(timeout=0.01)
    for silent in (connections[0], listener):
        with pytest.raises(ofipy.TimedOut, match=r"0\.01 s"):
            silent.wait(0.01)
    # From an opened endpoint the answer is that one's, not the listener's.
    opened = listener.domain.endpoint(request=requests[1]).enable()
    accepted = requests[2].accept()
    listener.close()
    with pytest.raises(ofipy.ConnectionRefused):
        connections[0].wait(timeout=TIMEOUT)
    assert not connections[1].done
    opened.close()
    with pytest.raises(ofipy.ConnectionRefused):
        connections[1].wait(timeout=TIMEOUT)
    connections[2].wait(timeout=TIMEOUT)
    clients[2].send(b"still there").wait(timeout=TIMEOUT)
    assert accepted.recv_into(bytearray(16)).wait(timeout=TIMEOUT).length == 11


def test_the_backlog_bounds_unanswered_requests(open_domain: OpenDomain) -> None:
    listener = open_domain().passive_endpoint(backlog=2)
    listener.listen()
    domain = open_domain()
    clients = [domain.endpoint().enable() for _ in range(3)]
    connections = [client.connect(listener.address) for client in clients]
    refused = 0
    # Which two came first is the network's affair.
    while not refused:
        refused = sum(connection.done for connection in connections)
        domain.progress()
    assert refused == 1
    for _ in range(2):
        listener.wait(timeout=TIMEOUT).accept()
    outcomes = []
    for connection in connections:
        try:
            outcomes.append(connection.wait(timeout=TIMEOUT))
        except ofipy.ConnectionRefused:
            outcomes.append(None)
    assert sorted(outcomes, key=str) == [None, b"", b""]
    # The answered ones have made room.
    again = domain.endpoint().enable()
    connection = again.connect(listener.address)
    listener.wait(timeout=TIMEOUT).accept()
    connection.wait(timeout=TIMEOUT)


def test_events(open_domain: OpenDomain) -> None:
    domain = open_domain()
    events = domain.event_queue()
    listener = domain.passive_endpoint(eq=events)
    listener.listen()
    with pytest.raises(ofipy.InvalidArgument, match="event queue that it was given"):
        listener.wait()
    there = open_domain()
    news = there.event_queue()
    client = there.endpoint(eq=news).enable()
    client.connect(listener.address, data=b"hello")
    event = events.wait(timeout=TIMEOUT)
    assert (event.kind, event.endpoint, event.data) == (ofipy.EventKind.CONNREQ, listener.id, b"hello")
    with pytest.raises(ofipy.InvalidArgument, match="CONNREQ is meant"):
        listener.request(ofipy.Event())
    server = listener.request(event).accept(data=b"welcome", eq=events)
    with pytest.raises(ofipy.InvalidArgument, match="answered before"):
        listener.request(event)
    event = events.wait(timeout=TIMEOUT)
    assert (event.kind, event.endpoint, event.data) == (ofipy.EventKind.CONNECTED, server.id, b"")
    event = news.wait(timeout=TIMEOUT)
    assert (event.kind, event.endpoint, event.data) == (ofipy.EventKind.CONNECTED, client.id, b"welcome")
    assert event.exception is None
    client.shutdown()
    event = events.wait(timeout=TIMEOUT)
    assert (event.kind, event.endpoint, event.error) == (ofipy.EventKind.SHUTDOWN, server.id, 0)
    assert news.read() is None

    refused = there.endpoint(eq=news).enable()
    refused.connect(listener.address)
    listener.request(events.wait(timeout=TIMEOUT)).reject(data=b"no")
    event = news.wait(timeout=TIMEOUT)
    assert (event.kind, event.endpoint, event.data) == (ofipy.EventKind.CONNECTED, refused.id, b"no")
    assert event.error == errno.ECONNREFUSED
    assert isinstance(event.exception, ofipy.ConnectionRefused)


def test_what_was_posted_leaves_before_the_end(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint
) -> None:
    server = connect(listener, client)
    data = np.arange(40_000, dtype=np.uint32)
    waiting = client.trecv_into(bytearray(8), tag=9)
    sends = [client.tsend(data + step, tag=step) for step in range(20)]
    left = client.shutdown()
    with pytest.raises(ofipy.NotConnected):
        client.tsend(b"late", tag=0)
    for step in range(20):
        room = np.zeros_like(data)
        server.trecv_into(room, tag=step).wait(timeout=TIMEOUT)
        assert np.array_equal(room, data + step)
    ofipy.wait_all([*sends, left], timeout=TIMEOUT)
    with pytest.raises(ofipy.Canceled):
        waiting.wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.PeerLost):
        server.trecv_into(bytearray(8), tag=0).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.NotConnected):
        client.shutdown()


def test_the_other_side_closes(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    server = connect(listener, client)
    client.tsend(b"last", tag=1, complete="transmit").wait(timeout=TIMEOUT)
    posted = server.trecv_into(bytearray(8), tag=2)
    untagged = server.recv_into(bytearray(8))
    client.fabric.close()
    for request in posted, untagged:
        with pytest.raises(ofipy.PeerLost):
            request.wait(timeout=TIMEOUT)
    # What had come can be received, nothing else.
    room = bytearray(4)
    assert server.trecv_into(room, tag=1).wait(timeout=TIMEOUT).length == 4
    assert room == b"last"
    with pytest.raises(ofipy.PeerLost):
        server.trecv_into(room, tag=1).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.NotConnected):
        server.tsend(b"answer", tag=1)


def test_both_sides_shut_down(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    """Whoever is second: an orderly end from both sides is no error."""
    server = connect(listener, client)
    client.shutdown().wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.PeerLost):
        server.trecv_into(bytearray(8), tag=0).wait(timeout=TIMEOUT)
    server.shutdown().wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.NotConnected, match="has ended already"):
        server.shutdown()


def test_both_sides_shut_down_at_once(open_domain: OpenDomain, listener: ofipy.PassiveEndpoint) -> None:
    for _ in range(20):
        client = open_domain().endpoint().enable()
        server = connect(listener, client)
        for left in (client.shutdown(), server.shutdown()):
            left.wait(timeout=TIMEOUT)


def test_an_end_that_does_not_come(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    server = connect(listener, client)
    unmatched = client.tsend(b"nobody receives it", tag=1, complete="match")
    left = client.shutdown()
    with pytest.raises(ofipy.TimedOut):
        left.wait(timeout=0.05)
    server.close()
    with pytest.raises(ofipy.PeerLost):
        left.wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.Canceled):
        unmatched.wait(timeout=TIMEOUT)


def test_closing_ends_the_handshake(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    connection = client.connect(listener.address)
    request = listener.wait(timeout=TIMEOUT)
    client.close()
    with pytest.raises(ofipy.Canceled):
        connection.wait(timeout=TIMEOUT)
    # The listener may not know; whoever accepts learns it.
    server = request.accept()
    with pytest.raises(ofipy.PeerLost):
        server.recv_into(bytearray(1)).wait(timeout=TIMEOUT)


@pytest.mark.needs("rma")
def test_remote_memory(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    server = connect(listener, client)
    memory = np.arange(64, dtype=np.uint8)
    region = server.register(memory, access="remote_read|remote_write")
    client.write(b"\xff" * 8, client.peer, region.remote[8:16], complete="delivery").wait(timeout=TIMEOUT)
    got = bytearray(64)
    client.read(got, client.peer, region.remote).wait(timeout=TIMEOUT)
    assert bytes(got) == bytes(range(8)) + b"\xff" * 8 + bytes(range(16, 64)) == memory.tobytes()


@pytest.mark.needs("shared_context")
def test_a_receive_context_of_many_connections(open_domain: OpenDomain) -> None:
    domain = open_domain()
    listener = domain.passive_endpoint()
    listener.listen()
    context = domain.receive_context()
    with pytest.raises(ofipy.NotSupported):
        _ = context.av
    clients, servers = [], []
    for _ in range(3):
        client = open_domain().endpoint().enable()
        connection = client.connect(listener.address)
        servers.append(listener.wait(timeout=TIMEOUT).accept(rx=context))
        connection.wait(timeout=TIMEOUT)
        clients.append(client)
    for client, server in zip(clients, servers, strict=True):
        request = context.trecv(tag=1)
        client.tsend(b"to all", tag=1).wait(timeout=TIMEOUT)
        assert request.wait(timeout=TIMEOUT).source is server.peer


async def serve_and_ask(listener: ofipy.PassiveEndpoint, clients: list[ofipy.Endpoint]) -> list[bytes]:
    async def serve() -> None:
        async for request in listener:
            if request.data == b"0":
                request.reject(data=b"not you")
                continue
            server = request.accept(data=b"welcome " + request.data)
            room = bytearray(11)
            got = await server.trecv_into(room, tag=1)
            await server.tsend(room.upper(), got.source, tag=2)
            await server.shutdown()
            server.close()

    async def ask(number: int, client: ofipy.Endpoint) -> bytes:
        try:
            answer = await client.connect(listener.address, data=b"%d" % number)
        except ofipy.ConnectionRefused as error:
            return error.data
        await client.tsend(b"from client", tag=1)
        room = bytearray(11)
        await client.trecv_into(room, tag=2)
        return bytes(answer + b": " + room)

    serving = asyncio.create_task(serve())
    answers = await asyncio.gather(*(ask(number, client) for number, client in enumerate(clients)))
    serving.cancel()
    return list(answers)


@pytest.mark.parametrize("progress", ["auto", "manual"])
def test_asyncio(open_domain: OpenDomain, progress: str) -> None:
    # One domain for all: one loop drives it whatever it waits for.
    domain = open_domain(progress)
    listener = domain.passive_endpoint()
    listener.listen()
    clients = [domain.endpoint().enable() for _ in range(4)]

    async def main() -> list[bytes]:
        async with asyncio.timeout(TIMEOUT):
            return await serve_and_ask(listener, clients)

    assert asyncio.run(main()) == [b"not you", *(b"welcome %d: FROM CLIENT" % number for number in (1, 2, 3))]


def test_cancelling_an_awaited_request_loses_none(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint
) -> None:
    async def main() -> bytes:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await listener.next()
        waiting = [asyncio.create_task(listener.next()) for _ in range(2)]
        await asyncio.sleep(0)
        connection = client.connect(listener.address, data=b"found")
        done, _ = await asyncio.wait(waiting, timeout=TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        request = done.pop().result()
        request.accept()
        await connection
        listener.close()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert sum(isinstance(outcome, ofipy.Closed) for outcome in outcomes) == 1
        return request.data

    assert asyncio.run(main()) == b"found"


def test_waiting_in_a_thread_ends_with_the_listener(listener: ofipy.PassiveEndpoint) -> None:
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            listener.wait()
        except ofipy.FabricError as error:
            failures.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    listener.fabric.close()
    waiter.join(TIMEOUT)
    assert not waiter.is_alive()
    assert isinstance(failures[0], ofipy.Canceled | ofipy.Closed)


def test_wrong_uses(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint, target: Target) -> None:
    domain = client.domain
    too_long = bytes(client.info.max_private_data + 1)
    with pytest.raises(ofipy.MessageTooLong, match="private data"):
        client.connect(listener.address, data=too_long)
    for wrong in (5, "text", np.array([{}], object)):
        with pytest.raises(ofipy.BufferTypeError, match=r"bytes are meant|Python objects"):
            client.connect(listener.address, data=wrong)  # type: ignore[arg-type]
    with pytest.raises(ofipy.InvalidArgument, match="not opened from"):
        client.accept()
    with pytest.raises(ofipy.NotConnected):
        _ = client.peer_address
    with pytest.raises(ofipy.NotSupported):
        _ = client.av
    with pytest.raises(ofipy.NotSupported):
        client.insert(listener.address)
    with pytest.raises(ofipy.InvalidArgument, match="no address vector"):
        domain.endpoint(av=domain.av())
    with pytest.raises(ofipy.InvalidArgument, match=r"backlog=0; 1 to 2\*\*24 requests are meant"):
        domain.passive_endpoint(backlog=0)
    connection = client.connect(listener.address)
    with pytest.raises(ofipy.FabricError, match="has, or had, a connection"):
        client.connect(listener.address)
    request = listener.wait(timeout=TIMEOUT)
    for answer in request.accept, request.reject:
        with pytest.raises(ofipy.MessageTooLong):
            answer(data=too_long)
    with pytest.raises(ofipy.InvalidArgument, match="another domain"):
        domain.endpoint(request=request)
    request.accept()
    connection.wait(timeout=TIMEOUT)

    with target.open().fabric as fabric:
        rdm = ofipy.Fabric.domain(fabric).endpoint().enable()
        for call in (lambda: rdm.connect(listener.address), rdm.accept, lambda: rdm.peer):
            with pytest.raises(ofipy.NotSupported):
                call()
        with pytest.raises(ofipy.NotSupported):
            rdm.shutdown()
        with pytest.raises(ofipy.NotSupported):
            rdm.domain.passive_endpoint()
        with pytest.raises(ofipy.InvalidArgument, match="needs a Peer"):
            rdm.tsend(b"to nobody", tag=1)


@pytest.mark.needs("default")
def test_the_short_way(target: Target) -> None:
    with (
        ofipy.listen(provider=target.provider) as listener,
        ofipy.open(provider=target.provider, ep_type="msg") as ep,
    ):
        connection = ep.connect(str(listener.address))
        server = listener.wait(timeout=TIMEOUT).accept()
        connection.wait(timeout=TIMEOUT)
        ep.send(b"hello").wait(timeout=TIMEOUT)
        assert bytes(server.recv().wait(timeout=TIMEOUT)) == b"hello"
        with pytest.raises(ofipy.FabricError):
            ofipy.listen(provider=target.provider, node="host.invalid")
    assert server.closed
    with pytest.raises(ofipy.Closed):
        listener.wait()


def test_a_service_is_taken_once(open_domain: OpenDomain) -> None:
    listener = open_domain().passive_endpoint()
    address = listener.address
    service = str(address).rpartition(":")[2]
    with pytest.raises(ofipy.AddressInUse):
        open_domain().passive_endpoint(service=service)
    listener.close()
    again = open_domain().passive_endpoint(service=service)
    assert again.address == address
    again.close()


def test_a_request_that_nobody_keeps(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    client.connect(listener.address)  # its outcome is not waited for
    server = listener.wait(timeout=TIMEOUT).accept()
    server.send(b"x").wait(timeout=TIMEOUT)
    assert client.recv_into(bytearray(1)).wait(timeout=TIMEOUT).length == 1
