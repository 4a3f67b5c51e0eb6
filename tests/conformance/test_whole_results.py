# SPDX-License-Identifier: BSD-3-Clause
"""What programs get to see, whole, and the same over every provider.

Each program makes a few operations and collects every field of every result: of requests, of queue entries on both
sides, of statistics. What it must be stands beside it, once, so that no two providers can differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from remote import BOTH, forge

import ofipy
from ofipy import Completed, Flag
from ofipy._discovery.av import PEER_ANY, PEER_UNKNOWN

OpenEndpoint = Callable[..., ofipy.Endpoint]
TIMEOUT = 20
LONG = 100_000
DATA = 2**63 + 5
TAG = 2**62 + 7

pytestmark = pytest.mark.pairs

SEND = Completed.SEND | Completed.MSG
TSEND = Completed.SEND | Completed.TAGGED
RECV = Completed.RECV | Completed.MSG
TRECV = Completed.RECV | Completed.TAGGED
READ = Completed.READ | Completed.RMA
WRITE = Completed.WRITE | Completed.RMA
HAS_DATA = Completed.REMOTE_CQ_DATA


class Two:
    """Two endpoints that have met. Names stand for what differs between two runs: A and B for the peers."""

    def __init__(self, open_endpoint: OpenEndpoint) -> None:
        self.a, self.b = open_endpoint(), open_endpoint()
        self.to_b, self.to_a = self.a.insert(self.b.address), self.b.insert(self.a.address)
        self.a.tsend(b"", self.to_b, tag=1).wait(timeout=TIMEOUT)
        self.b.trecv_into(bytearray(1), tag=1).wait(timeout=TIMEOUT)

    def name(self, ep: ofipy.Endpoint, peer: Any) -> str | None:
        """What stands for a peer of one of both."""
        if peer is None or peer == PEER_UNKNOWN:
            return None
        return {self.a: {self.to_b: "B"}, self.b: {self.to_a: "A"}}[ep].get(peer, f"peer {peer}")

    def result(self, request: ofipy.Request, ep: ofipy.Endpoint) -> "Result":
        """Of a request, every field."""
        try:
            got = request.wait(timeout=TIMEOUT)
        except ofipy.TimedOut:
            raise
        except ofipy.FabricError as error:
            return Result(error=type(error).__name__, length=getattr(error, "length", None) or 0)
        data = got.remote_data
        return Result(got.length, got.tag, self.name(ep, got.source), data)

    def rows(self, ep: ofipy.Endpoint, count: int = 1) -> "list[Row]":
        """So many entries of the queue, and no more of them."""
        rows: list[Row] = []
        while len(rows) < count:
            for row in ep.cq.wait(timeout=TIMEOUT):
                error = ep.cq.exception(row)
                rows.append(
                    Row(
                        int(row["context"]),
                        Completed(int(row["flags"])),
                        int(row["length"]),
                        int(row["tag"]),
                        self.name(ep, int(row["source"])),
                        int(row["data"]),
                        int(row["buffer_offset"]),
                        type(error).__name__ if error else None,
                    )
                )
        assert len(ep.cq.read()) == 0
        return sorted(rows, key=lambda row: row.context)


@dataclass(frozen=True)
class Result:
    """What a request says."""

    length: int = 0
    tag: int = 0
    source: str | None = None
    data: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Row:
    """An entry of a queue."""

    context: int
    flags: Completed
    length: int = 0
    tag: int = 0
    source: str | None = None
    data: int = 0
    offset: int = 0
    error: str | None = None


Program = Callable[[Two], Iterator[Any]]
PROGRAMS: list[Any] = []


def program(*needs: str, gives: list[Any]) -> Callable[[Program], Program]:
    """Enter a program with what it must see."""

    def enter(function: Program) -> Program:
        marks = [pytest.mark.needs(*needs)] if needs else []
        PROGRAMS.append(pytest.param(function, gives, id=function.__name__.replace("_", "-"), marks=marks))
        return function

    return enter


# ----------------------------------------------------------------------------------------------------- messages

DONE = Result()


@program(gives=[DONE, Result(5, TAG, "A", DATA), DONE, Result(5, TAG, "A"), DONE, Result(0, TAG, "A")])
def expected_messages(two: Two) -> Iterator[Any]:
    for payload, data in ((b"hello", DATA), (b"hello", None), (b"", None)):
        receive = two.b.trecv_into(bytearray(8), tag=TAG)
        yield two.result(two.a.tsend(payload, two.to_b, tag=TAG, remote_data=data), two.a)
        yield two.result(receive, two.b)


@program(gives=[DONE, Result(5, TAG, "A", DATA), DONE, Result(LONG, TAG, "A", 0)])
def unexpected_messages(two: Two) -> Iterator[Any]:
    for payload, data in ((b"hello", DATA), (bytes(LONG), 0)):
        send = two.a.tsend(payload, two.to_b, tag=TAG, remote_data=data)
        receive = two.b.trecv_into(bytearray(LONG), tag=0, ignore=2**64 - 1)
        yield two.result(send, two.a)
        yield two.result(receive, two.b)


@program(
    "core_matching",
    gives=[Result(5, TAG, "A", DATA), Result(LONG, TAG, "A"), Result(5, 0, "A")],
)
def messages_of_unknown_size(two: Two) -> Iterator[Any]:
    early = two.b.trecv(tag=TAG)
    two.a.tsend(b"hello", two.to_b, tag=TAG, remote_data=DATA)
    yield two.result(early, two.b)
    two.a.tsend(bytes(LONG), two.to_b, tag=TAG)
    yield two.result(two.b.trecv(tag=TAG), two.b)
    two.a.send(b"hello", two.to_b)
    yield two.result(two.b.recv(), two.b)


@program(gives=[DONE, Result(6, 0, "A", 1), DONE, Result(LONG, 0, "A")])
def untagged_messages(two: Two) -> Iterator[Any]:
    for payload, data in ((b"plain!", 1), (bytes(LONG), None)):
        receive = two.b.recv_into(bytearray(LONG))
        yield two.result(two.a.send(payload, two.to_b, remote_data=data), two.a)
        yield two.result(receive, two.b)


@program(gives=[DONE] * 8)
def sends_of_every_level(two: Two) -> Iterator[Any]:
    for level in (None, "transmit", "delivery", "match"):
        for size in (8, LONG):
            receive = two.b.trecv_into(bytearray(LONG), tag=TAG)
            yield two.result(two.a.tsend(bytes(size), two.to_b, tag=TAG, complete=level), two.a)
            receive.wait(timeout=TIMEOUT)


@program(
    gives=[
        Result(error="Truncated", length=9),
        Result(error="Truncated", length=9),
        Result(error="Truncated", length=LONG),
        Result(error="Canceled"),
    ]
)
def receives_that_fail(two: Two) -> Iterator[Any]:
    early = two.b.trecv_into(bytearray(4), tag=TAG)
    two.a.tsend(b"much more", two.to_b, tag=TAG).wait(timeout=TIMEOUT)
    yield two.result(early, two.b)
    for payload in (b"much more", bytes(LONG)):
        send = two.a.tsend(payload, two.to_b, tag=TAG)
        yield two.result(two.b.trecv_into(bytearray(4), tag=TAG), two.b)
        send.wait(timeout=TIMEOUT)
    never = two.b.trecv_into(bytearray(4), tag=TAG)
    never.cancel()
    yield two.result(never, two.b)


@program(
    gives=[
        [Row(1, TSEND, 8, TAG, "B"), Row(2, SEND, 8, 0, "B")],
        [
            Row(3, TRECV | HAS_DATA, 8, TAG, "A", DATA),
            Row(4, RECV, 8, 0, "A"),
            Row(5, TRECV, 16, 9, "A", error="Truncated"),
        ],
        [Row(6, TRECV, 0, 3, None, error="Canceled")],
    ]
)
def raw_messages(two: Two) -> Iterator[Any]:
    out, into = two.a.register(bytearray(64)), two.b.register(bytearray(64))
    two.b.post_trecv(into, tag=TAG, length=16, context=3)
    two.b.post_recv(into, offset=16, length=16, context=4)
    two.b.post_trecv(into, tag=9, offset=32, length=4, context=5)
    two.a.post_tsend(out, two.to_b, tag=TAG, length=8, remote_data=DATA, context=1)
    two.a.post_send(out, two.to_b, length=8, context=2)
    two.a.tsend(bytes(16), two.to_b, tag=9).wait(timeout=TIMEOUT)
    yield two.rows(two.a, 2)
    yield two.rows(two.b, 3)
    two.b.post_trecv(into, tag=3, context=6)
    two.b.cancel(6)
    yield two.rows(two.b)


@program(
    "core_matching",
    gives=[
        [Row(1, TRECV, 0, TAG, None, error="NoMessage")],
        [Row(2, TRECV | HAS_DATA, 5, TAG, "A", DATA)],
        [Row(3, TRECV | HAS_DATA | Completed.CLAIM, 5, TAG, "A", DATA)],
        [Row(3, TRECV | HAS_DATA, 5, TAG, "A", DATA)],
        [Row(4, TRECV, 5, TAG, "A")],
        0,
    ],
)
def looking_and_claiming(two: Two) -> Iterator[Any]:
    def ask(context: int, flags: Flag, room: int = 0) -> list[Row]:
        record = two.b.domain.operations(1)
        record["op"], record["peer"], record["tag"] = ofipy.Op.TRECV, PEER_ANY, TAG
        record["context"], record["flags"] = context, int(flags)
        region = two.b.register(bytearray(16))
        record["region"], record["length"] = region.id, room
        assert two.b.post(record) == 1
        return two.rows(two.b)

    yield ask(1, Flag.PEEK)
    two.a.tsend(b"first", two.to_b, tag=TAG, remote_data=DATA).wait(timeout=TIMEOUT)
    two.a.tsend(b"other", two.to_b, tag=TAG).wait(timeout=TIMEOUT)
    while two.b.stats().unexpected_messages != 2:
        two.b.domain.progress()
    yield ask(2, Flag.PEEK)
    yield ask(3, Flag.PEEK | Flag.CLAIM)
    yield ask(3, Flag.CLAIM, 16)
    yield ask(4, Flag.PEEK | Flag.DISCARD)
    yield two.b.stats().unexpected_messages


@program(
    "multi_recv",
    gives=[
        [
            Row(1, TRECV, 30, TAG, "A"),
            Row(1, TRECV | HAS_DATA, 20, TAG, "A", DATA, 30),
            Row(1, TRECV | Completed.MULTI_RECV, 100, TAG, "A", 0, 50),
        ]
    ],
)
def a_buffer_for_many(two: Two) -> Iterator[Any]:
    two.b.post_trecv(two.b.register(bytearray(200)), tag=TAG, context=1, flags="multi_recv")
    for size, data in ((30, None), (20, DATA), (100, None)):
        two.a.tsend(bytes(size), two.to_b, tag=TAG, remote_data=data).wait(timeout=TIMEOUT)
    yield two.rows(two.b, 3)


# ------------------------------------------------------------------------------------------------- remote memory


@program("rma", gives=[DONE] * 7 + [Result(error="RemoteAccessError")] * 2)
def reads_and_writes(two: Two) -> Iterator[Any]:
    region = two.b.register(np.zeros(LONG, np.uint8), access=BOTH)
    for size in (8, LONG):
        yield two.result(two.a.write(bytes(size), two.to_b, region.remote[:size]), two.a)
        yield two.result(two.a.write(bytes(size), two.to_b, region.remote[:size], complete="delivery"), two.a)
        yield two.result(two.a.read(bytearray(size), two.to_b, region.remote[:size]), two.a)
    pieces = [bytearray(4), bytearray(4)]
    yield two.result(two.a.read(pieces, two.to_b, region.remote[:8]), two.a)
    wrong = forge(region.remote, key=region.key ^ 1)
    yield two.result(two.a.read(bytearray(8), two.to_b, wrong[:8]), two.a)
    yield two.result(two.a.write(bytes(8), two.to_b, wrong[:8], complete="delivery"), two.a)


@program(
    "rma",
    gives=[
        [Row(1, WRITE, 8, 0, "B"), Row(2, READ, 8, 0, "B"), Row(3, WRITE, 8, 0, "B")],
        [Row(0, Completed.REMOTE_WRITE | Completed.RMA | HAS_DATA, 8, 0, "A", DATA)],
    ],
)
def raw_remote_operations(two: Two) -> Iterator[Any]:
    region, mine = two.b.register(bytearray(8), access=BOTH), two.a.register(bytearray(8))
    two.a.post_write(mine, two.to_b, region.remote, context=1)
    two.a.post_read(mine, two.to_b, region.remote, context=2)
    two.a.post_write(mine, two.to_b, region.remote, remote_data=DATA, context=3)
    yield two.rows(two.a, 3)
    yield two.rows(two.b)


@program("atomic", gives=[DONE, 7, 8, [Row(1, Completed.ATOMIC | Completed.WRITE, 8, 0, "B")]])
def atomics(two: Two) -> Iterator[Any]:
    region = two.b.register(np.array([7], np.uint64), access=BOTH)
    one = np.uint64(1)
    yield two.result(
        two.a.atomic(np.uint64(0), two.to_b, region.remote, op="sum", complete="delivery"), two.a
    )
    for _ in range(2):
        yield int(two.a.fetch_atomic(one, two.to_b, region.remote, op="sum").wait(timeout=TIMEOUT))
    mine = two.a.register(np.array([1], np.uint64))
    two.a.post_atomic(
        mine, two.to_b, region.remote, op="sum", dtype=np.uint64, context=1, complete="delivery"
    )
    yield two.rows(two.a)


# ---------------------------------------------------------------------------------------------------- statistics


@program(gives=[(3, 108 + LONG), (3, 108 + LONG), (0, 0)])
def counted_operations(two: Two) -> Iterator[Any]:
    before = [(ep.stats(), ep) for ep in (two.a, two.b)]
    receives = [two.b.trecv_into(bytearray(LONG), tag=tag) for tag in range(3)]
    sends = [two.a.tsend(bytes(size), two.to_b, tag=tag) for tag, size in enumerate((8, 100, LONG))]
    ofipy.wait_all([*receives, *sends], timeout=TIMEOUT)
    sender, receiver = two.a.stats(), two.b.stats()
    yield sender.sends - before[0][0].sends, sender.bytes_sent - before[0][0].bytes_sent
    yield receiver.receives - before[1][0].receives, receiver.bytes_received - before[1][0].bytes_received
    yield sender.errors, receiver.errors


@pytest.mark.parametrize(("run", "gives"), PROGRAMS)
def test_what_a_program_sees(open_endpoint: OpenEndpoint, run: Program, gives: list[Any]) -> None:
    assert list(run(Two(open_endpoint))) == gives
