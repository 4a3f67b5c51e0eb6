# SPDX-License-Identifier: BSD-3-Clause
"""The loops in C move what they are timed for."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ofipy
from ofipy._base import binding, measure_binding
from ofipy.pingpong import machine
from ofipy.pingpong.machine import measure_handover
from ofipy.pingpong.pipeline import run_pipeline
from tests.timers import running

Sides = list[tuple[ofipy.Endpoint, ofipy.Peer]]


@pytest.fixture
def sides() -> Iterator[Sides]:
    """Two endpoints and how each knows the other."""
    with ofipy.open(provider="shm") as first, ofipy.open(provider="shm") as second:
        yield [(first, first.insert(second.address)), (second, second.insert(first.address))]


def both(run: Callable[[bool], float]) -> None:
    with ThreadPoolExecutor() as pool:
        seconds = list(pool.map(run, (True, False), timeout=60))
    assert min(seconds) > 0


def test_tags_of_a_ping_pong_advance_and_wrap(sides: Sides) -> None:
    """Each side plays against plain calls of the other, which know which tag comes next."""
    rounds, highest = 5, 2**64 - 1
    (endpoint, peer), (other, other_peer) = sides

    def answer() -> None:
        room = bytearray(8)
        for number in range(rounds):
            other.trecv_into(room, other_peer, tag=(highest - 1 + 3 * number) % 2**64).wait(timeout=20)
            other.tsend(room, other_peer, tag=7 + 3 * number).wait(timeout=20)

    with ThreadPoolExecutor() as pool:
        answering = pool.submit(answer)
        seconds = ofipy.measure.pingpong(
            endpoint, peer, first=True, send=bytes(8), receive=bytearray(8), iterations=rounds,
            tag=highest - 1, receive_tag=7, tag_step=3,
        )  # fmt: skip
        answering.result(timeout=60)
    assert seconds > 0
    assert endpoint.probe(tag=0, ignore=highest) is other.probe(tag=0, ignore=highest) is None


@pytest.mark.parametrize("size", [0, 8, 100_000])
def test_a_ping_pong_goes_both_ways(sides: Sides, size: int) -> None:
    out = [np.full(size, value, dtype=np.uint8) for value in (1, 2)]
    into = [np.zeros(size, dtype=np.uint8) for _ in sides]
    times = np.zeros(20, dtype=np.int64)

    def run(first: bool) -> float:
        endpoint, peer = sides[not first]
        return ofipy.measure.pingpong(
            endpoint, peer, first=first, send=out[not first], receive=into[not first], iterations=20,
            nanoseconds=times if first else None,
        )  # fmt: skip

    both(run)
    assert (into[0] == 2).all()
    assert (into[1] == 1).all()
    assert (times > 0).all()


@pytest.mark.parametrize("size", [0, 8, 100_000])
@pytest.mark.parametrize("messages", [1, 64, 150])
def test_a_window_goes_one_way(sides: Sides, size: int, messages: int) -> None:
    buffers = [np.full(size, 1, dtype=np.uint8), np.zeros(size, dtype=np.uint8)]

    times = np.zeros(2, dtype=np.int64)

    def run(first: bool) -> float:
        endpoint, peer = sides[not first]
        return ofipy.measure.stream(
            endpoint, peer, first=first, buffer=buffers[not first], messages=messages, windows=2, tag=3,
            nanoseconds=times if first else None,
        )  # fmt: skip

    for _ in range(2):
        both(run)
    assert (buffers[1] == 1).all()
    assert (times > 0).all()
    for endpoint, _ in sides:
        assert len(endpoint.cq.read()) == 0  # nothing was left behind


@pytest.fixture
def connections() -> Iterator[list[socket.socket]]:
    pair = socket.socketpair()
    for each in pair:
        each.setblocking(False)
    yield list(pair)
    for each in pair:
        each.close()


def test_a_ping_pong_over_a_socket(connections: list[socket.socket]) -> None:
    out = [np.full(300_000, value, dtype=np.uint8) for value in (1, 2)]
    into = [np.zeros(300_000, dtype=np.uint8) for _ in connections]
    times = np.zeros(20, dtype=np.int64)

    def run(first: bool) -> float:
        return ofipy.measure.socket_pingpong(
            connections[not first], first=first, send=out[not first], receive=into[not first],
            iterations=20, nanoseconds=times if first else None,
        )  # fmt: skip

    both(run)
    assert (into[0] == 2).all()
    assert (into[1] == 1).all()
    assert (times > 0).all()


@pytest.mark.parametrize("size", [1, 7, 300_000])
@pytest.mark.parametrize("messages", [1, 64, 150])
def test_a_window_over_a_socket(connections: list[socket.socket], size: int, messages: int) -> None:
    buffers = [np.arange(size).astype(np.uint8), np.zeros(size, dtype=np.uint8)]

    def run(first: bool) -> float:
        return ofipy.measure.socket_stream(
            connections[not first], first=first, buffer=buffers[not first], messages=messages
        )

    for _ in range(2):
        both(run)
    assert (buffers[1] == buffers[0]).all()  # the boundaries were kept
    for each in connections:
        with pytest.raises(BlockingIOError):
            each.recv(1)


@pytest.mark.parametrize("first", [True, False])
def test_a_broken_connection_ends_the_loop(connections: list[socket.socket], first: bool) -> None:
    connections[1].close()
    byte = np.zeros(1, dtype=np.uint8)
    with pytest.raises(ofipy.FabricError):
        ofipy.measure.socket_stream(connections[0], first=first, buffer=byte, messages=1)
    with pytest.raises(ofipy.FabricError):
        ofipy.measure.socket_pingpong(connections[0], first=first, send=byte, receive=byte, iterations=1)


def test_an_empty_message_over_a_socket_is_refused(connections: list[socket.socket]) -> None:
    empty, byte = np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.measure.socket_stream(connections[0], first=True, buffer=empty, messages=1)
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.measure.socket_pingpong(connections[0], first=True, send=byte, receive=empty, iterations=1)


def test_sizes_and_room_are_checked(sides: Sides) -> None:
    endpoint, peer = sides[0]
    eight, nine = np.zeros(8, dtype=np.uint8), np.zeros(9, dtype=np.uint8)
    with pytest.raises(ofipy.InvalidArgument, match="8 and 9 bytes"):
        ofipy.measure.pingpong(endpoint, peer, first=True, send=eight, receive=nine, iterations=1)
    with pytest.raises(ofipy.InvalidArgument, match="room for 1 times of 2"):
        ofipy.measure.pingpong(
            endpoint, peer, first=True, send=eight, receive=eight, iterations=2,
            nanoseconds=np.zeros(1, dtype=np.int64),
        )  # fmt: skip
    with pytest.raises(BufferError):
        ofipy.measure.stream(endpoint, peer, first=False, buffer=b"read only", messages=1)


# Where others have their turn on the cores too, a handover may take a time slice.
TURNS = 2000


def test_a_cache_line_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        monkeypatch.setattr(machine, "HANDOVERS", TURNS)
        began = time.monotonic()
        handover = measure_handover((cores[0], cores[1]))
        assert handover is not None
        # In microseconds: no processor takes less than some nanoseconds, and it was there and back within the call.
        assert 0.005 < handover <= (time.monotonic() - began) * 1e6 / TURNS / 2
        assert sorted(os.sched_getaffinity(0)) == cores
    assert measure_handover((cores[0], cores[0])) is None
    with pytest.raises(ofipy.InvalidArgument):
        measure_handover((cores[0], 100_000))


@pytest.mark.parametrize(
    ("size", "complete"), [(8, None), (4096, None), (8, "delivery"), (2, None), (4095, None)]
)
def test_writes_count_up_on_both_sides(sides: Sides, size: int, complete: str | None) -> None:
    lent = [endpoint.empty(size, np.uint8, access="local|remote_write") for endpoint, _ in sides]
    handles = [
        endpoint.domain.region(memory).remote for (endpoint, _), memory in zip(sides, lent, strict=True)
    ]
    out = [np.zeros(size, dtype=np.uint8) for _ in sides]
    regions = [endpoint.register(memory) for (endpoint, _), memory in zip(sides, out, strict=True)]
    times = np.zeros(20, dtype=np.int64)
    for memory in lent:
        memory.fill(0)

    def run(first: bool, sources: list[Any]) -> float:
        endpoint, peer = sides[not first]
        return ofipy.measure.write(
            endpoint, peer, handles[first], first=first, send=sources[not first], landing=lent[not first],
            iterations=20, complete=complete, nanoseconds=times if first else None,
        )  # fmt: skip

    for number, sources in ((20, out), (40, regions)):
        both(partial(run, sources=sources))
        width = np.uint8 if size % 8 else np.uint64
        assert [int(memory.view(width)[-1]) for memory in lent] == [number, number]
    assert (times > 0).all()


def test_a_refused_write_ends_the_loop(sides: Sides) -> None:
    (endpoint, peer), (other, _) = sides
    region = other.register(np.zeros(8, dtype=np.uint8), access="remote_write")
    handle = region.remote
    region.close()
    number, landing = np.zeros((2, 8), dtype=np.uint8)
    with pytest.raises(ofipy.FabricError):
        ofipy.measure.write(endpoint, peer, handle, first=True, send=number, landing=landing, iterations=1)


def test_fetch_adds_count_up(sides: Sides) -> None:
    (endpoint, peer), (other, _) = sides
    memory = other.empty(1, np.uint64, access="local|remote_read|remote_write")
    memory[0] = 7
    handle = other.domain.region(memory).remote
    times = np.zeros(20, dtype=np.int64)
    assert ofipy.measure.fetch_add(endpoint, peer, handle, iterations=20, nanoseconds=times) > 0
    assert memory[0] == 27
    assert (times > 0).all()
    with pytest.raises(ofipy.InvalidArgument, match="8 are meant"):
        ofipy.measure.fetch_add(endpoint, peer, handle[:4], iterations=1)
    region = other.register(np.zeros(1, np.uint64), access="remote_read|remote_write")
    handle = region.remote
    region.close()
    with pytest.raises(ofipy.FabricError):
        ofipy.measure.fetch_add(endpoint, peer, handle, iterations=1)


def test_prepared_requests_run_again_and_again(sides: Sides) -> None:
    (endpoint, peer), (other, mine) = sides
    source, target = np.arange(8, dtype=np.uint8), np.zeros(8, np.uint8)
    send = endpoint.prepare_tsend(source, peer, tag=1)
    receive = other.prepare_trecv(target, mine, tag=1)
    both(lambda first: ofipy.measure.prepared(send if first else receive, iterations=30))
    assert np.array_equal(source, target)
    assert endpoint.stats().sends == 30
    assert other.stats().receives == 30
    longer = endpoint.prepare_tsend(np.zeros(9, np.uint8), peer, tag=1)
    with pytest.raises(ofipy.Truncated):
        both(lambda first: ofipy.measure.prepared(longer if first else receive, iterations=1))


def test_writes_end_with_a_number(sides: Sides) -> None:
    endpoint, peer = sides[0]
    memory = endpoint.empty(24, np.uint8, access="local|remote_write")
    handle = endpoint.domain.region(memory).remote
    for size, sent in ((8, 16), (0, 0)):
        with pytest.raises(ofipy.InvalidArgument, match="at least 1"):
            ofipy.measure.write(
                endpoint,
                peer,
                handle[:size],
                first=True,
                send=memory[:sent],
                landing=memory[:size],
                iterations=1,
            )
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.measure.write(
            endpoint, peer, handle[:8], first=True, send=memory[:8], landing=memory[1:9], iterations=1
        )


@pytest.mark.parametrize(("size", "depth"), [(8, 1), (8, 3), (100_000, 3)])
def test_remote_memory_without_the_peer(sides: Sides, size: int, depth: int) -> None:
    (endpoint, peer), (other, _) = sides
    memory = np.zeros(size, np.uint8)
    remote = other.register(memory, access="remote_read|remote_write").remote
    here, times = np.full(size, 7, np.uint8), np.zeros(20, dtype=np.int64)
    run = partial(ofipy.measure.rma, endpoint, peer, remote, iterations=20, depth=depth, nanoseconds=times)
    seconds = run(reads=False, local=here)
    assert (memory == 7).all()
    assert 0 < times.sum() <= seconds * 1e9 + 1
    memory.fill(9)
    with endpoint.register(here) as region:
        run(reads=True, local=region)
    assert (here == 9).all()
    with pytest.raises(ofipy.InvalidArgument, match="bytes here"):
        run(reads=True, local=bytearray(size + 1))
    assert len(endpoint.cq.read()) == 0


def test_a_ping_pong_without_tags_between_regions(sides: Sides) -> None:
    out = [np.full(5000, value, dtype=np.uint8) for value in (1, 2)]
    into = [np.zeros(6000, dtype=np.uint8) for _ in sides]
    sources = [endpoint.register(out[index]) for index, (endpoint, _) in enumerate(sides)]
    targets = [endpoint.register(into[index])[1000:] for index, (endpoint, _) in enumerate(sides)]

    def run(first: bool) -> float:
        endpoint, peer = sides[not first]
        return ofipy.measure.pingpong(
            endpoint, peer, first=first, send=sources[not first], receive=targets[not first], iterations=20,
            tag=None, complete="transmit",
        )  # fmt: skip

    both(run)
    for memory, value in zip(into, (2, 1), strict=True):
        assert not memory[:1000].any()
        assert (memory[1000:] == value).all()


@pytest.mark.parametrize(("moderation", "post_list"), [(1, 1), (7, 3), (20, 64)])
def test_operations_of_several_endpoints(moderation: int, post_list: int) -> None:
    how: dict[str, Any] = {"selective_completion": "transmit"}
    with ofipy.open(provider="shm", **how) as first, ofipy.open(provider="shm", **how) as second:
        ends = [
            [each, each.domain.endpoint(cq=each.cq, av=each.av, **how).enable()] for each in (first, second)
        ]
        out, into = np.full(8, 7, np.uint8), np.zeros((2, 8), np.uint8)
        sends, receives = first.domain.operations(2), second.domain.operations(2)
        sends["op"], receives["op"] = ofipy.Op.SEND, ofipy.Op.RECV
        sends["peer"] = [ends[0][i].insert(ends[1][i].address) for i in range(2)]
        receives["peer"] = [ends[1][i].insert(ends[0][i].address) for i in range(2)]
        sends["length"] = receives["length"] = 8
        sends["offset"] = out.ctypes.data
        receives["offset"] = [each.ctypes.data for each in into]
        receives["context"] = [0, 1]
        for endpoint, record in zip(ends[1], receives, strict=True):
            assert endpoint.post(np.repeat(np.atleast_1d(record), 5)) == 5
        posted, completed = np.zeros((2, 2 * -(-50 // moderation)), np.int64)

        def run(sending: bool) -> float:
            if not sending:
                return run_pipeline(ends[1], receives=receives, iterations=50, receive_depth=5)
            return run_pipeline(
                ends[0], operations=sends, iterations=50, depth=20, moderation=moderation,
                post_list=post_list, posted=posted, completed=completed,
            )  # fmt: skip

        both(run)
        assert (into == 7).all()
        assert (np.sort(completed) >= np.sort(posted)).all()
        assert completed.min() > 0
        assert not len(first.cq.read()) + len(second.cq.read())


def test_a_pipeline_keeps_to_its_numbers(sides: Sides) -> None:
    endpoint, _ = sides[0]
    records = endpoint.domain.operations(1)
    for wrong in ({"moderation": 2}, {"moderation": 0}, {"post_list": 65}, {"iterations": 0}):
        with pytest.raises(ofipy.InvalidArgument):
            run_pipeline([endpoint], operations=records, **{"iterations": 1, **wrong})
    with pytest.raises(ofipy.InvalidArgument, match="room for 1 times of 2"):
        run_pipeline([endpoint], operations=records, iterations=2, posted=np.zeros(1, np.int64))
    for others in (endpoint.domain.operations(2), np.zeros(1, [("op", np.uint8)])):
        with pytest.raises(ofipy.InvalidArgument, match="one operation each is meant"):
            run_pipeline([endpoint], operations=others, iterations=1)
    with pytest.raises(ofipy.InvalidArgument, match="0 endpoints"):
        run_pipeline([], iterations=1)
    records["op"], records["peer"] = ofipy.Op.SEND, 77
    with pytest.raises(ofipy.FabricError):
        run_pipeline([endpoint], operations=records, iterations=1)


@pytest.mark.parametrize("context", [0, 1, 1 << 40])
def test_a_pipeline_refuses_rows_of_others(sides: Sides, context: int) -> None:
    endpoint, _ = sides[0]
    me, room = endpoint.insert(endpoint.address), endpoint.domain.register(bytearray(8))
    endpoint.post_trecv(room, me, tag=1, context=context)
    endpoint.tsend(b"here", me, tag=1).wait(timeout=10)
    records = endpoint.domain.operations(1)
    records["op"], records["peer"] = (ofipy.Op.TSEND if context == 0 else ofipy.Op.RECV), me
    with pytest.raises(ofipy.InvalidArgument):
        run_pipeline([endpoint], **{"operations" if context == 0 else "receives": records}, iterations=1)


def test_a_pipeline_can_be_interrupted(sides: Sides) -> None:
    endpoint, _ = sides[0]
    me, memory = endpoint.insert(endpoint.address), np.zeros(8, np.uint8)
    sends, receives = endpoint.domain.operations(1), endpoint.domain.operations(1)
    for records, op in ((sends, ofipy.Op.SEND), (receives, ofipy.Op.RECV)):
        records["op"], records["peer"], records["length"] = op, me, 8
        records["offset"] = memory.ctypes.data
    assert endpoint.post(receives) == 1
    main = threading.main_thread().ident
    assert main is not None
    # Whatever ran before may have left another one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), running(timer):
        run_pipeline([endpoint], operations=sends, receives=receives, iterations=10**12)
    # What is under way uses the memory until then.
    endpoint.close()
    assert not memory.any()


def test_the_core_has_no_measuring_code_and_the_loops_have_no_core() -> None:
    """A loop that called the core outright would link a second one, with lists and locks of its own."""
    assert [name for name in dir(binding.lib) if "measure" in name] == []
    called = re.compile(r"\b(ofp_(?!measure_|load_|store_)\w+)\(")
    sources = (Path(__file__).parents[2] / "native" / "measure").glob("*.c")
    assert {name for source in sources for name in called.findall(source.read_text())} == set()
    assert binding.ffi.typeof("struct ofp_endpoint *") is measure_binding.ffi.typeof("struct ofp_endpoint *")
