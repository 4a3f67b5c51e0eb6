# SPDX-License-Identifier: BSD-3-Clause
"""Linger of connected endpoints: what was sent and not waited for leaves before its end of the connection closes."""

import threading

import numpy as np
import pytest
from connected import connect
from sides import Target

import ofipy

TIMEOUT = 30
# Seconds that no test reaches, as long as nothing is waited for in vain.
LONG = 600
# What no transport takes without a receive: more than sockets and rings hold. A device may carry less at once.
STUCK = 48 << 20

pytestmark = [pytest.mark.needs("connections"), pytest.mark.untagged]


def stuck_size(client: ofipy.Endpoint) -> int:
    """Bytes of the message that waits."""
    return min(STUCK, client.info.max_msg_size)


@pytest.fixture
def stuck(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint, target: Target) -> ofipy.Endpoint:
    """The other end of a connection on which a message waits that nobody receives."""
    if target.provider.startswith("ofi:"):
        pytest.skip("libfabric keeps messages that it has begun, and closing its tcp then frees them twice")
    server = connect(listener, client)
    client.send(np.full(stuck_size(client), 5, np.uint8))
    return server


@pytest.mark.parametrize("sizes", [[8], [4 << 20], [8, 1 << 20, 100, 70000] * 8])
def test_messages_arrive(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint, sizes: list[int]) -> None:
    server = connect(listener, client)
    rooms = [np.zeros(size, np.uint8) for size in sizes]
    receives = [server.recv_into(room) for room in rooms]
    for number, size in enumerate(sizes):
        client.send(np.full(size, number + 1, np.uint8))
    client.close(linger=LONG)
    for number, (receive, room) in enumerate(zip(receives, rooms, strict=True)):
        assert receive.wait(timeout=TIMEOUT).length == room.nbytes
        assert np.all(room == number + 1)


def test_messages_to_who_has_not_accepted_yet_arrive(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint
) -> None:
    rooms: list[np.ndarray] = []

    def accept() -> None:
        server = listener.wait(timeout=TIMEOUT).accept()
        room = np.zeros(1 << 20, np.uint8)
        server.recv_into(room).wait(timeout=TIMEOUT)
        rooms.append(room)

    client.connect(listener.address)
    client.send(np.full(1 << 20, 3, np.uint8))
    accepting = threading.Thread(target=accept)
    accepting.start()
    client.close(linger=LONG)
    accepting.join(TIMEOUT)
    assert np.all(rooms[0] == 3)


def test_what_is_received_late_is_waited_for(stuck: ofipy.Endpoint, client: ofipy.Endpoint) -> None:
    room = np.zeros(stuck_size(client), np.uint8)
    closing = threading.Thread(target=client.close, kwargs={"linger": LONG})
    closing.start()
    # Its posts are refused from the first look on.
    while closing.is_alive():
        try:
            client.recv_into(bytearray(1)).cancel()
        except (ofipy.Canceled, ofipy.Closed):
            break
    assert closing.is_alive()
    assert stuck.recv_into(room).wait(timeout=TIMEOUT).length == room.nbytes
    closing.join(TIMEOUT)
    assert not closing.is_alive()
    assert np.all(room == 5)


def test_what_nobody_receives_is_told(stuck: ofipy.Endpoint, client: ofipy.Endpoint) -> None:
    address = str(client.peer_address)
    with pytest.raises(ofipy.NotSent) as caught:
        client.close(linger=0.5)
    assert client.closed
    assert caught.value.count == 1
    assert caught.value.operations == ("send",)
    assert caught.value.peers == (address,)
    assert not stuck.closed


def test_a_peer_that_shuts_down_ends_it(stuck: ofipy.Endpoint, client: ofipy.Endpoint) -> None:
    going = threading.Timer(0.2, lambda: stuck.close(linger=0))
    going.start()
    with pytest.raises(ofipy.NotSent) as caught:
        client.close(linger=LONG)
    going.join()
    assert caught.value.count == 1


def test_receives_are_not_waited_for(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> None:
    connect(listener, client)
    client.recv_into(bytearray(8))
    client.close(linger=LONG)
