# SPDX-License-Identifier: BSD-3-Clause
"""The end of a connection: what was posted before it, who learns of it, and whoever is second."""

import numpy as np
import pytest
from connected import TIMEOUT, OpenDomain, connect

import ofipy

pytestmark = [pytest.mark.needs("connections"), pytest.mark.untagged]


@pytest.mark.needs("tagged")
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


@pytest.mark.needs("tagged")
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
        server.recv_into(bytearray(8)).wait(timeout=TIMEOUT)
    server.shutdown().wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.NotConnected, match="has ended already"):
        server.shutdown()


def test_both_sides_shut_down_at_once(open_domain: OpenDomain, listener: ofipy.PassiveEndpoint) -> None:
    for _ in range(20):
        client = open_domain().endpoint().enable()
        server = connect(listener, client)
        for left in (client.shutdown(), server.shutdown()):
            left.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("attempt", range(5))
def test_the_end_comes_behind_the_acceptance(
    attempt: int, open_domain: OpenDomain, listener: ofipy.PassiveEndpoint
) -> None:
    domain = open_domain()
    client = domain.endpoint().enable()
    asked = client.connect(listener.address)
    server = listener.wait(timeout=TIMEOUT).accept(data=b"welcome")
    ended = server.shutdown()
    assert asked.wait(timeout=TIMEOUT)[:7] == b"welcome"
    ended.wait(timeout=TIMEOUT)
    server.close()
    client.shutdown().wait(timeout=TIMEOUT)
    client.close()


@pytest.mark.parametrize("attempt", range(5))
def test_what_has_come_was_sent(
    attempt: int, open_domain: OpenDomain, listener: ofipy.PassiveEndpoint
) -> None:
    """Its receiver closes at once, which may come before the acknowledgement."""
    for _ in range(10):
        client = open_domain().endpoint().enable()
        server = connect(listener, client)
        received = server.recv_into(bytearray(8))
        sent = client.send(b"the last", complete="transmit")
        received.wait(timeout=TIMEOUT)
        server.close()
        sent.wait(timeout=TIMEOUT)
        client.close()


def test_an_end_that_does_not_come(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    server = connect(listener, client)
    unmatched = client.send(b"nobody receives it", complete="match")
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
