# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of memory that can be sent and received into, and what is refused."""

import ctypes
import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ofipy
from tests.timers import running

TIMEOUT = 30


def carry(ep: ofipy.Endpoint, me: ofipy.Peer, source: Any, target: Any) -> ofipy.Request:
    receive = ep.trecv_into(target, me, tag=1)
    send = ep.tsend(source, me, tag=1)
    got = receive.wait(timeout=TIMEOUT)
    send.wait(timeout=TIMEOUT)
    return got


@pytest.mark.parametrize("size", [8, 3000, 200_000])
def test_kinds_of_buffers(ep: ofipy.Endpoint, me: ofipy.Peer, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    array = np.frombuffer(data, np.uint8)
    region, mapped = ep.register(bytearray(data)), ep.empty(size)
    mapped[:] = array
    for source in (data, bytearray(data), memoryview(data), array, array.view(np.int8), region, mapped):
        for target in (
            bytearray(size),
            memoryview(bytearray(size)),
            np.zeros(size, np.uint8),
            ep.empty(size),
        ):
            assert carry(ep, me, source, target).length == size
            assert bytes(target) == data
        into = ep.register(bytearray(size))
        carry(ep, me, source, into)
        assert bytes(into.array) == data
        into.close()


def test_shaped_arrays(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    source, target = np.arange(24.0).reshape(2, 3, 4), np.zeros((4, 6))
    assert carry(ep, me, source, target).length == 192
    assert np.array_equal(source.ravel(), target.ravel())
    scalar = np.zeros(())
    assert carry(ep, me, np.array(3.5), scalar).length == 8
    assert scalar == 3.5


def test_region_slices(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = np.arange(100, dtype=np.uint8)
    region = ep.register(memory)
    assert len(region[10:20]) == 10
    assert len(region[10:20][2:5]) == 3
    assert np.array_equal(region[10:20][2:5].array, [12, 13, 14])
    assert len(region[90:200]) == 10
    carry(ep, me, region[0:10], region[90:100])
    assert np.array_equal(memory[90:], np.arange(10))
    region[50:60].array[:] = 7
    assert (memory[50:60] == 7).all()
    region[3:5].close()
    assert region.closed
    with pytest.raises(ofipy.Closed):
        ep.tsend(region, me, tag=1)
    with pytest.raises(ofipy.Closed):
        ep.trecv_into(region[0:4], me, tag=1)


# ------------------------------------------------------------------------------------------------------ scatter-gather


@pytest.mark.parametrize("size", [3, 900, 60_000])
def test_lists_of_buffers(ep: ofipy.Endpoint, me: ofipy.Peer, size: int) -> None:
    parts = [bytes([number]) * (size + number) for number in range(5)]
    whole = b"".join(parts)
    target = bytearray(len(whole))
    assert carry(ep, me, parts, target).length == len(whole)
    assert target == whole
    region = ep.register(bytearray(len(whole)))
    cut = [bytearray(size // 2 + 1), region[0 : size + 2], np.zeros(len(whole), np.uint8)]
    assert carry(ep, me, whole, cut).length == len(whole)
    joined = bytes(cut[0]) + bytes(region.array[: size + 2]) + bytes(cut[2])
    assert joined[: len(whole)] == whole
    assert carry(ep, me, (), []).length == 0
    assert carry(ep, me, [b"", b"x", b""], target).length == 1


@pytest.mark.parametrize("size", [3, 900, 60_000])
def test_strided_arrays(ep: ofipy.Endpoint, me: ofipy.Peer, size: int) -> None:
    source = np.arange(8 * (size + 5), dtype=np.uint32).reshape(8, -1)
    target = np.zeros((4, 2 * size), np.uint32)
    assert carry(ep, me, source[::2, :size], target[:, 3 : size + 3]).length == 16 * size
    assert np.array_equal(source[::2, :size], target[:, 3 : size + 3])
    assert (target[:, :3] == 0).all()
    column = np.zeros(8, np.uint32)
    carry(ep, me, source[:, 1], column)
    assert np.array_equal(column, source[:, 1])


def test_memory_that_is_refused(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    frozen = np.zeros(8, np.uint8)
    frozen.flags.writeable = False
    for target in (b"constant", frozen, memoryview(b"constant")):
        with pytest.raises(ofipy.BufferTypeError, match=f"{type(target).__name__} is read-only"):
            ep.trecv_into(target, me, tag=1)
        with pytest.raises(TypeError):
            ep.prepare_trecv(target, me, tag=1)
    for other in ("text", None, 5, [b"fine", "text"]):
        with pytest.raises(ofipy.BufferTypeError, match="is not memory"):
            ep.tsend(other, me, tag=1)
    with pytest.raises(ofipy.BufferTypeError):
        ep.register(b"constant")
    ep.register(b"constant", access="send").close()
    assert ep.stats().posted_receives == 0


def object_memory() -> list[Any]:
    """Memory whose bytes are pointers to Python objects, hidden as well as it can be."""
    nested = np.dtype([("O", "u8"), ("inner", [("number", "f8"), ("thing", object, (2,))])])
    plain = np.array([{}, "x"], object)
    return [
        plain,
        np.zeros((2, 2), object),
        np.zeros((4, 4), object)[::2, ::2],
        np.zeros(3, nested),
        np.zeros(6, nested)[::2],
        np.zeros((), nested),
        np.zeros(1, nested)[0],
        np.zeros(2, object).view(np.recarray),
        memoryview(plain),
        memoryview(np.zeros(3, nested)),
        (ctypes.py_object * 2)({}, "x"),
    ]


@pytest.mark.parametrize("number", range(len(object_memory())))
def test_memory_of_python_objects_is_refused(ep: ofipy.Endpoint, me: ofipy.Peer, number: int) -> None:
    memory = object_memory()[number]
    calls: list[Callable[[], object]] = [
        lambda: ep.tsend(memory, me, tag=1),
        lambda: ep.tsend(memory, me, tag=1, complete="delivery"),
        lambda: ep.tsend([b"fine", memory], me, tag=1),
        lambda: ep.send(memory, me),
        lambda: ep.trecv_into(memory, me, tag=1),
        lambda: ep.trecv_into([bytearray(1), memory], me, tag=1),
        lambda: ep.recv_into(memory),
        lambda: ep.prepare_tsend(memory, me, tag=1),
        lambda: ep.prepare_send(memory, me),
        lambda: ep.prepare_trecv(memory, me, tag=1),
        lambda: ep.prepare_recv(memory),
        lambda: ep.register(memory),
        lambda: ep.register(memory, access="send"),
    ]
    for call in calls:
        with pytest.raises(ofipy.BufferTypeError, match="Python objects"):
            call()
    if ep.info.caps & ofipy.Cap.MULTI_RECV:
        for call in (lambda: ep.recv_many(memory), lambda: ep.trecv_many(memory, tag=1)):
            with pytest.raises(ofipy.BufferTypeError, match=r"Python objects|contiguous"):
                call()
    assert ep.stats().posted_receives == 0


@pytest.mark.needs("rma")
def test_remote_memory_and_python_objects(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(1000), access="remote_read|remote_write")
    for memory in object_memory():
        size = memoryview(memory).nbytes
        remote = region.remote[:size]
        calls: list[Callable[[], object]] = [
            lambda memory=memory, remote=remote: ep.write(memory, me, remote),
            lambda memory=memory, remote=remote: ep.read(memory, me, remote),
            lambda memory=memory, remote=remote: ep.prepare_write(memory, me, remote),
            lambda memory=memory, remote=remote: ep.prepare_read(memory, me, remote),
        ]
        for call in calls:
            with pytest.raises(ofipy.BufferTypeError, match="Python objects"):
                call()
    assert not any(region.array)


def test_fields_named_like_objects_are_memory(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    named = np.zeros(3, [("O", "u8"), ("O2", "f4", (2,))])
    for source in (named, memoryview(named), named[0]):
        size = memoryview(source).nbytes
        assert carry(ep, me, source, bytearray(size)).length == size


def test_wrong_numbers_are_refused(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    for options in ({"tag": -1}, {"tag": 2**64}, {"tag": "seven"}, {"remote_data": 2**64}):
        with pytest.raises(ofipy.InvalidArgument, match=next(iter(options))):
            ep.tsend(b"x", me, **options)
    for peer in (-1, 2**32, "peer"):
        with pytest.raises(ofipy.InvalidArgument, match="peer"):
            ep.trecv_into(bytearray(1), peer)
    for address in ("localhost:1", ep.address, bytes(ep.address)):
        for call in (
            lambda address=address: ep.tsend(b"x", address),
            lambda address=address: ep.trecv_into(bytearray(1), address),
            lambda address=address: ep.av.remove(address),
            lambda address=address: ep.av.address(address),
        ):
            with pytest.raises(ofipy.InvalidArgument, match=r"peer=.*a Peer is meant.*insert\("):
                call()
    with pytest.raises(ofipy.InvalidArgument, match=r"a Peer is meant$"):
        ep.tsend(b"x", 1.5)  # type: ignore[arg-type]
    with pytest.raises(ofipy.InvalidArgument, match="send needs a Peer"):
        ep.tsend(b"x", None)
    with pytest.raises(ofipy.InvalidArgument, match="delivery"):
        ep.tsend(b"x", me, complete="soon")
    with pytest.raises(ofipy.InvalidArgument, match="fence"):
        ep.tsend(b"x", me, flags="fance")


# -------------------------------------------------------------------------------------------------- memory of a domain


def test_memory_of_the_domain(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    source, target = ep.empty((64, 1024), np.uint32), ep.empty((64, 1024), np.uint32)
    assert source.shape == (64, 1024)
    assert not source.any()
    source[:] = np.arange(65536, dtype=np.uint32).reshape(64, 1024)
    carry(ep, me, source, target)
    assert np.array_equal(source, target)
    carry(ep, me, source[10:20], target[0:10])
    assert np.array_equal(source[10:20], target[0:10])
    region = ep.domain.region(source[3])
    assert np.array_equal(region.array.view(np.uint32), source[3])
    carry(ep, me, region, target[5])
    assert np.array_equal(source[3], target[5])
    with pytest.raises(ofipy.InvalidArgument):
        ep.domain.region(np.zeros(4))
    assert ep.empty(0).size == 0
    assert ep.empty((0, 5)).shape == (0, 5)
    with pytest.raises(ofipy.InvalidArgument):
        ep.empty(3, object)
    with pytest.raises(ofipy.InvalidArgument):
        ep.empty(-1)


def test_absurd_size_is_an_error_with_a_reason(ep: ofipy.Endpoint) -> None:
    with pytest.raises(MemoryError) as caught:
        ep.empty(2**50)
    assert isinstance(caught.value, ofipy.NoMemory)


def test_arrays_outlive_everything(open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    endpoint = open_endpoint()
    array = endpoint.empty(1 << 20)
    view = array[1000:2000][::2]
    endpoint.fabric.close()
    del array
    gc.collect()
    view[:] = 9
    assert view.sum() == 9 * 500
    del view
    gc.collect()


def test_memory_is_given_back_with_the_last_view(ep: ofipy.Endpoint) -> None:
    memory = ep.domain._memory
    array = ep.empty(100)
    view = array[5:10]
    del array
    assert memory
    del view
    assert not memory


# ------------------------------------------------------------------------------------------------------------ lifetime


class Watched(bytearray):
    """A buffer whose end can be seen."""


def test_buffers_stay_until_their_operation_is_over(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    buffer = Watched(16)
    alive = weakref.ref(buffer)
    request = ep.trecv_into(buffer, me, tag=1)
    with pytest.raises(BufferError):
        buffer.extend(b"x")
    del buffer
    gc.collect()
    assert alive() is not None
    ep.tsend(b"0123456789abcdef", me, tag=1).wait(timeout=TIMEOUT)
    request.wait(timeout=TIMEOUT)
    assert alive() is None


def test_a_buffer_stays_when_a_wait_is_interrupted_and_its_request_dropped(
    ep: ofipy.Endpoint, me: ofipy.Peer
) -> None:
    buffer = Watched(16)
    alive = weakref.ref(buffer)
    request = ep.trecv_into(buffer, me, tag=1)
    del buffer
    # A shell's background job inherits SIGINT ignored, and Python leaves it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), running(timer):
        request.wait()
    del request
    gc.collect()
    kept = alive()
    assert kept is not None
    ep.tsend(b"0123456789abcdef", me, tag=1).wait(timeout=TIMEOUT)
    while ep.stats().receives == 0:
        ep.domain.progress()
    assert kept == b"0123456789abcdef"


def test_buffers_of_dropped_requests_stay_too(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    buffer = Watched(16)
    alive = weakref.ref(buffer)
    ep.trecv_into(buffer, me, tag=1)
    del buffer
    gc.collect()
    kept = alive()
    assert kept is not None
    ep.tsend(b"0123456789abcdef", me, tag=1).wait(timeout=TIMEOUT)
    # What was sent has not always arrived.
    while ep.stats().receives == 0:
        ep.domain.progress()
    # The buffer goes with one of the next operations, so that thousands of dropped ones do not pile up.
    for _ in range(200):
        ep.trecv_into(bytearray(1), me, tag=2)
        ep.tsend(b"x", me, tag=2).wait(timeout=TIMEOUT)
    assert kept == b"0123456789abcdef"
    del kept
    gc.collect()
    assert alive() is None
