# SPDX-License-Identifier: BSD-3-Clause
"""What connected endpoints over a device do that no other provider's do: see docs/explanation/verbs.md."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
from connected_pair import TIMEOUT, connected, open_domain, pattern

SLOT = 8192


@pytest.fixture
def pair() -> Iterator[tuple[ofipy.Endpoint, ofipy.Endpoint]]:
    yield from connected()


@pytest.mark.parametrize("registered", [False, True])
def test_sizes_in_order(pair: tuple[ofipy.Endpoint, ofipy.Endpoint], registered: bool) -> None:
    client, server = pair
    sizes = [0, 1, 255, 256, 257, 4096, SLOT - 1, SLOT, SLOT + 1, 70_000, 1 << 20]
    out, rooms = [pattern(size, size) for size in sizes], [np.zeros(size, np.uint8) for size in sizes]
    regions = []
    if registered:
        regions += [client.register(each, access="send") for each in out if len(each)]
        regions += [server.register(each, access="recv") for each in rooms if len(each)]
    receives = [server.recv_into(room) for room in rooms]
    ofipy.wait_all([client.send(each, complete="delivery") for each in out], timeout=TIMEOUT)
    for receive, size, room in zip(receives, sizes, rooms, strict=True):
        assert receive.wait(timeout=TIMEOUT).length == size
        assert np.array_equal(room, pattern(size, size))
    for region in regions:
        region.close()


def test_more_receives_than_the_device_has_room_for(pair: tuple[ofipy.Endpoint, ofipy.Endpoint]) -> None:
    client, server = pair
    rooms = [bytearray(4) for _ in range(600)]
    receives = [server.recv_into(room) for room in rooms]
    for number in range(len(rooms)):
        client.send(number.to_bytes(4, "little"))
    ofipy.wait_all(receives, timeout=TIMEOUT)
    assert [int.from_bytes(room, "little") for room in rooms] == list(range(len(rooms)))


def test_scattered(pair: tuple[ofipy.Endpoint, ofipy.Endpoint]) -> None:
    client, server = pair
    for size in 10, 5000, 40_000:
        out = [pattern(size, seed) for seed in range(4)]
        into = [np.zeros(2 * size, np.uint8), np.zeros(2 * size, np.uint8)]
        receive = server.recv_into(into)
        client.send(out).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == 4 * size
        assert np.array_equal(np.concatenate(into), np.concatenate(out))


@pytest.mark.parametrize("room", [0, 10, SLOT, SLOT + 100, 100_000])
def test_a_message_that_is_a_little_too_long(pair: tuple[ofipy.Endpoint, ofipy.Endpoint], room: int) -> None:
    client, server = pair
    length = room + 1000 if room != SLOT else SLOT
    into = bytearray(min(room, SLOT - 1) if room == SLOT else room)
    receive = server.recv_into(into)
    client.send(pattern(length, 3)).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.Truncated, match=f"message of {length} bytes"):
        receive.wait(timeout=TIMEOUT)
    assert bytes(into) == pattern(length, 3).tobytes()[: len(into)]
    # The connection is as good as before.
    receive = server.recv_into(bytearray(4))
    client.send(b"next").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 4


def test_a_message_that_is_much_too_long(pair: tuple[ofipy.Endpoint, ofipy.Endpoint]) -> None:
    client, server = pair
    receive = server.recv_into(bytearray(10))
    send = client.send(pattern(100_000, 3), complete="transmit")
    with pytest.raises(ofipy.FabricError, match="longer than the receive"):
        receive.wait(timeout=TIMEOUT)
    with pytest.raises(
        ofipy.FabricError, match=r"remote (invalid request|operation error).*longer than the receive"
    ):
        send.wait(timeout=TIMEOUT)


def test_a_refused_access_is_named(pair: tuple[ofipy.Endpoint, ofipy.Endpoint]) -> None:
    client, server = pair
    region = server.register(bytearray(100), access="remote_read")
    good = region.remote
    lie = ofipy.RemoteRegion(good.key, good.offset + 50, 100, good.access)
    waiting = server.recv_into(bytearray(10))
    with pytest.raises(ofipy.RemoteAccessError, match="remote access error") as caught:
        client.read(bytearray(100), client.peer, lie).wait(timeout=TIMEOUT)
    assert caught.value.peer == str(client.peer_address)
    with pytest.raises(ofipy.FabricError):
        waiting.wait(timeout=TIMEOUT)


def test_messages_that_met_no_receive_are_told_at_close(pair: tuple[ofipy.Endpoint, ofipy.Endpoint]) -> None:
    """They are done for their sender, and still at its device, which tries again."""
    client, server = pair
    address = str(client.peer_address)
    receive = server.recv()
    # The device has told of its end, and so it is not counted.
    client.send(b"received", complete="delivery").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 8
    for size in 8, 8, 4000:
        client.send(bytes(size)).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.NotSent) as caught:
        client.close(linger=1)
    assert caught.value.count == 3
    assert caught.value.peers == (address,)


def test_data_with_messages_and_writes(pair: tuple[ofipy.Endpoint, ofipy.Endpoint]) -> None:
    client, server = pair
    receive = server.recv_into(bytearray(10))
    client.send(b"with data", remote_data=2**32 - 1).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).remote_data == 2**32 - 1
    memory = bytearray(100)
    region = server.register(memory, access="remote_write")
    rooms = [bytearray(3), bytearray(3)]
    receives = [server.recv_into(room) for room in rooms]
    client.write(b"written", client.peer, region.remote[:7], remote_data=77).wait(timeout=TIMEOUT)
    row = server.cq.wait(timeout=TIMEOUT)[0]
    assert (row["data"], row["length"]) == (77, 7)
    assert memory[:7] == b"written"
    # It took a receive and gave it back, behind the other.
    client.send(b"one").wait(timeout=TIMEOUT)
    client.send(b"two").wait(timeout=TIMEOUT)
    ofipy.wait_all(receives, timeout=TIMEOUT)
    assert rooms == [b"two", b"one"]
    with pytest.raises(ofipy.FabricError, match="too large"):
        client.send(b"x", remote_data=2**32).wait(timeout=TIMEOUT)


def test_what_the_device_has_is_not_cancelled(pair: tuple[ofipy.Endpoint, ofipy.Endpoint]) -> None:
    client, server = pair
    room = bytearray(4)
    receive = server.recv_into(room)
    assert not receive.cancel()
    client.send(b"here").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 4
    assert room == b"here"
    early = open_domain()
    endpoint = early.endpoint().enable()
    receives = [endpoint.recv_into(bytearray(4)) for _ in range(257)]
    assert receives[-1].cancel()
    early.fabric.close()


def test_what_is_told_of_the_device() -> None:
    listing = [sys.executable, "-P", "-m", "ofipy", "info", "-p", "verbs"]
    printed = subprocess.run([*listing, "--json"], capture_output=True, text=True, check=True).stdout
    info = json.loads(printed)["providers"][0]["infos"][0]
    device = info["device"]
    assert info["domain"].startswith(device["device"])
    assert {"firmware", "PCI address", "NUMA node", "link layer", "rate and width", "MTU"} <= set(device)
    assert "active" in device["port"]
    assert any(name.startswith("GID ") for name in device)
    assert any(name.startswith("P_Key ") for name in device)
    # Asked, and not used yet.
    assert {"atomics", "on-demand paging", "dma-buf"} <= set(device)
    printed = subprocess.run([*listing, "--verbose"], capture_output=True, text=True, check=True).stdout
    assert all(name in printed for name in device)
