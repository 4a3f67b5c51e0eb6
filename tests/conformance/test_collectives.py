# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of arrays against numpy."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from team import TIMEOUT, Open, make_team, together

import ofipy

pytestmark = pytest.mark.needs("groups")

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
REALS = [np.float16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "bor": np.bitwise_or,
    "band": np.bitwise_and,
    "bxor": np.bitwise_xor,
    "lor": np.logical_or,
    "land": np.logical_and,
    "lxor": np.logical_xor,
}


def operations_of(dtype: type[Any]) -> list[str]:
    if dtype in COMPLEX:
        return ["sum", "prod", "lor", "land", "lxor"]
    return [op for op in FUNCTIONS if dtype not in REALS or op not in ("bor", "band", "bxor")]


def values(dtype: type[Any], size: int, length: int, seed: int = 1) -> np.ndarray:
    """One array for each member; products and sums of them are exact, zeros are among them."""
    random = np.random.default_rng(seed)
    return random.integers(0, 3, (size, length)).astype(dtype)


@pytest.fixture
def team(open_endpoint: Open) -> list[ofipy.Group]:
    return make_team(open_endpoint, 4)


@pytest.mark.parametrize("dtype", [*INTEGERS, *REALS, *COMPLEX], ids=lambda dtype: dtype.__name__)
def test_every_type_and_operation(team: list[ofipy.Group], dtype: type[Any]) -> None:
    given = values(dtype, len(team), 37)
    for op in operations_of(dtype):
        expected = given[0]
        for other in given[1:]:
            expected = FUNCTIONS[op](expected, other).astype(dtype)

        def work(group: ofipy.Group, op: str = op) -> np.ndarray:
            into = np.empty(37, dtype)
            assert group.allreduce(given[group.rank], into, op=op).wait(timeout=TIMEOUT) is into
            return into

        for result in together(team, work):
            np.testing.assert_array_equal(result, expected, err_msg=op)


@pytest.mark.parametrize("length", [5, 5000, 300_000])
@pytest.mark.parametrize("op", ["min", "max", "sum", "prod"])
def test_nan_wins_and_has_the_same_bits(open_endpoint: Open, op: str, length: int) -> None:
    team = make_team(open_endpoint, 3)

    def work(group: ofipy.Group) -> bytes:
        a = np.full(length, group.rank, np.float64)
        if group.rank == 1:
            a[::3] = np.frombuffer(np.uint64(0xFFF800000000BEEF).tobytes(), np.float64)[0]
        if group.rank == 2:
            a[1::3] = np.nan
        group.allreduce(a, op=op).wait(timeout=TIMEOUT)
        assert np.isnan(a[::3]).all()
        assert np.isnan(a[1::3]).all()
        assert not np.isnan(a[2::3]).any()
        return a.tobytes()

    one, *others = together(team, work)
    assert all(other == one for other in others)


def test_bfloat16_and_bool(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        a = np.full(9, 0x3FC0, np.uint16)  # 1.5
        group.allreduce(a, dtype="bfloat16").wait(timeout=TIMEOUT)
        assert (a == 0x40C0).all()  # 6
        truth = np.array([group.rank == 2, False, True])
        group.allreduce(truth, op="lor").wait(timeout=TIMEOUT)
        assert truth.tolist() == [True, False, True]
        with pytest.raises(ofipy.InvalidArgument, match="bool has no such operation"):
            group.allreduce(truth)

    together(team, work)


def check_everything(group: ofipy.Group, length: int, root: int) -> None:
    """Every kind with blocks of `length`, against what the ranks are known to give."""
    rank, size = group.rank, group.size
    blocks = np.arange(size * size * length, dtype=np.int64).reshape(size, size, length)
    mine = blocks[rank]
    group.barrier().wait(timeout=TIMEOUT)
    a = mine[0].copy()
    assert group.broadcast(a, root=root).wait(timeout=TIMEOUT) is a
    np.testing.assert_array_equal(a, blocks[root, 0])
    is_root = rank == root
    into = np.empty(length, np.int64) if is_root else None
    result = group.reduce(mine[0], into, root=root).wait(timeout=TIMEOUT)
    assert result is into
    if is_root:
        np.testing.assert_array_equal(into, blocks[:, 0].sum(0))
    into = np.empty((size, length), np.int64) if is_root else None
    group.gather(mine[0], into, root=root).wait(timeout=TIMEOUT)
    if is_root:
        np.testing.assert_array_equal(into, blocks[:, 0])
    into = np.empty(length, np.int64)
    group.scatter(mine if is_root else None, into, root=root).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(into, blocks[root, rank])
    everything = np.empty((size, length), np.int64)
    group.allgather(mine[0], everything).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(everything, blocks[:, 0])
    group.alltoall(mine, everything).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(everything, blocks[:, rank])
    group.reduce_scatter(mine, into).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(into, blocks[:, rank].sum(0))
    group.scan(mine[0], into).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(into, blocks[: rank + 1, 0].sum(0))
    into[:] = -1
    group.exscan(mine[0], into).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(into, blocks[:rank, 0].sum(0) if rank else np.full(length, -1))


def check_in_place(group: ofipy.Group, length: int, root: int) -> None:
    rank, size = group.rank, group.size
    blocks = np.arange(size * size * length, dtype=np.int64).reshape(size, size, length)
    a = blocks[rank, 0].copy()
    group.allreduce(a).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(a, blocks[:, 0].sum(0))
    for method, end in ((group.scan, rank + 1), (group.exscan, rank)):
        a = blocks[rank, 0].copy()
        method(a).wait(timeout=TIMEOUT)
        np.testing.assert_array_equal(a, blocks[:end, 0].sum(0) if end else blocks[rank, 0])
    a = blocks[rank, 0].copy()
    group.reduce(a, root=root).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(a, blocks[:, 0].sum(0) if rank == root else blocks[rank, 0])
    for method, rooted in ((group.gather, {"root": root}), (group.allgather, {})):
        whole = np.zeros((size, length), np.int64)
        whole[rank] = blocks[rank, 0]
        gets = not rooted or rank == root
        method(whole if gets else blocks[rank, 0], **rooted).wait(timeout=TIMEOUT)
        if gets:
            np.testing.assert_array_equal(whole, blocks[:, 0])
    whole = blocks[rank].copy()
    group.alltoall(whole).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(whole, blocks[:, rank])
    whole = blocks[rank].copy()
    group.reduce_scatter(whole).wait(timeout=TIMEOUT)
    np.testing.assert_array_equal(whole[rank], blocks[:, rank].sum(0))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("length", [0, 1, 700])
def test_every_kind(open_endpoint: Open, size: int, length: int) -> None:
    team = make_team(open_endpoint, size)
    together(team, lambda group: check_everything(group, length, size // 2))
    together(team, lambda group: check_in_place(group, length, size - 1))


@pytest.mark.parametrize("size", [2, 3])
def test_long_blocks(open_endpoint: Open, size: int) -> None:
    """In pieces, by rings, and in more pieces than are under way at a time."""
    team = make_team(open_endpoint, size)
    together(team, lambda group: check_everything(group, 200_000, 0))
    together(team, lambda group: check_in_place(group, 200_000, size - 1))


def test_blocks_of_different_length(team: list[ofipy.Group]) -> None:
    counts = [3, 0, 500, 1]
    ends = np.cumsum([0, *counts])

    def work(group: ofipy.Group) -> None:
        rank, size = group.rank, group.size
        whole = np.arange(sum(counts), dtype=np.float32)
        own = whole[ends[rank] : ends[rank + 1]]
        into = np.zeros_like(whole)
        group.allgather(own, into, counts=counts).wait(timeout=TIMEOUT)
        np.testing.assert_array_equal(into, whole)
        into = np.zeros_like(whole) if rank == 2 else None
        group.gather(own, into, counts=counts, root=2).wait(timeout=TIMEOUT)
        if into is not None:
            np.testing.assert_array_equal(into, whole)
        into = np.zeros_like(own)
        group.scatter(whole if rank == 1 else None, into, counts=counts, root=1).wait(timeout=TIMEOUT)
        np.testing.assert_array_equal(into, own)
        group.reduce_scatter(whole, into, counts=counts).wait(timeout=TIMEOUT)
        np.testing.assert_array_equal(into, size * own)
        given = [rank + other for other in range(size)]
        into = np.zeros(sum(given), np.int16)
        sent = np.repeat(np.arange(size, dtype=np.int16) + 10 * rank, given)
        group.alltoall(sent, into, counts=given, into_counts=given).wait(timeout=TIMEOUT)
        np.testing.assert_array_equal(into, np.repeat(10 * np.arange(size) + rank, given))

    together(team, work)


def test_several_at_a_time_end_in_any_order(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        arrays = [np.full(3 + 1000 * number, group.rank, np.int64) for number in range(40)]
        requests = [group.allreduce(array) for array in arrays]
        last = group.barrier()
        ofipy.wait_all([*reversed(requests), last], timeout=TIMEOUT)
        assert all((array == 6).all() for array in arrays)

    together(team, work)


def test_prepared(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        a, b = np.zeros(10), np.zeros(3)
        sums, sent = group.prepare_allreduce(a), group.prepare_broadcast(b, root=1)
        for number in range(5):
            a[:], b[:] = number, group.rank + number
            ofipy.start(sums, sent)
            ofipy.wait_all([sums, sent], timeout=TIMEOUT)
            assert (a == 4 * number).all()
            assert (b == 1 + number).all()

    together(team, work)


def test_awaited(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        async def many() -> list[Any]:
            return await asyncio.gather(*(group.allreduce(np.array([number])) for number in range(10)))

        assert [int(each[0]) for each in asyncio.run(many())] == [4 * number for number in range(10)]

    together(team, work)


def test_progress_without_the_program(open_endpoint: Open) -> None:
    """Three members wait for nothing: their helpers carry out all rounds."""
    team = make_team(open_endpoint, 4)
    arrays = [np.full(100_000, group.rank, np.float64) for group in team]
    requests = [group.allreduce(array) for group, array in zip(team[1:], arrays[1:], strict=True)]
    team[0].allreduce(arrays[0]).wait(timeout=TIMEOUT)
    assert (arrays[0] == 6).all()
    for request in requests:
        request.wait(timeout=TIMEOUT)
    assert all((array == 6).all() for array in arrays)


def test_messages_of_the_program_meet_none_of_a_group(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        waiting = group.endpoint.trecv(tag=0, ignore=2**64 - 1)
        a = np.ones(4)
        group.allreduce(a).wait(timeout=TIMEOUT)
        assert (a == 4).all()
        assert not waiting.test()
        group.barrier().wait(timeout=TIMEOUT)
        group.endpoint.tsend(b"mine", group.peers[(group.rank + 1) % group.size], tag=77).wait(
            timeout=TIMEOUT
        )
        assert bytes(waiting.wait(timeout=TIMEOUT)) == b"mine"

    together(team, work)


def test_groups_of_groups(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        rank = group.rank
        half = group.split(rank % 2, key=-rank).wait(timeout=TIMEOUT)
        assert (half.size, half.rank) == (2, rank < 2)
        other = group.dup().wait(timeout=TIMEOUT)
        host = group.split("host").wait(timeout=TIMEOUT)
        none = group.split(None if rank else 3).wait(timeout=TIMEOUT)
        assert (none is None) == (rank > 0)
        assert (other.rank, other.size, host.size) == (rank, 4, 4)
        if rank in (1, 3):
            pair = group.subgroup([3, 1]).wait(timeout=TIMEOUT)
            assert pair.rank == (rank == 1)
            a = np.array([rank])
            # All at once: none meets another's messages.
            requests = [each.allreduce(a.copy()) for each in (pair, half, other, group)]
            assert [int(each.wait(timeout=TIMEOUT)[0]) for each in requests] == [4, 4, 6, 6]
        else:
            requests = [each.allreduce(np.array([rank])) for each in (half, other, group)]
            assert [int(each.wait(timeout=TIMEOUT)[0]) for each in requests] == [2, 6, 6]
        half.close()
        with pytest.raises(ofipy.Closed, match="the group is closed"):
            half.barrier()

    together(team, work)


def test_different_calls_are_told(open_endpoint: Open) -> None:
    team = make_team(open_endpoint, 2)

    def work(group: ofipy.Group) -> None:
        request = group.barrier() if group.rank else group.allreduce(np.zeros(2))
        with pytest.raises(ofipy.CollectiveMismatch, match=r"call 0: rank . made .*; rank . made ") as caught:
            request.wait(timeout=TIMEOUT)
        assert "barrier" in str(caught.value)
        assert "allreduce sum of float64, 16 bytes" in str(caught.value)
        with pytest.raises(ofipy.CollectiveMismatch):
            group.barrier()

    together(team, work)


def test_different_calls_that_wait_for_each_other_are_told(open_endpoint: Open) -> None:
    """No message of one call meets the other one: the members ask each other after a second."""
    team = make_team(open_endpoint, 2)

    def work(group: ofipy.Group) -> None:
        with pytest.raises(ofipy.CollectiveMismatch, match=f"rank {1 - group.rank} made broadcast"):
            group.broadcast(np.zeros(2), root=1 - group.rank).wait(timeout=TIMEOUT)

    together(team, work)


def test_a_member_that_is_gone(open_endpoint: Open) -> None:
    """All others get its rank, those too that do not wait for it themselves, and again at their next call."""
    team = make_team(open_endpoint, 5)
    together(team, lambda group: group.barrier().wait(timeout=TIMEOUT))
    others = [group for group in team if group.rank != 3]
    requests = [group.barrier() for group in others]
    team[3].endpoint.close(linger=0)
    for group, request in zip(others, requests, strict=True):
        with pytest.raises(ofipy.GroupBroken, match="rank 3 is gone") as caught:
            request.wait(timeout=TIMEOUT)
        assert caught.value.ranks == (3,)
        with pytest.raises(ofipy.GroupBroken):
            group.barrier()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda group: group.allreduce(np.zeros(2), np.zeros(3)), ofipy.InvalidArgument, "into has 24 bytes"),
        (lambda group: group.allreduce(np.zeros((4, 4))[:, 1]), ofipy.BufferTypeError, "not one piece"),
        (lambda group: group.allreduce(bytearray(3), op="plus"), ofipy.InvalidArgument, "op='plus'"),
        (lambda group: group.allreduce(np.zeros(2), op="bxor"), ofipy.InvalidArgument, "no bxor"),
        (lambda group: group.allreduce(np.array(["a"])), ofipy.BufferTypeError, "dtype"),
        (lambda group: group.broadcast(b"abc", root=1), ofipy.BufferTypeError, "read-only"),
        (lambda group: group.broadcast(np.zeros(2), root=2), ofipy.InvalidArgument, "root"),
        (lambda group: group.gather(np.zeros(2), np.zeros(3)), ofipy.InvalidArgument, "no 2 equal blocks"),
        (lambda group: group.scatter(None, np.zeros(2)), ofipy.InvalidArgument, "a is None"),
        (
            lambda group: group.allgather(np.zeros(2), np.zeros(4), counts=[2]),
            ofipy.InvalidArgument,
            "1 counts",
        ),
        (lambda group: group.alltoall(np.zeros(2), counts=[1, -1]), ofipy.InvalidArgument, "counts"),
        (lambda group: group.subgroup([1]), ofipy.InvalidArgument, "each rank once"),
        (lambda group: group.scatter_obj([1]), ofipy.InvalidArgument, "1 objects"),
        (lambda group: group.split(-1), ofipy.InvalidArgument, "color"),
    ],
)
def test_bad_arguments_start_nothing(
    open_endpoint: Open, call: Callable[[ofipy.Group], Any], error: type[Exception], text: str
) -> None:
    team = make_team(open_endpoint, 2)
    with pytest.raises(error, match=text):
        call(team[0])
    together(team, lambda group: group.barrier().wait(timeout=TIMEOUT))


def test_dropped_requests_end_by_themselves(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        for _ in range(10):
            group.allreduce(np.zeros(1000))
        group.barrier().wait(timeout=TIMEOUT)

    together(team, work)


def test_objects(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        rank, size = group.rank, group.size
        mine = {"rank": rank, "array": np.full(rank * 1000, rank)}
        got = group.broadcast_obj(mine if rank == 1 else None, root=1).wait(timeout=TIMEOUT)
        assert got["rank"] == 1
        assert (got["array"] == 1).all()
        everything = group.allgather_obj(mine).wait(timeout=TIMEOUT)
        assert [len(each["array"]) for each in everything] == [0, 1000, 2000, 3000]
        gathered = group.gather_obj(rank * "x", root=2).wait(timeout=TIMEOUT)
        assert gathered == (["", "x", "xx", "xxx"] if rank == 2 else None)
        given = group.scatter_obj(list("abcd") if rank == 3 else None, root=3).wait(timeout=TIMEOUT)
        assert given == "abcd"[rank]
        swapped = group.alltoall_obj([(rank, other) for other in range(size)]).wait(timeout=TIMEOUT)
        assert swapped == [(other, rank) for other in range(size)]
        assert group.allreduce_obj([rank]).wait(timeout=TIMEOUT) == [0, 1, 2, 3]
        text = group.reduce_obj(str(rank), op=lambda a, b: f"({a}{b})", root=1).wait(timeout=TIMEOUT)
        assert text == ("(((01)2)3)" if rank == 1 else None)
        assert group.scan_obj([rank]).wait(timeout=TIMEOUT) == list(range(rank + 1))
        assert group.exscan_obj([rank]).wait(timeout=TIMEOUT) == (list(range(rank)) if rank else None)

    together(team, work)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_programs_over_split_groups(open_endpoint: Open, data: st.DataObject) -> None:
    """Any sequence of kinds, sizes and roots, at the same time in the group and in those that it was split into."""
    size = data.draw(st.integers(1, 7), label="size")
    colors = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size), label="colors")
    steps = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(["allreduce", "broadcast", "allgather", "reduce_scatter", "scan"]),
                st.booleans(),
                st.sampled_from([1, 7, 1024, 1500, 9000, 70_000]),
                st.integers(0, 6),
            ),
            min_size=1,
            max_size=5,
        ),
        label="steps",
    )
    team = make_team(open_endpoint, size)

    def work(group: ofipy.Group) -> None:
        part = group.split(colors[group.rank]).wait(timeout=TIMEOUT)
        members = [rank for rank in range(size) if colors[rank] == colors[group.rank]]
        running = []
        for kind, in_part, length, root in steps:
            where, ranks = (part, members) if in_part else (group, list(range(size)))
            running.append(start_step(where, ranks, kind, length, root % where.size))
        for request, result, expected in running:
            request.wait(timeout=TIMEOUT)
            np.testing.assert_array_equal(result, expected)

    together(team, work)


def start_step(
    group: ofipy.Group, ranks: list[int], kind: str, length: int, root: int
) -> tuple[ofipy.CollectiveRequest[Any], np.ndarray, np.ndarray]:
    """The request, the array of its result, and what it has to be; `ranks` are the members'."""
    whole = np.array([np.arange(length) * (rank + 1) for rank in ranks])
    a = whole[group.rank].copy()
    if kind == "broadcast":
        return group.broadcast(a, root=root), a, whole[root]
    if kind == "scan":
        return group.scan(a), a, whole[: group.rank + 1].sum(0)
    if kind == "allgather":
        into = np.empty_like(whole)
        return group.allgather(a, into), into, whole
    if kind == "reduce_scatter":
        blocks = np.tile(a, group.size)
        return group.reduce_scatter(blocks, a), a, whole.sum(0)
    into = np.empty_like(a)
    return group.allreduce(a, into), into, whole.sum(0)


def test_a_wait_that_times_out_says_for_whom(open_endpoint: Open) -> None:
    first, second = make_team(open_endpoint, 2)
    array = np.ones(3)
    prepared = first.prepare_allreduce(array)
    first.barrier()
    ofipy.start(prepared)
    for number, request in enumerate((first.barrier(), prepared), 1):
        with pytest.raises(ofipy.TimedOut, match=f"call {3 - number} of the group waits for rank 1"):
            request.wait(timeout=0.001)
    second.barrier()
    second.allreduce(array).wait(timeout=TIMEOUT)
    second.barrier().wait(timeout=TIMEOUT)
    prepared.wait(timeout=TIMEOUT)
