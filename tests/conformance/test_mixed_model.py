# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of everything between two sides: messages, tagged messages, RMA and atomics, many in flight.

Both sides get the same list of steps, and each does its part: it starts what is its own, and receives what the other
one sends. Each knows what the memory of the other one must hold, for nobody else touches that. Its lanes are
independent: an operation of one waits for the one before it in the same lane, and for no other.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from remote import BOTH, TIMEOUT, hear, tell
from sides import Side, Sides
from test_atomics import expected

import ofipy
from ofipy import AtomicOp
from ofipy._base.atomic_types import AtomicKind

LANES = 4
LANE = 10_000  # elements of 8 bytes
MESSAGES = ("send", "tsend")
REMOTE = ("write", "read", "atomic", "fetch", "compare")
ATOMIC_KINDS: dict[str, AtomicKind] = {"atomic": "base", "fetch": "fetch", "compare": "compare"}
BASE = (AtomicOp.SUM, AtomicOp.MIN, AtomicOp.BXOR, AtomicOp.LOR, AtomicOp.WRITE)
COMPARE = (AtomicOp.CSWAP, AtomicOp.CSWAP_LT, AtomicOp.MSWAP)


class Step(NamedTuple):
    """One operation; it travels to the sides as a plain tuple."""

    kind: str
    first: bool
    """Whether the first side starts it."""
    count: int
    """Elements."""
    seed: int
    lane: int
    level: str | None
    when: str
    """Of a tagged message: when its receive is posted."""
    inject: bool


def steps(kinds: tuple[str, ...]) -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        kind=st.sampled_from(kinds),
        first=st.booleans(),
        count=st.sampled_from([0, 1, 1, 8, 13, 512, 513, 2100, 9000]),
        seed=st.integers(0, 2**32 - 1),
        lane=st.integers(0, LANES - 1),
        level=st.sampled_from([None, "transmit", "delivery"]),
        when=st.sampled_from(["before", "in turn", "after"]),
        inject=st.booleans(),
    )


class Part:
    """What one side does."""

    def __init__(self, side: Side, remote: ofipy.RemoteRegion | None) -> None:
        self.side = side
        self.remote = remote
        self.model = np.zeros((LANES, LANE), np.uint64)
        self.lanes: list[tuple[ofipy.Request, np.ndarray, np.ndarray] | None] = [None] * LANES
        self.sends: list[ofipy.Request] = []
        self.receives: list[tuple[ofipy.Request, np.ndarray, np.ndarray]] = []

    def receive(self, number: int, step: Step) -> None:
        """Post the receive of a message of the other side."""
        payload, _ = operands(step)
        room = np.zeros(step.count + 1, np.uint64)
        ep, peer = self.side.ep, self.side.peer
        posted = ep.trecv_into(room, peer, tag=number) if step.kind == "tsend" else ep.recv_into(room, peer)
        self.receives.append((posted, room, payload))

    def send(self, number: int, step: Step) -> None:
        payload, _ = operands(step)
        flags = "inject" if step.inject and payload.nbytes <= self.side.ep.info.inject_size else None
        ep, peer, level = self.side.ep, self.side.peer, None if flags else step.level
        if step.kind == "tsend":
            self.sends.append(ep.tsend(payload, peer, tag=number, complete=level, flags=flags))
        else:
            self.sends.append(ep.send(payload, peer, complete=level, flags=flags))
        if flags:
            payload[:] = 0

    def reach(self, step: Step) -> None:
        """Start an operation on the other side's memory, once the one before it in its lane has finished."""
        self.settle(step.lane)
        assert self.remote is not None
        ep, peer = self.side.ep, self.side.peer
        ops = COMPARE if step.kind == "compare" else BASE
        op = ops[step.seed % len(ops)]
        if step.kind in ATOMIC_KINDS:
            longest = ep.domain.atomic_valid(op, np.uint64, kind=ATOMIC_KINDS[step.kind])
            step = step._replace(count=min(step.count, longest))
        begin = step.seed % (LANE - step.count + 1)
        place = slice(begin, begin + step.count)
        start = 8 * (step.lane * LANE + begin)
        remote = self.remote[start : start + 8 * step.count]
        value, compare = operands(step)
        old = self.model[step.lane, place].copy()
        nothing = np.zeros(0, np.uint64)
        if step.kind == "write":
            self.model[step.lane, place] = value
            self.lanes[step.lane] = ep.write(value, peer, remote, complete="delivery"), nothing, nothing
            return
        into = np.zeros(step.count, np.uint64)
        if step.kind == "read":
            self.lanes[step.lane] = ep.read(into, peer, remote), into, old
            return
        self.model[step.lane, place] = expected(op, old, value, compare)
        if step.kind == "atomic":
            request = ep.atomic(value, peer, remote, op=op, complete="delivery")
            self.lanes[step.lane] = request, nothing, nothing
        elif step.kind == "fetch":
            self.lanes[step.lane] = ep.fetch_atomic(value, peer, remote, op=op, into=into), into, old
        else:
            request = ep.compare_atomic(value, compare, peer, remote, op=op, into=into)
            self.lanes[step.lane] = request, into, old

    def settle(self, lane: int) -> None:
        running = self.lanes[lane]
        if running is not None:
            request, into, old = running
            request.wait(timeout=TIMEOUT)
            assert np.array_equal(into, old)
            self.lanes[lane] = None

    def finish(self) -> None:
        for request, room, payload in self.receives:
            assert request.wait(timeout=TIMEOUT).length == payload.nbytes
            assert np.array_equal(room[: len(payload)], payload)
            assert room[-1] == 0
        ofipy.wait_all(self.sends, timeout=TIMEOUT)
        for lane in range(LANES):
            self.settle(lane)


def operands(step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Payload, or value and compare operand; the same on both sides."""
    value, compare = np.random.default_rng(step.seed).integers(0, 4, (2, step.count), dtype=np.uint64)
    return value, compare


def swap_handles(side: Side, memory: np.ndarray) -> ofipy.RemoteRegion:
    """Lend the own memory, and get to know the other one's."""
    region = side.ep.register(memory, access=BOTH)
    if side.first:
        tell(side, region)
        return hear(side)
    remote = hear(side)
    tell(side, region)
    return remote


def play(side: Side, listed: list[tuple[Any, ...]], remote_too: bool) -> tuple[bytes, bytes]:
    """Returns what the other side's memory must hold, and what the own holds."""
    memory = np.zeros((LANES, LANE), np.uint64)
    part = Part(side, swap_handles(side, memory) if remote_too else None)
    steps_of_both = [Step(*each) for each in listed]
    incoming = [
        (number, step)
        for number, step in enumerate(steps_of_both)
        if step.kind in MESSAGES and step.first != side.first
    ]
    # Where the transport matches, a message that nobody receives may stand in the way of RMA: stock tcp's does.
    all_before = remote_too and side.ep.info.offloads_matching
    for number, step in incoming:
        if all_before or (step.kind == "tsend" and step.when == "before"):
            part.receive(number, step)
    side.sync()
    for number, step in enumerate(steps_of_both):
        if step.first == side.first:
            if step.kind in MESSAGES:
                part.send(number, step)
            else:
                part.reach(step)
        elif not all_before and (step.kind == "send" or (step.kind == "tsend" and step.when == "in turn")):
            part.receive(number, step)
    for number, step in incoming:
        if not all_before and step.kind == "tsend" and step.when == "after":
            part.receive(number, step)
    part.finish()
    side.sync()
    return part.model.tobytes(), memory.tobytes()


# A failure ends both processes, so that looking for a smaller one would take minutes.
SETTINGS = settings(
    max_examples=40,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


def hold_against_the_model(sides: Sides, kinds: tuple[str, ...]) -> None:
    sequences = st.one_of(
        st.lists(steps(kinds), max_size=8), st.lists(steps(kinds), min_size=25, max_size=50)
    )

    @SETTINGS
    @given(sequences)
    def check(sequence: list[Step]) -> None:
        listed = [tuple(step) for step in sequence]
        (first_model, first), (second_model, second) = sides.run(
            play, play, listed, kinds != MESSAGES, progress="auto"
        )
        assert first_model == second
        assert second_model == first

    check()


def test_messages(sides: Sides) -> None:
    hold_against_the_model(sides, MESSAGES)


@pytest.mark.needs("rma")
def test_messages_and_rma(sides: Sides) -> None:
    hold_against_the_model(sides, (*MESSAGES, "write", "read"))


@pytest.mark.needs("rma", "atomic")
def test_everything(sides: Sides) -> None:
    hold_against_the_model(sides, (*MESSAGES, *REMOTE))
