# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of arrays whose receivers do not know how much comes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from team import TIMEOUT, Open, make_team, together

import ofipy

pytestmark = pytest.mark.needs("groups")

LENGTHS = st.sampled_from([0, 1, 3, 1000, 9000, 200_000])


def block_of(sender: int, receiver: int, length: int, dtype: type[Any]) -> np.ndarray:
    return (np.arange(length) * 3 + sender * 5 + receiver * 7).astype(dtype)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_every_member_learns_the_counts(open_endpoint: Open, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 4), label="size")
    dtype = data.draw(st.sampled_from([np.uint8, np.int32, np.float64]), label="dtype")
    lengths = data.draw(
        st.lists(st.lists(LENGTHS, min_size=size, max_size=size), min_size=size, max_size=size)
    )
    root = data.draw(st.integers(0, size - 1), label="root")

    def work(group: ofipy.Group) -> None:
        mine = group.rank
        part = block_of(mine, 0, lengths[mine][0], dtype)
        everything = np.concatenate([block_of(each, 0, lengths[each][0], dtype) for each in range(size)])
        counts = [each[0] for each in lengths]
        gathered = group.gather(part, counts="ask", root=root)
        shared = group.allgather(part, counts="ask")
        blocks = np.concatenate([block_of(mine, each, lengths[mine][each], dtype) for each in range(size)])
        swapped = group.alltoall(blocks, counts=lengths[mine], into_counts="ask")
        if mine == root:
            check(gathered, everything, counts)
        else:
            assert gathered.wait(timeout=TIMEOUT) is None
            assert gathered.counts is None
        check(shared, everything, counts)
        come = np.concatenate([block_of(each, mine, lengths[each][mine], dtype) for each in range(size)])
        check(swapped, come, [each[mine] for each in lengths])

    together(make_team(open_endpoint, size), work)


def check(request: ofipy.CollectiveRequest[Any], expected: np.ndarray, counts: list[int]) -> None:
    array = request.wait(timeout=TIMEOUT)
    assert request.wait() is array
    assert request.counts == counts
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)
    if array.size:
        array[0] = 1  # it is the program's own memory


def test_the_array_outlives_request_and_group(open_endpoint: Open) -> None:
    team = make_team(open_endpoint, 2)

    def work(group: ofipy.Group) -> np.ndarray:
        array: np.ndarray = group.allgather(np.full(50_000, group.rank + 1.0), counts="ask").wait(
            timeout=TIMEOUT
        )
        group.barrier().wait(timeout=TIMEOUT)
        group.close()
        return array

    for array in together(team, work):
        np.testing.assert_array_equal(array, np.repeat([1.0, 2.0], 50_000))


def test_equal_blocks_of_alltoall_need_no_counts(open_endpoint: Open) -> None:
    def work(group: ofipy.Group) -> None:
        request = group.alltoall(np.array([10, 11]) + group.rank * 20, into_counts="ask")
        np.testing.assert_array_equal(request.wait(timeout=TIMEOUT), np.array([10, 30]) + group.rank)
        assert request.counts == [1, 1]

    together(make_team(open_endpoint, 2), work)


def test_blocks_of_no_whole_elements_are_told(open_endpoint: Open) -> None:
    """The result stays with the rank that can read it."""

    def work(group: ofipy.Group) -> None:
        part: Any = b"abc" if group.rank else np.zeros(1)
        request = group.allgather(part, counts="ask")
        if group.rank:
            assert request.wait(timeout=TIMEOUT).tobytes() == bytes(8) + b"abc"
            return
        with pytest.raises(ofipy.FabricError, match="rank 1 gave 3 bytes, no whole elements of float64"):
            request.wait(timeout=TIMEOUT)

    together(make_team(open_endpoint, 2), work)


def test_what_cannot_be_asked_is_refused_and_the_group_goes_on(open_endpoint: Open) -> None:
    ask: Any = "ask"

    def work(group: ofipy.Group) -> None:
        a = np.zeros(2)
        for refused in (
            lambda: group.gather(a, np.zeros(4), counts="ask"),
            lambda: group.allgather(a, counts="tell"),  # type: ignore[arg-type]
            lambda: group.alltoall(a, counts=ask, into_counts="ask"),
            lambda: group.scatter(a, a, counts=ask),
            lambda: group.reduce_scatter(a, counts=ask),
            lambda: group.prepare_allgather(a, counts=ask),
            lambda: group.gather(a, counts="ask", root=2),
        ):
            with pytest.raises(ofipy.InvalidArgument):
                refused()
        assert group.barrier().counts is None
        np.testing.assert_array_equal(group.allgather(a, counts="ask").wait(timeout=TIMEOUT), np.zeros(4))

    together(make_team(open_endpoint, 2), work)
