# SPDX-License-Identifier: BSD-3-Clause
"""Linger of endpoints of type dgram: a datagram has left once the device has it, whatever becomes of it then."""

from collections.abc import Callable

import numpy as np
import pytest

import ofipy

TIMEOUT = 30
# Seconds that no test reaches, as long as nothing is waited for in vain.
LONG = 600
COUNT = 50

OpenEndpoint = Callable[..., ofipy.Endpoint]

pytestmark = [pytest.mark.needs("datagrams"), pytest.mark.datagrams, pytest.mark.untagged]


def expect_all(receives: list[ofipy.Request], rooms: list[bytearray]) -> None:
    ofipy.wait_all(receives, timeout=TIMEOUT)
    assert sorted(int.from_bytes(room, "little") for room in rooms) == list(range(COUNT))


def test_datagrams_leave(open_endpoint: OpenEndpoint) -> None:
    """To a peer that nobody has looked for before, which takes time where there is a subnet manager to be asked."""
    here, there = open_endpoint(progress="manual"), open_endpoint()
    rooms = [bytearray(4) for _ in range(COUNT)]
    receives = [there.recv_into(room) for room in rooms]
    peer = here.insert(there.address)
    for number in range(COUNT):
        here.send(number.to_bytes(4, "little"), peer)
    here.close(linger=LONG)
    expect_all(receives, rooms)


@pytest.mark.needs("trigger")
def test_those_that_wait_for_room_leave(open_endpoint: OpenEndpoint) -> None:
    """Deferred ones whose counter has reached the threshold, more than the transmit queue takes at once."""
    here, there = open_endpoint(progress="manual", tx_size=1), open_endpoint()
    rooms = [bytearray(4) for _ in range(COUNT)]
    receives = [there.recv_into(room) for room in rooms]
    data = np.arange(COUNT, dtype="<u4")
    region, counter = here.register(data), here.domain.counter()
    operations = here.domain.operations(COUNT)
    operations["op"], operations["peer"] = ofipy.Op.SEND, int(here.insert(there.address))
    operations["region"], operations["length"] = region._id, data.itemsize
    operations["offset"] = region._offset + data.itemsize * np.arange(COUNT)
    assert here.post(operations, after=(counter, 1)) == COUNT
    counter.add(1)
    here.close(linger=LONG)
    expect_all(receives, rooms)


def test_receives_are_not_waited_for(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    ep.recv_into(bytearray(8))
    ep.close(linger=LONG)
