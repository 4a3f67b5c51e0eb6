# SPDX-License-Identifier: BSD-3-Clause
"""Collectives as operation records: posted among others, started by counters, counted."""

from typing import Any

import numpy as np
import pytest
from team import TIMEOUT, Open, make_team, together

import ofipy

pytestmark = pytest.mark.needs("tagged", "core_matching")

Records = np.ndarray[Any, np.dtype[np.void]]


def make_record(group: ofipy.Group, op: ofipy.Op, source: Any = None, target: Any = None) -> Records:
    """A record of this process's memory; root 0, and sums of whole numbers."""
    records = group.endpoint.domain.operations(1)
    records["op"], records["peer"], records["endpoint"] = op, group.number, group.endpoint.id
    records["atomic_op"], records["datatype"] = ofipy.AtomicOp.SUM, ofipy.Datatype.INT64
    records["context"] = 70 + group.rank
    if source is not None:
        records["offset"], records["length"] = source.ctypes.data, source.nbytes
    if target is not None:
        records["result_offset"] = target.ctypes.data
    return records


def read_one(group: ofipy.Group) -> Any:
    (row,) = group.endpoint.cq.wait(timeout=TIMEOUT)
    return row


@pytest.fixture
def team(open_endpoint: Open) -> list[ofipy.Group]:
    return make_team(open_endpoint, 3)


def test_a_sum_among_other_operations(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        a, total = np.arange(5) + group.rank, np.zeros(5, np.int64)
        assert group.endpoint.post(make_record(group, ofipy.Op.ALLREDUCE, a, total)) == 1
        row = read_one(group)
        assert row["error"] == 0
        assert row["context"] == 70 + group.rank
        assert row["flags"] == ofipy.Completed.COLLECTIVE
        assert row["source"] == group.number
        assert total.tolist() == [3, 6, 9, 12, 15]
        # The same collective by a method elsewhere.
        b = np.full(3000, group.rank)
        if group.rank == 1:
            assert group.endpoint.post(make_record(group, ofipy.Op.BROADCAST, b)) == 1
            assert read_one(group)["error"] == 0
        else:
            group.broadcast(b).wait(timeout=TIMEOUT)

        assert (b == 0).all()

    together(team, work)


@pytest.mark.needs("trigger")
def test_counters_start_it_and_count_it(team: list[ofipy.Group]) -> None:
    def work(group: ofipy.Group) -> None:
        domain = group.endpoint.domain
        ready, summed = domain.counter(), domain.counter()
        a, total, blocks = np.array([1 + group.rank]), np.zeros(1, np.int64), np.zeros(3, np.int64)
        gather = make_record(group, ofipy.Op.ALLGATHER, total, blocks)
        assert group.endpoint.post(gather, after=(summed, 1)) == 1
        domain.defer(make_record(group, ofipy.Op.ALLREDUCE, a, total), after=(ready, 2), completes=summed)
        ready.add(1)
        assert summed.value == 0
        ready.add(1)
        rows = group.endpoint.cq.wait(min=2, timeout=TIMEOUT)
        assert not rows["error"].any()
        assert summed.value == 1
        assert total[0] == 6
        assert blocks.tolist() == [6, 6, 6]

    together(team, work)


def test_what_is_wrong_is_said(team: list[ofipy.Group]) -> None:
    group = team[0]
    a = np.zeros(2, np.int64)

    def refused(**fields: Any) -> str:
        records = make_record(group, fields.pop("op", ofipy.Op.ALLREDUCE), a, a)
        for name, value in fields.items():
            records[name] = value
        with pytest.raises(ofipy.FabricError) as caught:
            group.endpoint.post(records)
        return str(caught.value)

    assert f"the endpoint has no group of number {group.number + 1}" in refused(peer=group.number + 1)
    assert "15 bytes; whole elements of 8 bytes are meant" in refused(length=15)
    assert "root 3 is no rank of the group" in refused(op=ofipy.Op.REDUCE, tag=3)
    assert "cswap on int64 is no reduction" in refused(atomic_op=ofipy.AtomicOp.CSWAP)
    assert "flags inject do not go with it" in refused(flags=ofipy.Flag.INJECT)
    assert "a collective has no segments" in refused(segment_count=1)
    group.close()
    assert "the endpoint has no group" in refused()
