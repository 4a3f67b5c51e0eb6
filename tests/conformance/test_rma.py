# SPDX-License-Identifier: BSD-3-Clause
"""Reading and writing the memory of the other side."""

import re
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from machine import SLOWNESS
from remote import BOTH, TIMEOUT, forge, hear, refused, tell
from sides import Side, Sides

import ofipy
from ofipy import Completed, RemoteRegion

pytestmark = [pytest.mark.needs("rma"), pytest.mark.connected, pytest.mark.untagged]

OpenEndpoint = Callable[..., ofipy.Endpoint]

NAME_OF_A_SENDER = 0x54800097F000001
"""In remote CQ data over ``ofi:tcp``: 127.0.0.1, port 9."""


def edge_sizes(info: ofipy.Info) -> list[int]:
    """Sizes at which a transport may change its way: inject, bounce buffers, pages, attach."""
    inject = info.inject_size if info.inject_size < 1 << 20 else 64
    edges = {0, 1, 7, 8, 95, 96, 97, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1}
    for edge in (inject, 8192, 16384, 65536):
        edges |= {edge - 1, edge, edge + 1}
    return sorted(edges)


def pattern(size: int, seed: int = 1) -> np.ndarray:
    return ((np.arange(size, dtype=np.uint64) * 37 + seed) % 251).astype(np.uint8)


def rows(cq: ofipy.CompletionQueue, count: int) -> np.ndarray:
    found: list[np.ndarray] = []
    while sum(map(len, found)) < count:
        found.append(cq.wait(timeout=TIMEOUT).copy())
    return np.concatenate(found)


# ------------------------------------------------------------------------------------------------------------ contents


def own_memory(side: Side, kind: str, size: int) -> np.ndarray:
    return (
        side.ep.empty(size, access=ofipy.Access.LOCAL | BOTH)
        if kind == "domain"
        else np.zeros(size, np.uint8)
    )


def own_region(side: Side, memory: np.ndarray) -> ofipy.Region:
    try:
        return side.ep.domain.region(memory)
    except ofipy.InvalidArgument:
        return side.ep.register(memory, access=BOTH)


def use_every_size(side: Side, kind: str) -> None:
    for size in edge_sizes(side.ep.info):
        remote = hear(side)
        assert len(remote) == size + 2
        source, back = pattern(size), np.zeros(size, np.uint8)
        written = side.ep.write(source, side.peer, remote[1 : size + 1], complete="delivery")
        assert written.wait(timeout=TIMEOUT) is written
        read = side.ep.read(back, side.peer, remote[1 : size + 1])
        assert read.wait(timeout=TIMEOUT) is read
        assert np.array_equal(source, back)
        side.sync()
        side.sync()
        whole = bytearray(size + 2)
        side.ep.read(whole, side.peer, remote).wait(timeout=TIMEOUT)
        assert np.array_equal(np.frombuffer(whole, np.uint8), pattern(size + 2, 5))
        side.sync()


def serve_every_size(side: Side, kind: str) -> None:
    for size in edge_sizes(side.ep.info):
        memory = own_memory(side, kind, size + 2)
        memory[[0, -1]] = 99
        with own_region(side, memory) as region:
            tell(side, region)
            side.sync()
            assert np.array_equal(memory[1:-1], pattern(size))
            assert memory[0] == memory[-1] == 99
            memory[:] = pattern(size + 2, 5)
            # What is written here before a message is what is read after it.
            side.sync()
            side.sync()


@pytest.mark.parametrize("kind", ["registered", "domain"])
def test_sizes(sides: Sides, kind: str) -> None:
    sides.run(use_every_size, serve_every_size, kind, progress="auto", timeout=120)


def scatter(side: Side) -> None:
    ep, remote = side.ep, hear(side)
    limit = ep.info.remote_segment_limit
    for size in (24, 600, 30_000):
        source = pattern(size * 4)
        for count in {1, 2, limit}:
            piece = len(source) // count
            # Pieces of the peer's memory in reverse order.
            pieces = [remote[n * piece : (n + 1) * piece] for n in reversed(range(count))]
            cut = np.split(source[: piece * count], [5, 17])
            ep.write(list(cut), side.peer, pieces, complete="delivery").wait(timeout=TIMEOUT)
            plain = bytearray(piece * count)
            ep.read(plain, side.peer, remote[: piece * count]).wait(timeout=TIMEOUT)
            expected = np.concatenate(np.split(source[: piece * count], count)[::-1])
            assert np.array_equal(np.frombuffer(plain, np.uint8), expected)
            first, second = np.zeros(11, np.uint8), ep.register(bytearray(piece * count - 11))
            ep.read([first, second], side.peer, pieces).wait(timeout=TIMEOUT)
            assert np.array_equal(np.concatenate([first, second.array]), source[: piece * count])
            second.close()
    columns = np.arange(64, dtype=np.uint16).reshape(8, 8)
    ep.write(columns[:, 2:4], side.peer, remote[:32], complete="delivery").wait(timeout=TIMEOUT)
    back = np.zeros((8, 4), np.uint16)
    ep.read(back[:, 1:3], side.peer, remote[:32]).wait(timeout=TIMEOUT)
    assert np.array_equal(back[:, 1:3], columns[:, 2:4])
    assert not back[:, [0, 3]].any()
    side.sync()


def lend(side: Side) -> None:
    tell(side, side.ep.register(bytearray(120_000), access=BOTH))
    side.sync()


def test_scatter_on_both_sides(sides: Sides) -> None:
    sides.run(scatter, lend, progress="auto")


def many_writes(side: Side, count: int) -> None:
    remote = hear(side)
    numbers = np.arange(count, dtype=np.uint64)
    running = [
        side.ep.write(numbers[n : n + 1], side.peer, remote[8 * n : 8 * n + 8], complete="delivery")
        for n in range(count)
    ]
    ofipy.wait_all(running, timeout=TIMEOUT)
    side.sync()


def see_many_writes(side: Side, count: int) -> None:
    memory = np.zeros(count, np.uint64)
    tell(side, side.ep.register(memory, access="remote_write"))
    side.sync()
    assert np.array_equal(memory, np.arange(count, dtype=np.uint64))


def test_many_writes_in_flight(sides: Sides) -> None:
    sides.run(many_writes, see_many_writes, 20_000 // SLOWNESS, progress="auto")


def inject(side: Side) -> None:
    remote = hear(side)
    size = min(side.ep.info.inject_size, 4096)
    for number in range(50):
        buffer = bytearray([number]) * size
        side.ep.write(buffer, side.peer, remote[:size], flags="inject")
        buffer[:] = bytes(size)
    back = bytearray(size)
    side.ep.read(back, side.peer, remote[:size], flags="fence").wait(timeout=TIMEOUT)
    assert back == bytes([49]) * size
    side.sync()


@pytest.mark.needs("fence")
def test_inject_write(sides: Sides) -> None:
    sides.run(inject, lend, progress="auto")


# ------------------------------------------------------------------------------------------------------------- orders


def write_then_tell(side: Side, rounds: int) -> None:
    remote = hear(side)
    for number in range(rounds):
        size = (8, 5000, 100_000)[number % 3]
        source = np.full(size, number % 251, np.uint8)
        writes = [side.ep.write(source, side.peer, remote[:size]) for _ in range(3)]
        writes.append(side.send(b"there", tag=2))
        ofipy.wait_all(writes, timeout=TIMEOUT)
        side.sync()


def look_when_told(side: Side, rounds: int) -> None:
    memory = np.full(100_000, 255, np.uint8)
    tell(side, side.ep.register(memory, access=BOTH))
    for number in range(rounds):
        side.receive(bytearray(5), tag=2).wait(timeout=TIMEOUT)
        assert (memory[: (8, 5000, 100_000)[number % 3]] == number % 251).all()
        side.sync()


@pytest.mark.needs("order_saw")
def test_message_does_not_overtake_writes(sides: Sides) -> None:
    sides.run(write_then_tell, look_when_told, 60, progress="auto")


def write_and_read_at_once(side: Side) -> None:
    ep, remote, running, rounds = side.ep, hear(side), [], 500
    sources, backs = np.zeros((2, rounds, 3000), np.uint8)
    for number in range(rounds):
        sources[number] = number % 251
        size = (8, 600, 3000)[number % 3]
        running.append(ep.write(sources[number, :size], side.peer, remote[:size]))
        running.append(ep.read(backs[number, :size], side.peer, remote[:size]))
    ofipy.wait_all(running, timeout=TIMEOUT)
    for number in range(rounds):
        size = (8, 600, 3000)[number % 3]
        assert (backs[number, :size] == number % 251).all()
    side.sync()


@pytest.mark.needs("order_raw", "order_war", "order_waw")
def test_reads_and_writes_keep_their_order(sides: Sides) -> None:
    sides.run(write_and_read_at_once, lend, progress="auto")


# -------------------------------------------------------------------------------------------------- prepared, awaited


def prepared(side: Side) -> None:
    ep, remote = side.ep, hear(side)
    out, back = np.zeros(9, np.uint64), np.zeros(9, np.uint64)
    write = ep.prepare_write([out[:4], out[4:]], side.peer, [remote[0:8], remote[8:72]], complete="delivery")
    read = ep.prepare_read(back, side.peer, remote[0:72])
    for number in range(100):
        out[:] = number
        write.start().wait(timeout=TIMEOUT)
        read.start().wait(timeout=TIMEOUT)
        assert (back == number).all()
    side.sync()


def test_prepared(sides: Sides) -> None:
    sides.run(prepared, lend, progress="auto")


def test_awaited(open_endpoint: OpenEndpoint) -> None:
    import asyncio

    ep = open_endpoint()
    me, region = ep.insert(ep.address), ep.register(bytearray(4096), access=BOTH)

    async def main() -> bytes:
        await ep.write(b"seen", me, region.remote[10:14], complete="delivery")
        into = bytearray(4)
        await asyncio.gather(*(ep.read(into, me, region.remote[10:14]) for _ in range(20)))
        return bytes(into)

    assert asyncio.run(main()) == b"seen"


# ------------------------------------------------------------------------------------------------------ raw tier, rows


def test_raw(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    local = ep.register(bytearray(b"abcdefgh" + bytes(8)))
    target = ep.register(bytearray(64), access=BOTH)
    remote = target.remote
    ep.post_write(local, me, remote[16:20], length=4, context=5, complete="delivery")
    row = rows(ep.cq, 1)[0]
    assert (row["context"], row["error"], row["length"]) == (5, 0, 4)
    assert int(row["flags"]) == Completed.WRITE | Completed.RMA
    ep.post_read(local, me, [remote[18:20], remote[16:18]], offset=8, length=4, context=6)
    row = rows(ep.cq, 1)[0]
    assert (row["context"], row["error"]) == (6, 0)
    assert int(row["flags"]) == Completed.READ | Completed.RMA
    assert bytes(local.array) == b"abcdefghcdab" + bytes(4)
    ops = ep.domain.operations(2)
    ops["op"], ops["region"], ops["peer"], ops["length"] = ofipy.Op.WRITE, local.id, me, 2
    ops["remote_key"], ops["remote_offset"] = remote.key, remote.offset + np.array([0, 2], np.uint64)
    ops["flags"], ops["context"] = int(ofipy.Flag.DELIVERY_COMPLETE), (1, 2)
    assert ep.post(ops) == 2
    assert sorted(rows(ep.cq, 2)["context"]) == [1, 2]
    assert bytes(target.array[:4]) == b"abab"
    ep.post_write(local, me, remote[0:2], length=2, flags="inject", context=9)
    ep.read(bytearray(2), me, remote[0:2]).wait(timeout=TIMEOUT)
    assert len(ep.cq.read()) == 0
    with pytest.raises(ofipy.InvalidArgument):
        ep.post_write(local, me, remote, length=8)
    with pytest.raises(ofipy.InvalidArgument):
        ep.post_read(local, me, remote[0:20])


def write_with_data(side: Side) -> None:
    remote = hear(side)
    for number, size in enumerate((0, 1, 100, 100_000)):
        source = pattern(size, number)
        side.ep.write(source, side.peer, remote[:size], remote_data=2**64 - 1 - number).wait(timeout=TIMEOUT)
        side.sync()
    side.ep.read(bytearray(8), side.peer, remote[:8]).wait(timeout=TIMEOUT)
    side.ep.write(bytes(8), side.peer, remote[:8], complete="delivery").wait(timeout=TIMEOUT)
    side.sync()


def find_data(side: Side, events: bool) -> None:
    memory = np.zeros(100_000, np.uint8)
    tell(side, side.ep.register(memory, access=BOTH))
    for number, size in enumerate((0, 1, 100, 100_000)):
        row = rows(side.ep.cq, 1)[0]
        flags = Completed(int(row["flags"]))
        assert flags == Completed.REMOTE_WRITE | Completed.RMA | Completed.REMOTE_CQ_DATA
        assert (row["data"], row["length"], row["source"]) == (2**64 - 1 - number, size, side.peer)
        # The entry comes when the bytes are there.
        assert np.array_equal(memory[:size], pattern(size, number))
        side.sync()
    if events:
        found = rows(side.ep.cq, 2)
        assert [Completed(int(each)) for each in found["flags"]] == [
            Completed.REMOTE_READ | Completed.RMA,
            Completed.REMOTE_WRITE | Completed.RMA,
        ]
        assert list(found["length"]) == [8, 8]
    side.sync()
    assert len(side.ep.cq.read()) == 0


def find_data_and_events(side: Side) -> None:
    find_data(side, True)


def find_data_only(side: Side) -> None:
    find_data(side, False)


@pytest.mark.needs("write_data")
def test_remote_cq_data(sides: Sides) -> None:
    sides.run(write_with_data, find_data_only, progress="auto")


def test_data_of_a_write_name_nobody(open_endpoint: OpenEndpoint) -> None:
    """A transport whose senders name themselves in remote CQ data does that in messages only."""
    server, client = open_endpoint(), open_endpoint()
    remote = server.register(bytearray(8), access=BOTH).remote
    client.write(b"12345678", client.insert(server.address), remote, remote_data=NAME_OF_A_SENDER).wait(
        timeout=TIMEOUT
    )
    assert list(rows(server.cq, 1)["data"]) == [NAME_OF_A_SENDER]
    assert not any("127.0.0.1:9" in str(peer.address) for peer in server.av)


@pytest.mark.needs("rma_event")
def test_remote_events(sides: Sides) -> None:
    sides.run(write_with_data, find_data_and_events, progress="auto", remote_events=True)


# ------------------------------------------------------------------------------------------------------------- refusals


def lie(side: Side, size: int) -> None:
    ep, peer = side.ep, side.peer
    readable, writable = hear(side), hear(side)
    good, buffer = forge(writable, access=BOTH), bytearray(b"x") * size
    end, peer_text = good.offset + good.length, str(peer.address)
    lies: Iterable[RemoteRegion] = (
        forge(good, key=good.key ^ 1, length=size),
        forge(good, key=0, length=size),
        forge(good, offset=end - size + 1, length=size),
        forge(good, offset=end, length=size),
        forge(good, offset=good.offset - 1 if good.offset else 2**64 - size, length=size),
        forge(good, offset=2**64 - size, length=size),
        forge(readable, access=BOTH, length=size),
    )
    for wrong in lies:
        assert refused(ep.write(buffer, peer, wrong, complete="delivery")).peer == peer_text
        pieces = [good[0:4], wrong] if ep.info.remote_segment_limit > 1 else [wrong]
        data = buffer if len(pieces) == 1 else bytearray(b"x") * (size + 4)
        refused(ep.write(data, peer, pieces, complete="delivery"))
        # The way to the peer is as good as before.
        ep.write(b"ok", peer, writable[8:10], complete="delivery").wait(timeout=TIMEOUT)
    into = bytearray(size)
    refused(ep.read(into, peer, forge(good, length=size)))
    refused(ep.read(into, peer, forge(readable, key=readable.key ^ 1, length=size)))
    refused(ep.read(into, peer, forge(readable, offset=readable.offset + readable.length, length=size)))
    assert not any(into)
    ep.read(into, peer, readable[:size]).wait(timeout=TIMEOUT)
    assert into == b"r" * size
    side.sync()


def be_lied_to(side: Side, size: int) -> None:
    memory, private = np.zeros(100_000, np.uint8), np.full(100_000, ord("r"), np.uint8)
    ep = side.ep
    regions = [ep.register(private, access="remote_read"), ep.register(memory, access="remote_write")]
    for region in regions:
        tell(side, region)
    side.sync()
    assert bytes(memory[8:10]) == b"ok"
    memory[8:10] = 0
    assert not memory.any()
    assert (private == ord("r")).all()
    assert len(ep.cq.read()) == 0


@pytest.mark.needs("refusals")
@pytest.mark.parametrize("size", [8, 60_000])
def test_a_peer_that_lies(sides: Sides, size: int) -> None:
    sides.run(lie, be_lied_to, size, progress="auto")


def test_errors_of_raw_operations(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """Failed ones come out as completions, injected ones too."""
    local, target = ep.register(bytearray(8)), ep.register(bytearray(8), access=BOTH)
    wrong = forge(target.remote, key=target.key ^ 1)
    for context, flags in enumerate((None, "inject", "delivery_complete")):
        ep.post_write(local, me, wrong, context=context, flags=flags)
        row = rows(ep.cq, 1)[0]
        assert row["context"] == context
        error = ep.cq.exception(row)
        assert isinstance(error, ofipy.RemoteAccessError)
        assert error.operation == "write"
        # What the provider's code means stands beside it.
        if not ep.provider.startswith("ofi"):
            assert re.search("no region (of the peer has|with) this key", str(error))
    assert not target.array.any()


def test_wrong_arguments(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(64), access=BOTH)
    remote = region.remote
    with pytest.raises(ofipy.InvalidArgument, match="8 bytes here, 9 bytes at the peer"):
        ep.write(bytes(8), me, remote[:9])
    with pytest.raises(ofipy.InvalidArgument, match="64 bytes at the peer"):
        ep.read(bytearray(8), me, remote)
    with pytest.raises(ofipy.BufferTypeError, match="read-only"):
        ep.read(bytes(8), me, remote[:8])
    with pytest.raises(ofipy.InvalidArgument, match="RemoteRegion is meant"):
        ep.write(bytes(8), me, bytes(remote))
    with pytest.raises(ofipy.InvalidArgument, match="empty"):
        ep.write(b"", me, [])
    with pytest.raises(ofipy.InvalidArgument, match="limit"):
        ep.write(b"x" * 99, me, [remote[:1]] * 99)
    readable = RemoteRegion(remote.key, remote.offset, 8, ofipy.Access.REMOTE_READ)
    with pytest.raises(
        ofipy.RemoteAccessError, match="needs REMOTE_WRITE, the remote region grants REMOTE_READ"
    ):
        ep.write(bytes(8), me, readable)
    writable = RemoteRegion(remote.key, remote.offset, 8, ofipy.Access.REMOTE_WRITE)
    with pytest.raises(PermissionError):
        ep.prepare_read(bytearray(8), me, writable)
    with pytest.raises(ofipy.UnknownPeer):
        ep.write(bytes(8), 4711, remote[:8])
    with pytest.raises(ofipy.InvalidArgument):
        ep.write(bytes(8), me, remote[:8], complete="match")
    with pytest.raises(ofipy.InvalidArgument):
        ep.read(bytearray(8), me, remote[:8], flags="inject")
    only_send = ep.register(bytearray(8), access="send")
    with pytest.raises(ofipy.AccessDenied):
        ep.write(only_send, me, remote[:8])
    assert not region.array.any()
    region.close()
    with pytest.raises(ofipy.Closed):
        ep.write(region, me, remote)


def test_default_level_of_messages(open_endpoint: OpenEndpoint) -> None:
    """complete="match" as the endpoint's default is for its messages, RMA has no such level."""
    ep = open_endpoint(complete="match")
    me, region = ep.insert(ep.address), ep.register(bytearray(8), access=BOTH)
    ep.write(b"as usual", me, region.remote).wait(timeout=TIMEOUT)
    into = bytearray(8)
    ep.prepare_read(into, me, region.remote).start().wait(timeout=TIMEOUT)
    assert into == b"as usual"


def test_statistics(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(8), access=BOTH)
    for _ in range(3):
        ep.write(bytes(8), me, region.remote).wait(timeout=TIMEOUT)
    ep.read(bytearray(8), me, region.remote).wait(timeout=TIMEOUT)
    refused(ep.write(bytes(8), me, forge(region.remote, key=region.key ^ 1)))
    stats = ep.stats()
    assert (stats.writes, stats.reads, stats.errors, stats.sends) == (3, 1, 1, 0)
