# SPDX-License-Identifier: BSD-3-Clause
"""Memory of any number of pieces: columns, blocks, any strided array, long lists; sent, received, written and read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_buffers import TIMEOUT, carry

import ofipy

Array = npt.NDArray[Any]
LIMIT = 16  # pieces of a record


def numbered(shape: tuple[int, ...], dtype: Any = np.uint32) -> Array:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.uint64).astype(dtype).reshape(shape)


VIEWS = {
    "column": np.s_[:, 1],
    "block": np.s_[3:-3, 1:-1],
    "every second": np.s_[::2, ::2],
    "backwards": np.s_[::-1, ::-1],
    "transposed": None,
}


def view(array: Array, name: str) -> Array:
    return array.T if VIEWS[name] is None else array[VIEWS[name]]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("rows", [20, 700, 50_000])
def test_views_travel_whole(ep: ofipy.Endpoint, me: ofipy.Peer, name: str, rows: int) -> None:
    source, target = numbered((rows, 4)), np.zeros((rows, 4), np.uint32)
    wanted = target.copy()
    view(wanted, name)[...] = view(source, name)
    got = carry(ep, me, view(source, name), view(target, name))
    assert got.length == view(source, name).nbytes
    # And nothing beside them is written.
    assert np.array_equal(target, wanted)


@pytest.mark.parametrize("rows", [20, 50_000])
def test_one_side_is_contiguous(ep: ofipy.Endpoint, me: ofipy.Peer, rows: int) -> None:
    source, target = numbered((rows, 3)), np.zeros((rows, 3), np.uint32)
    flat = np.zeros(rows, np.uint32)
    carry(ep, me, source[:, 2], flat)
    assert np.array_equal(flat, source[:, 2])
    carry(ep, me, flat, target[:, 0])
    assert np.array_equal(target[:, 0], flat)
    assert not target[:, 1:].any()


@pytest.mark.parametrize("rows", [20, 50_000])
def test_a_message_that_comes_first(ep: ofipy.Endpoint, me: ofipy.Peer, rows: int) -> None:
    source, target = numbered((rows, 3)), np.zeros((rows, 3), np.uint32)
    send = ep.tsend(source[:, 1], me, tag=5)
    ep.tsend(b"behind", me, tag=6).wait(timeout=TIMEOUT)
    ep.trecv_into(bytearray(6), me, tag=6).wait(timeout=TIMEOUT)
    ep.trecv_into(target[:, 0], me, tag=5).wait(timeout=TIMEOUT)
    send.wait(timeout=TIMEOUT)
    assert np.array_equal(target[:, 0], source[:, 1])


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_long_lists(ep: ofipy.Endpoint, me: ofipy.Peer, size: int) -> None:
    count = 5 * LIMIT
    whole = np.random.default_rng(size).bytes(count * size)
    source = [whole[k * size : (k + 1) * size] for k in range(count)]
    # Kinds of memory side by side, and empty ones between.
    source[3:3] = [b"", np.zeros((0, 3), np.uint8)]  # type: ignore[list-item]
    mapped, region = ep.empty(size), ep.register(bytearray(size))
    target: list[Any] = [bytearray(size) for _ in range(count - 2)]
    target[1:1] = [mapped]
    target.append(region)
    assert carry(ep, me, source, target).length == len(whole)
    target[-1] = region.array
    assert b"".join(bytes(each) for each in target) == whole
    region.close()


def truncate(ep: ofipy.Endpoint, me: ofipy.Peer, source: Array, target: Array) -> None:
    """Pass a message that is longer than the memory."""
    receive = ep.trecv_into(target, me, tag=4)
    send = ep.tsend(source, me, tag=4)
    with pytest.raises(ofipy.Truncated):
        receive.wait(timeout=TIMEOUT)
    send.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("rows", [40, 60_000])
def test_messages_that_do_not_fit(ep: ofipy.Endpoint, me: ofipy.Peer, rows: int) -> None:
    source, target = numbered((rows, 2)), np.zeros((rows, 2), np.uint32)
    flat = np.zeros(rows // 2 + 1, np.uint32)
    truncate(ep, me, source[:, 0], flat)
    truncate(ep, me, source[:, 0], target[: len(flat), 1])
    # The same bytes as in contiguous memory: which ones, the transport decides.
    assert np.array_equal(target[: len(flat), 1], flat)
    assert not target[len(flat) :].any()
    assert not target[:, 0].any()
    # A shorter message leaves the rest of the memory as it was.
    target[...] = 5
    assert carry(ep, me, source[:30, 0], target[:, 1]).length == 120
    assert np.array_equal(target[:30, 1], source[:30, 0])
    assert (target[30:] == 5).all()


def test_a_prepared_column(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    source, target = numbered((1000, 2)), np.zeros((1000, 2), np.uint32)
    send = ep.prepare_tsend(source[:, 0], me, tag=2)
    receive = ep.prepare_trecv(target[:, 1], me, tag=2)
    for turn in range(3):
        source[:, 0] += turn
        ofipy.start(receive, send)
        receive.wait(timeout=TIMEOUT)
        send.wait(timeout=TIMEOUT)
        assert np.array_equal(target[:, 1], source[:, 0])


def test_an_injected_column_may_change_at_once(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    source, target = numbered((2 * LIMIT, 2), np.uint8), np.zeros(2 * LIMIT, np.uint8)
    before = source[:, 0].copy()
    ep.tsend(source[:, 0], me, tag=3, flags="inject").wait(timeout=TIMEOUT)
    source[...] = 0
    ep.trecv_into(target, me, tag=3).wait(timeout=TIMEOUT)
    assert np.array_equal(target, before)


@pytest.mark.needs("rma")
@pytest.mark.parametrize("rows", [20, 700, 50_000])
def test_columns_are_written_and_read(ep: ofipy.Endpoint, me: ofipy.Peer, rows: int) -> None:
    source, memory = numbered((rows, 3)), np.zeros(rows, np.uint32)
    region = ep.register(memory, access="remote_read|remote_write")
    ep.write(source[:, 1], me, region.remote).wait(timeout=TIMEOUT)
    ep.flush(me).wait(timeout=TIMEOUT)
    assert np.array_equal(memory, source[:, 1])
    memory += 7
    target = np.zeros((rows, 3), np.uint32)
    ep.read(target[:, 2], me, region.remote).wait(timeout=TIMEOUT)
    assert np.array_equal(target[:, 2], memory)
    assert not target[:, :2].any()
    half = rows // 2
    parts = [region.remote[4 * half :], region.remote[: 4 * half]]
    ep.write(source[:, 0], me, parts).wait(timeout=TIMEOUT)
    ep.flush(me).wait(timeout=TIMEOUT)
    assert np.array_equal(np.concatenate([memory[half:], memory[:half]]), source[:, 0])
    region.close()


def test_many_at_a_time_keep_their_order(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    blocks = [numbered((sides, 3)) + sides for sides in (30, 20_000, 40, 3000, 90_000, 25)]
    targets = [np.zeros((len(each), 2), np.uint32) for each in blocks]
    receives = [ep.trecv_into(each[:, 1], me, tag=9) for each in targets]
    sends = [ep.tsend(each[:, 1], me, tag=9) for each in blocks]
    ofipy.wait_all([*receives, *sends], timeout=TIMEOUT)
    for block, target in zip(blocks, targets, strict=True):
        assert np.array_equal(target[:, 1], block[:, 1])


def test_regions_in_lists_are_checked(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(64), access="send")
    with pytest.raises(ofipy.AccessDenied, match="register it with access"):
        ep.trecv_into([bytearray(1) for _ in range(LIMIT)] + [region], me, tag=1)
    region.close()
    with pytest.raises(ofipy.Closed):
        ep.tsend([b"x"] * LIMIT + [region], me, tag=1)
    assert ep.stats().posted_receives == 0


@st.composite
def strided(draw: st.DrawFn, shape_of: Any = None) -> Array:
    """An array of up to four dimensions whose elements lie apart, some of them backwards."""
    dtype = draw(st.sampled_from([np.uint8, np.uint16, np.float32, np.int64, np.complex128, np.dtype("V3")]))
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in shape]
    whole = np.zeros([count * abs(step) + 1 for count, step in zip(shape, steps, strict=True)], dtype)
    array = whole[tuple(slice(None, None, step) for step in steps)]
    array = array[tuple(slice(0, count) for count in shape)]
    return array.transpose(draw(st.permutations(range(len(shape)))))


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_two_layouts(ep: ofipy.Endpoint, me: ofipy.Peer, data: st.DataObject) -> None:
    """What is sent arrives in C order, whatever the layouts of both sides are."""
    sources = data.draw(st.lists(strided(), min_size=1, max_size=20))
    targets = data.draw(st.lists(strided(), min_size=1, max_size=20))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    for source in sources:
        source[...] = np.frombuffer(random.bytes(source.nbytes), source.dtype).reshape(source.shape)
    sent = b"".join(source.tobytes() for source in sources)
    room = sum(target.nbytes for target in targets)
    if room < len(sent):
        targets.append(np.zeros(len(sent) - room, np.uint8))
        room = len(sent)
    assert carry(ep, me, sources, targets).length == len(sent)
    assert b"".join(target.tobytes() for target in targets) == sent + bytes(room - len(sent))


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_array(ep: ofipy.Endpoint, me: ofipy.Peer, data: st.DataObject) -> None:
    """One array, which C describes, beside the list of it, which Python describes."""
    source, target = data.draw(strided()), data.draw(strided())
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    source[...] = np.frombuffer(random.bytes(source.nbytes), source.dtype).reshape(source.shape)
    flat = np.zeros(source.nbytes, np.uint8)
    assert carry(ep, me, source, flat).length == source.nbytes
    assert bytes(flat) == source.tobytes()
    if target.nbytes < source.nbytes:
        target = np.zeros((source.nbytes, 2), np.uint8)[:, 1]
    rest = target.tobytes()[source.nbytes :]
    carry(ep, me, [source], target)
    assert target.tobytes() == bytes(flat) + rest


def test_a_column_that_is_read_only(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    column = np.zeros((100, 2))[:, 1]
    column.flags.writeable = False
    with pytest.raises(ofipy.BufferTypeError, match="read-only"):
        ep.trecv_into(column, me, tag=1)
    with pytest.raises(ofipy.BufferTypeError, match="objects"):
        ep.tsend(np.array([[None, None]] * 100)[:, 1], me, tag=1)
    assert ep.stats().posted_receives == 0


@pytest.mark.needs("atomic")
def test_atomics_on_columns(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    source, memory = numbered((40, 2), np.uint64), np.ones(40, np.uint64)
    region = ep.register(memory, access="remote_read|remote_write")
    ep.atomic(source[:, 1], me, region.remote, op="sum").wait(timeout=TIMEOUT)
    ep.flush(me).wait(timeout=TIMEOUT)
    assert np.array_equal(memory, source[:, 1] + 1)
    region.close()
