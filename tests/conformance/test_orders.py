# SPDX-License-Identifier: BSD-3-Clause
"""Every order that a provider declares (fi_endpoint(3), "msg_order"), with many operations in flight.

One test for each bit: where a later operation must not pass an earlier one there is a pair of them for each of many
slots, so that no other order helps. Of messages and RMA in one pair the small ones are meant, which need no answer of
the receiver to move.
"""

import time

import numpy as np
import pytest
from remote import BOTH, TIMEOUT, hear, tell
from sides import Side, Sides

import ofipy
from ofipy import AtomicOp

SLOTS = 400
SMALL = 8
# More than fits into a message, a bounce buffer, a page.
LARGE = 20_000

MESSAGES = 2
DONE = 3


def memory_kinds(bit: str) -> list[object]:
    """RMA of few bytes, RMA of many, and atomics, each where that order is declared."""
    return [
        pytest.param("write", SMALL, marks=pytest.mark.needs("rma", f"order_{bit}"), id="few-bytes"),
        pytest.param("write", LARGE, marks=pytest.mark.needs("rma", f"rma_order_{bit}"), id="many-bytes"),
        pytest.param("atomic", SMALL, marks=pytest.mark.needs("atomic", f"atomic_order_{bit}"), id="atomic"),
    ]


def change(
    side: Side, kind: str, remote: ofipy.RemoteRegion, value: int, size: int, **options: str
) -> ofipy.Request:
    """Write to memory of the other side."""
    if kind == "write":
        return side.ep.write(np.full(size, value, np.uint8), side.peer, remote, **options)
    return side.ep.atomic(np.full(1, value, np.uint64), side.peer, remote, op=AtomicOp.WRITE, **options)


def look(side: Side, kind: str, remote: ofipy.RemoteRegion, size: int) -> tuple[ofipy.Request, np.ndarray]:
    """Read memory of the other side; the bytes are there when the request has finished."""
    into = np.zeros(size, np.uint8)
    if kind == "write":
        return side.ep.read(into, side.peer, remote), into
    operand, room = np.zeros(1, np.uint64), into.view(np.uint64)
    return side.ep.fetch_atomic(operand, side.peer, remote, op=AtomicOp.READ, into=room), into


def slots_of(remote: ofipy.RemoteRegion, size: int) -> list[ofipy.RemoteRegion]:
    return [remote[number * size : (number + 1) * size] for number in range(SLOTS)]


def value_of(number: int) -> int:
    return number % 250 + 1


def holds(memory: np.ndarray, number: int, kind: str) -> bool:
    """Whether a slot holds what `change` wrote for this number."""
    if kind == "atomic":
        return bool(memory.view(np.uint64)[0] == value_of(number))
    return bool((memory == value_of(number)).all())


def lend(side: Side, size: int) -> np.ndarray:
    """Memory for all slots, which the other side hears of."""
    memory = np.zeros((SLOTS, size), np.uint8)
    tell(side, side.ep.register(memory, access=BOTH))
    return memory


# ----------------------------------------------------------------------------------------------------- RMA and atomics


def write_then_read(side: Side, kind: str, size: int) -> None:
    running, seen = [], []
    for number, slot in enumerate(slots_of(hear(side), size)):
        running.append(change(side, kind, slot, value_of(number), size))
        request, into = look(side, kind, slot, size)
        running.append(request)
        seen.append(into)
    ofipy.wait_all(running, timeout=TIMEOUT)
    assert all(holds(into, number, kind) for number, into in enumerate(seen))
    side.sync()


def read_then_write(side: Side, kind: str, size: int) -> None:
    running, seen = [], []
    for number, slot in enumerate(slots_of(hear(side), size)):
        request, into = look(side, kind, slot, size)
        running += [request, change(side, kind, slot, value_of(number), size)]
        seen.append(into)
    ofipy.wait_all(running, timeout=TIMEOUT)
    assert not np.any(seen)
    side.sync()


def serve(side: Side, kind: str, size: int) -> None:
    lend(side, size)
    side.sync()


@pytest.mark.parametrize(("kind", "size"), memory_kinds("raw"))
def test_read_after_write(sides: Sides, kind: str, size: int) -> None:
    sides.run(write_then_read, serve, kind, size, progress="auto")


@pytest.mark.parametrize(("kind", "size"), memory_kinds("war"))
def test_write_after_read(sides: Sides, kind: str, size: int) -> None:
    sides.run(read_then_write, serve, kind, size, progress="auto")


def write_twice(side: Side, kind: str, size: int) -> None:
    running = []
    for number, slot in enumerate(slots_of(hear(side), size)):
        running.append(change(side, kind, slot, 255, size))
        running.append(change(side, kind, slot, value_of(number), size, complete="delivery"))
    ofipy.wait_all(running, timeout=TIMEOUT)
    side.sync()


def find_the_later(side: Side, kind: str, size: int) -> None:
    memory = lend(side, size)
    side.sync()
    assert all(holds(memory[number], number, kind) for number in range(SLOTS))


@pytest.mark.parametrize(("kind", "size"), memory_kinds("waw"))
def test_write_after_write(sides: Sides, kind: str, size: int) -> None:
    sides.run(write_twice, find_the_later, kind, size, progress="auto")


ROUNDS = 5
READS = 50
GROWN = 249


def read_what_grows(side: Side, kind: str, size: int) -> None:
    """Values only grow while they are read, so a later read never sees less."""
    remote = hear(side)
    for _ in range(ROUNDS):
        side.sync()
        latest, told, deadline = np.zeros(size, np.int16), False, time.monotonic() + TIMEOUT
        while not (latest == GROWN).all():
            reads = [look(side, kind, remote, size) for _ in range(READS)]
            if not told:
                # It starts to grow while they are on their way.
                side.ep.tsend(b"grow", side.peer, tag=DONE).wait(timeout=TIMEOUT)
                told = True
            ofipy.wait_all([request for request, _ in reads], timeout=TIMEOUT)
            seen = np.array([latest, *(into for _, into in reads)], np.int16)
            assert (np.diff(seen, axis=0) >= 0).all()
            latest = seen[-1]
            assert time.monotonic() < deadline
        side.sync()


def grow(side: Side, kind: str, size: int) -> None:
    # One byte of each number changes, so none is seen half written.
    memory = np.zeros(size // 8, np.uint64)
    tell(side, side.ep.register(memory, access=BOTH))
    for _ in range(ROUNDS):
        memory[:] = 0
        side.sync()
        side.ep.trecv_into(bytearray(4), side.peer, tag=DONE).wait(timeout=TIMEOUT)
        for value in range(1, GROWN + 1):
            memory.view(np.uint8)[:] = value
            side.ep.domain.progress()
        side.sync()


@pytest.mark.parametrize(("kind", "size"), memory_kinds("rar"))
def test_read_after_read(sides: Sides, kind: str, size: int) -> None:
    sides.run(read_what_grows, grow, kind, size, timeout=120)


# ---------------------------------------------------------------------------------------------------- messages and RMA


def receive_into(side: Side, memory: np.ndarray) -> list[ofipy.Request]:
    """Receives of one message for each slot, into it or elsewhere, posted before any is sent."""
    receives = [
        side.ep.trecv_into(row, side.peer, tag=MESSAGES + 8 * number) for number, row in enumerate(memory)
    ]
    side.sync()
    return receives


def message(side: Side, number: int) -> ofipy.Request:
    return side.ep.tsend(np.full(SMALL, value_of(number), np.uint8), side.peer, tag=MESSAGES + 8 * number)


def send_then_read(side: Side) -> None:
    slots, running, seen = slots_of(hear(side), SMALL), [], []
    side.sync()
    for number, slot in enumerate(slots):
        running.append(message(side, number))
        request, into = look(side, "write", slot, SMALL)
        running.append(request)
        seen.append(into)
    ofipy.wait_all(running, timeout=TIMEOUT)
    assert all(holds(into, number, "write") for number, into in enumerate(seen))
    side.sync()


def receive_where_is_read(side: Side) -> None:
    ofipy.wait_all(receive_into(side, lend(side, SMALL)), timeout=TIMEOUT)
    side.sync()


@pytest.mark.needs("rma", "order_ras")
def test_read_after_send(sides: Sides) -> None:
    sides.run(send_then_read, receive_where_is_read, progress="auto")


def send_then_write(side: Side) -> None:
    slots, running = slots_of(hear(side), SMALL), []
    side.sync()
    for number, slot in enumerate(slots):
        running.append(side.ep.tsend(bytes([255]) * SMALL, side.peer, tag=MESSAGES + 8 * number))
        running.append(change(side, "write", slot, value_of(number), SMALL, complete="delivery"))
    ofipy.wait_all(running, timeout=TIMEOUT)
    side.sync()


def receive_where_is_written(side: Side) -> None:
    memory = lend(side, SMALL)
    ofipy.wait_all(receive_into(side, memory), timeout=TIMEOUT)
    side.sync()
    assert all(holds(row, number, "write") for number, row in enumerate(memory))


@pytest.mark.needs("rma", "order_was")
def test_write_after_send(sides: Sides) -> None:
    sides.run(send_then_write, receive_where_is_written, progress="auto")


def read_then_send(side: Side, size: int) -> None:
    slots, running, seen = slots_of(hear(side), size), [], []
    side.sync()
    for number, slot in enumerate(slots):
        request, into = look(side, "write", slot, size)
        running += [request, message(side, number)]
        seen.append(into)
    ofipy.wait_all(running, timeout=TIMEOUT)
    assert not np.any(seen)
    side.sync()


def write_when_told(side: Side, size: int) -> None:
    memory = lend(side, size)
    for number, receive in enumerate(receive_into(side, np.zeros((SLOTS, SMALL), np.uint8))):
        receive.wait(timeout=TIMEOUT)
        memory[number] = 255
    side.sync()


@pytest.mark.needs("rma", "order_sar")
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_send_after_read(sides: Sides, size: int) -> None:
    sides.run(read_then_send, write_when_told, size, progress="auto")


def write_then_send(side: Side, size: int) -> None:
    slots, running = slots_of(hear(side), size), []
    side.sync()
    for number, slot in enumerate(slots):
        running += [change(side, "write", slot, value_of(number), size), message(side, number)]
    ofipy.wait_all(running, timeout=TIMEOUT)
    side.sync()


def look_when_told(side: Side, size: int) -> None:
    memory = lend(side, size)
    for number, receive in enumerate(receive_into(side, np.zeros((SLOTS, SMALL), np.uint8))):
        receive.wait(timeout=TIMEOUT)
        assert holds(memory[number], number, "write")
    side.sync()


@pytest.mark.needs("rma", "order_saw")
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_send_after_write(sides: Sides, size: int) -> None:
    sides.run(write_then_send, look_when_told, size, progress="auto")


# ------------------------------------------------------------------------------------------------------------ messages


def lengths() -> list[int]:
    """Of messages that go different ways."""
    return [(8, 100_000, 0, 5000, 96, 1)[number % 6] for number in range(SLOTS)]


def send_in_order(side: Side, tagged: bool) -> None:
    side.sync()
    running = []
    for number, length in enumerate(lengths()):
        payload = np.full(length, value_of(number), np.uint8)
        send = side.ep.tsend if tagged else side.ep.send
        running.append(
            send(payload, side.peer, remote_data=number)
            if side.ep.info.cq_data_size
            else send(payload, side.peer)
        )
    ofipy.wait_all(running, timeout=TIMEOUT)
    side.sync()


def receive_in_order(side: Side, tagged: bool) -> None:
    """Half of the receives are posted before, the others as messages come."""
    rooms = [np.zeros(length, np.uint8) for length in lengths()]

    def receive(room: np.ndarray) -> ofipy.Request:
        return side.ep.trecv_into(room, side.peer) if tagged else side.ep.recv_into(room, side.peer)

    receives = [receive(room) for room in rooms[: SLOTS // 2]]
    side.sync()
    receives += [receive(room) for room in rooms[SLOTS // 2 :]]
    for number, (room, request) in enumerate(zip(rooms, receives, strict=True)):
        assert request.wait(timeout=TIMEOUT).length == len(room)
        assert holds(room, number, "write")
        assert request.remote_data in (None, number)
    side.sync()


@pytest.mark.needs("order_sas")
@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
def test_send_after_send(sides: Sides, tagged: bool) -> None:
    sides.run(send_in_order, receive_in_order, tagged)
