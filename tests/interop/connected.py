# SPDX-License-Identifier: BSD-3-Clause
"""What connected endpoints of two providers with one wire say to each other: ours, and libfabric's by the bridge."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import ofipy

TIMEOUT = 30
SIZES = [0, 1, 200, 5000, 70_000, 1 << 20]

Ends = tuple[ofipy.Endpoint, ofipy.Endpoint]


def raw_address(listener: ofipy.PassiveEndpoint) -> bytes:
    """The socket address, which both providers write alike."""
    return listener.address.entries[0][1]


def pattern(size: int, seed: int) -> np.ndarray:
    return ((np.arange(size, dtype=np.uint64) * 37 + seed) % 251).astype(np.uint8)


def info_of(provider: str, domain: str) -> ofipy.Info:
    """Of connected endpoints over a device, with addresses of IPv4."""
    reports = ofipy.getinfo(provider=provider, ep_type="msg", explain=True)
    for report in reports:
        for info in report.infos:
            if info.domain.startswith(domain) and info.address_format is ofipy.AddressFormat.IPV4:
                return info
    pytest.skip(f"{provider} is not available: {reports[0].reason if reports else 'no libfabric'}")


@contextmanager
def listening(there: ofipy.Info, here: ofipy.Info) -> Iterator[tuple[ofipy.PassiveEndpoint, ofipy.Endpoint]]:
    """A listener of the one, and an endpoint of the other."""
    with ofipy.Fabric(there) as one, ofipy.Fabric(here) as other:
        listener = one.domain(progress="auto").passive_endpoint()
        listener.listen()
        yield listener, other.domain(progress="auto").endpoint().enable()


@contextmanager
def connected(there: ofipy.Info, here: ofipy.Info) -> Iterator[Ends]:
    """The end that accepted, and the one that asked."""
    with listening(there, here) as (listener, client):
        connection = client.connect(raw_address(listener))
        server = listener.wait(timeout=TIMEOUT).accept()
        connection.wait(timeout=TIMEOUT)
        yield server, client


# ------------------------------------------------------------------------------------------------------- what is said


def say_private_data(there: ofipy.Info, here: ofipy.Info) -> None:
    with listening(there, here) as (listener, client):
        most = min(client.info.max_private_data, listener.domain.info.max_private_data)
        asked, answer = bytes(range(1, 256))[:most], b"\0welcome\0"
        connection = client.connect(raw_address(listener), data=asked)
        request = listener.wait(timeout=TIMEOUT)
        assert request.data == asked
        # Kept: the collector would warn of an endpoint that nobody has closed, if it came before the listener's end.
        with request.accept(data=answer):
            assert connection.wait(timeout=TIMEOUT) == answer


def be_refused(there: ofipy.Info, here: ofipy.Info) -> None:
    with listening(there, here) as (listener, client):
        connection = client.connect(raw_address(listener))
        listener.wait(timeout=TIMEOUT).reject(data=b"full")
        with pytest.raises(ofipy.ConnectionRefused) as caught:
            connection.wait(timeout=TIMEOUT)
        assert caught.value.data == b"full"
        address = raw_address(listener)
        listener.close()
        late = client.domain.endpoint().enable()
        with pytest.raises(ofipy.ConnectionRefused):
            late.connect(address).wait(timeout=TIMEOUT)


def exchange_messages(ends: Ends) -> None:
    for sender, receiver in (ends, ends[::-1]):
        rooms = [np.zeros(size, np.uint8) for size in SIZES]
        receives = [receiver.recv_into(room) for room in rooms]
        sends = [sender.send(pattern(size, size)) for size in SIZES]
        ofipy.wait_all(sends, timeout=TIMEOUT)
        for size, room, receive in zip(SIZES, rooms, receives, strict=True):
            assert receive.wait(timeout=TIMEOUT).length == size
            assert np.array_equal(room, pattern(size, size))
        many = [receiver.recv_into(bytearray(2)) for _ in range(200)]
        for number in range(200):
            sender.send(number.to_bytes(2, "little"), flags="inject")
        ofipy.wait_all(many, timeout=TIMEOUT)


def say_data(ends: Ends) -> None:
    """Remote CQ data with a message, and with a write, which over verbs takes a posted receive for a while."""
    for sender, receiver in (ends, ends[::-1]):
        receive = receiver.recv_into(bytearray(9))
        sender.send(b"with data", remote_data=2**32 - 2).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).remote_data == 2**32 - 2
        memory, room = bytearray(8), bytearray(5)
        region = receiver.register(memory, access="remote_write")
        receive = receiver.recv_into(room)
        sender.write(b"written!", sender.peer, region.remote, remote_data=77).wait(timeout=TIMEOUT)
        row = next(iter(receiver.cq.wait(timeout=TIMEOUT)))
        assert (int(row["data"]), int(row["flags"]) & int(ofipy.Completed.REMOTE_WRITE)) != (0, 0)
        assert memory == b"written!"
        sender.send(b"after").wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == 5
        assert room == b"after"
        region.close()


def reach_memory(ends: Ends) -> None:
    for actor, owner in (ends, ends[::-1]):
        memory = pattern(100_000, 1)
        region = owner.register(memory, access="remote_read|remote_write")
        remote = ofipy.RemoteRegion.from_bytes(bytes(region.remote))
        got = np.zeros(60_000, np.uint8)
        actor.read(got, actor.peer, remote[10_000:70_000]).wait(timeout=TIMEOUT)
        assert np.array_equal(got, pattern(100_000, 1)[10_000:70_000])
        out = pattern(50_000, 9)
        # Over a device an acknowledgement says as much, and libfabric has no other there.
        level = "transmit" if actor.info.provider.endswith("verbs") else "delivery"
        actor.write(out, actor.peer, remote[5:50_005], complete=level).wait(timeout=TIMEOUT)
        assert np.array_equal(memory[5:50_005], out)
        assert np.array_equal(memory[50_005:], pattern(100_000, 1)[50_005:])
        region.close()


def shut_down(ends: Ends) -> None:
    """What was posted still leaves, and the other side is told that it was the end."""
    server, client = ends
    room = np.zeros(300_000, np.uint8)
    first, last = server.recv_into(room), server.recv_into(bytearray(4))
    beyond = server.recv_into(bytearray(8))
    client.send(pattern(300_000, 5))
    client.send(b"last", flags="inject")
    left = client.shutdown()
    assert first.wait(timeout=TIMEOUT).length == 300_000
    assert np.array_equal(room, pattern(300_000, 5))
    assert last.wait(timeout=TIMEOUT).length == 4
    with pytest.raises(ofipy.PeerLost):
        beyond.wait(timeout=TIMEOUT)
    left.wait(timeout=TIMEOUT)
    for endpoint in ends:
        with pytest.raises(ofipy.NotConnected):
            endpoint.send(b"anybody?")
