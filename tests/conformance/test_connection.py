# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints of type msg: listeners, requests, private data. Both sides are in this process."""

import errno
import pickle

import numpy as np
import pytest
from connected import TIMEOUT, OpenDomain, connect
from sides import Target

import ofipy

pytestmark = [pytest.mark.needs("connections"), pytest.mark.untagged]


def test_private_data_both_ways(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    longest = client.info.max_private_data
    assert longest >= 55  # libfabric's verbs has no more
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
    receive = server.alias().recv_into(into)
    alias.send(b"by alias").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).source is server.peer
    assert into == b"by alias"
    alias.shutdown()
    alias.close()
    for use in (alias.shutdown, alias.accept, lambda: alias.connect(listener.address)):
        with pytest.raises(ofipy.Closed):
            use()


def test_messages_need_no_peer(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    server = connect(listener, client)
    client.send(b"request").wait(timeout=TIMEOUT)
    room = bytearray(16)
    got = server.recv_into(room).wait(timeout=TIMEOUT)
    assert bytes(room[: got.length]) == b"request"
    assert got.source is server.peer
    assert server.peer is not client.peer
    server.send(b"answer", None).wait(timeout=TIMEOUT)
    got = client.recv_into(room, client.peer).wait(timeout=TIMEOUT)
    assert (bytes(room[: got.length]), got.source) == (b"answer", client.peer)
    ping, pong = client.prepare_send(b"again"), server.prepare_recv(room)
    for _ in range(3):
        pong.start()
        ping.start()
        assert pong.wait(timeout=TIMEOUT).length == 5
        ping.wait(timeout=TIMEOUT)


def test_receives_may_be_posted_first(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    rooms = bytearray(5), bytearray(5)
    with pytest.raises(ofipy.NotConnected):
        client.send(b"early")
    mine = client.recv_into(rooms[0])
    connection = client.connect(listener.address)
    early = client.send(b"early")
    request = listener.wait(timeout=TIMEOUT)
    server = listener.domain.endpoint(request=request).enable()
    yours = server.recv_into(rooms[1])
    assert server.peer_address == request.address
    server.accept().wait(timeout=TIMEOUT)
    server.send(b"first").wait(timeout=TIMEOUT)
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
    connecting = refused.connect(listener.address)
    listener.request(events.wait(timeout=TIMEOUT)).reject(data=b"no")
    event = news.wait(timeout=TIMEOUT)
    assert (event.kind, event.endpoint, event.data) == (ofipy.EventKind.CONNECTED, refused.id, b"no")
    assert event.error == errno.ECONNREFUSED
    assert isinstance(event.exception, ofipy.ConnectionRefused)
    with pytest.raises(ofipy.ConnectionRefused) as caught:
        connecting.wait(timeout=TIMEOUT)
    # Both tell the same reason.
    assert str(caught.value).partition(": ")[2] in str(event.exception)


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


def test_wrong_uses(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
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


@pytest.mark.needs("rdm")
def test_endpoints_without_connections(listener: ofipy.PassiveEndpoint, target: Target) -> None:
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
        ofipy.listen(provider=target.provider, caps="msg") as listener,
        ofipy.open(provider=target.provider, ep_type="msg", caps="msg") as ep,
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


def test_a_service_is_taken_once(target: Target, open_domain: OpenDomain) -> None:
    service = target.free_service()
    listener = open_domain().passive_endpoint(service=service)
    address = listener.address
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


def test_a_listener_becomes_an_endpoint_at_its_address(
    listener: ofipy.PassiveEndpoint, open_domain: OpenDomain
) -> None:
    domain = open_domain()
    other = domain.passive_endpoint()
    address = other.address
    queue = domain.event_queue()
    client = other.connect(listener.address, data=b"from a listener", eq=queue)
    assert other.closed
    assert client.address == address
    request = listener.wait(timeout=TIMEOUT)
    assert (request.address, request.data) == (address, b"from a listener")
    server = request.accept(data=b"welcome")
    event = queue.wait(TIMEOUT)
    assert (event.kind, event.data) == (ofipy.EventKind.CONNECTED, b"welcome")
    room = bytearray(8)
    receive = server.recv_into(room)
    client.send(b"greeting").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 8
    assert room == b"greeting"
    assert server.peer_address == client.address == address


def test_a_listener_that_listens_refuses_who_waits_and_connects(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint, open_domain: OpenDomain
) -> None:
    other = open_domain().passive_endpoint()
    other.listen()
    waiting = client.connect(other.address)
    other.wait(timeout=TIMEOUT)
    active = other.connect(listener.address)
    with pytest.raises(ofipy.ConnectionRefused):
        waiting.wait(timeout=TIMEOUT)
    server = listener.wait(timeout=TIMEOUT).accept()
    receive = active.recv_into(bytearray(8))
    server.send(b"greeting").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 8


def test_a_listener_stays_when_it_cannot_connect(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint
) -> None:
    longest = listener.domain.info.max_private_data
    with pytest.raises(ofipy.InvalidArgument):
        listener.connect("nonsense")
    with pytest.raises(ofipy.MessageTooLong):
        listener.connect(listener.address, data=bytes(longest + 1))
    with pytest.raises(ofipy.InvalidArgument):
        listener.connect(listener.address, tx_size=0)
    with pytest.raises(TypeError):
        listener.connect(listener.address, service=1)  # type: ignore[call-arg]
    connect(listener, client)


def test_an_endpoint_that_was_a_listener_closes_what_that_would_have(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint
) -> None:
    provider = listener.domain.provider
    node = None if provider == "verbs" else "127.0.0.1"
    other = ofipy.listen(provider=provider, node=node, caps="msg")
    accepted = connect(other, client)
    active = other.connect(listener.address)
    other.close()
    accepted.send(b"still here").wait(timeout=TIMEOUT)
    assert client.recv_into(bytearray(10)).wait(timeout=TIMEOUT).length == 10
    active.close()
    assert accepted.closed
    assert active.domain.closed


def test_an_endpoint_elsewhere_than_its_listener_is_refused(
    listener: ofipy.PassiveEndpoint, open_domain: OpenDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_domain().passive_endpoint()
    monkeypatch.setattr(ofipy.Endpoint, "address", property(lambda endpoint: listener.address))
    with pytest.raises(ofipy.NotSupported, match="; the listener was at "):
        other.connect(listener.address)
    assert other.closed
