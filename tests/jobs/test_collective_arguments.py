# SPDX-License-Identifier: BSD-3-Clause
"""Every spelling of a collective's arguments, those that C knows and those that the general functions take."""

from collections.abc import Iterator

import numpy as np
import pytest

import ofipy
from ofipy import AtomicOp, Group


@pytest.fixture
def group() -> Iterator[Group]:
    """A group of this process alone."""
    with ofipy.job() as job, job.group() as alone:
        yield alone


def test_spellings_of_an_allreduce_give_the_same(group: Group) -> None:
    given, into = np.array([3.0]), np.zeros(1)
    spellings = [
        lambda: group.allreduce(given, into),
        lambda: group.allreduce(given, into=into),
        lambda: group.allreduce(a=given, into=into),
        lambda: group.allreduce(given, into, op="sum"),
        lambda: group.allreduce(given, into, op=AtomicOp.SUM),
        lambda: group.allreduce(given, into, dtype=None),
    ]
    for spelling in spellings:
        into[:] = 0
        assert spelling().wait() is into
        assert into[0] == 3


def test_spellings_of_a_root_give_the_same(group: Group) -> None:
    given, into = np.array([3.0]), np.zeros(1)
    for root in (0, np.int64(0), False):
        into[:] = 0
        assert group.reduce(given, into, root=root).wait() is into
        assert into[0] == 3
        assert group.gather(given, into, root=root).wait() is into
        assert group.scatter(given, into, root=root).wait() is into
        assert group.broadcast(given, root=root).wait() is given


@pytest.mark.parametrize("root", [-1, 1, 2**32, 2**70])
def test_a_root_outside_the_group_is_refused(group: Group, root: int) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="root"):
        group.broadcast(np.zeros(1), root=root)


@pytest.mark.parametrize("op", ["no such", AtomicOp.WRITE, "atomic_write", [], None])
def test_what_is_no_reduction_is_refused(group: Group, op: object) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="op="):
        group.allreduce(np.zeros(1), op=op)  # type: ignore[arg-type]


def test_wrong_arguments_are_a_type_error(group: Group) -> None:
    one = np.zeros(1)
    calls = [
        lambda: group.barrier(one),  # type: ignore[call-arg]
        lambda: group.broadcast(),  # type: ignore[call-arg]
        lambda: group.allreduce(one, one, one),  # type: ignore[call-arg]
        lambda: group.allreduce(one, a=one),  # type: ignore[misc]
        lambda: group.allreduce(one, one, into=one),  # type: ignore[misc]
        lambda: group.allgather(one, root=0),  # type: ignore[call-arg]
        lambda: Group.barrier(object()),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()


def test_a_reduction_without_a_buffer_is_refused(group: Group) -> None:
    with pytest.raises(ofipy.FabricError):
        group.allreduce(None)


def test_a_closed_group_refuses_collectives() -> None:
    with ofipy.job() as job:
        group = job.group()
        group.close()
        with pytest.raises(ofipy.Closed):
            group.barrier()
        with pytest.raises(ofipy.Closed):
            group.allreduce(np.zeros(1))


def test_a_group_that_nobody_holds_stays_while_its_collective_runs() -> None:
    with ofipy.job() as job, ofipy.open(provider="shm") as endpoint:
        group = job.group(endpoint)
        request = group.allreduce(np.array([2.0]))
        del group
        assert request.wait()[0] == 2
