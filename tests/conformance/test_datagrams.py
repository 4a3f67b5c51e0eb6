# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints of type dgram: a message is one packet, which comes or not. Within one host all of them do."""

import time
from collections.abc import Callable

import numpy as np
import pytest

import ofipy
from ofipy._objects.group import Group

TIMEOUT = 30

OpenEndpoint = Callable[..., ofipy.Endpoint]

pytestmark = [pytest.mark.needs("datagrams"), pytest.mark.datagrams, pytest.mark.untagged]


def pattern(size: int, seed: int = 0) -> np.ndarray:
    return ((np.arange(size, dtype=np.uint64) * 37 + seed) % 251).astype(np.uint8)


def await_drops(endpoint: ofipy.Endpoint, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while endpoint.stats().messages_dropped < count:
        assert time.monotonic() < deadline, endpoint.stats()
        time.sleep(0.01)


def test_sizes_and_sources(open_endpoint: OpenEndpoint) -> None:
    here, there = open_endpoint(), open_endpoint()
    to_there, to_here = here.insert(there.address), there.insert(here.address)
    limit = here.info.max_msg_size
    with_data = here.info.cq_data_size > 0
    for size in 0, 1, 255, 256, 257, limit - 1, limit:
        room = np.zeros(limit, np.uint8)
        receive = there.recv_into(room, to_here)
        data = size if with_data else None
        here.send(pattern(size, 3), to_there, remote_data=data).wait(timeout=TIMEOUT)
        message = receive.wait(timeout=TIMEOUT)
        assert (message.length, message.source, message.remote_data) == (size, to_here, data)
        assert np.array_equal(room[:size], pattern(size, 3))


def test_one_that_is_too_long_is_refused(open_endpoint: OpenEndpoint) -> None:
    here, there = open_endpoint(), open_endpoint()
    peer = here.insert(there.address)
    limit = here.info.max_msg_size
    with pytest.raises(ofipy.MessageTooLong, match=str(limit)):
        here.send(bytes(limit + 1), peer).wait(timeout=TIMEOUT)
    # The endpoint is as good as before.
    receive = there.recv()
    here.send(b"short", peer).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).data == b"short"


def test_groups_are_refused(open_endpoint: OpenEndpoint) -> None:
    with pytest.raises(ofipy.NotSupported, match="datagrams may be lost") as caught:
        Group(open_endpoint())
    assert caught.value.remedy == 'open it with ep_type="rdm"'


def test_data_that_the_wire_has_no_room_for(open_endpoint: OpenEndpoint) -> None:
    here, there = open_endpoint(), open_endpoint()
    peer, room = here.insert(there.address), here.info.cq_data_size
    # Refused, rather than left out or cut off.
    with pytest.raises((ofipy.FabricError, OverflowError)):
        here.send(b"never", peer, remote_data=1 << 8 * room).wait(timeout=TIMEOUT)
    receive = there.recv()
    here.send(b"sent", peer).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).data == b"sent"


def test_a_sender_that_is_not_known(open_endpoint: OpenEndpoint) -> None:
    here, there = open_endpoint(), open_endpoint()
    receive = there.recv()
    here.send(b"who am I", here.insert(there.address)).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).source is None
    # Nobody enters the vector by sending: the senders of datagrams are easily forged.
    assert len(there.av) == 0


def test_what_finds_no_room_is_counted(open_endpoint: OpenEndpoint) -> None:
    here, there = open_endpoint(), open_endpoint(unexpected_size=1)
    peer, count = here.insert(there.address), 5
    for _ in range(count):
        here.send(bytes(1000), peer).wait(timeout=TIMEOUT)
    await_drops(there, count)
    receive = there.recv()
    here.send(b"kept", peer).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).data == b"kept"
    assert there.stats().messages_dropped == count


def test_levels(open_endpoint: OpenEndpoint) -> None:
    here, there = open_endpoint(), open_endpoint()
    peer = here.insert(there.address)
    receive = there.recv()
    # It has left: nobody will say that it has arrived.
    here.send(b"left", peer, complete="transmit").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).data == b"left"
    with pytest.raises(ofipy.NotSupported):
        here.send(b"arrived?", peer, complete="delivery").wait(timeout=TIMEOUT)


def test_truncation_and_cancelling(open_endpoint: OpenEndpoint) -> None:
    here, there = open_endpoint(), open_endpoint()
    peer = here.insert(there.address)
    cancelled, receive = there.recv(), there.recv_into(bytearray(3))
    assert cancelled.cancel()
    here.send(b"longer", peer).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.Truncated, match="6 bytes"):
        receive.wait(timeout=TIMEOUT)
