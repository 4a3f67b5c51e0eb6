# SPDX-License-Identifier: BSD-3-Clause
"""Many messages into one buffer, two buffers in turn."""

from time import perf_counter_ns

from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session

MOST = 1 << 20


def receive(session: Session, count: int) -> None:
    """Take `count` messages."""
    room = max(min(session.size * 64, 2 * MOST), session.size)
    buffers = [session.buffer(room) for _ in range(2)]
    receives = [session.endpoint.recv_many(buffer) for buffer in buffers]
    session.sync()
    turn, taken = 0, 0
    while taken < count:
        view = receives[turn].next(timeout=session.limit)
        if view is None:
            receives[turn] = session.endpoint.recv_many(buffers[turn])
            turn = 1 - turn
            continue
        session.expect(view.length == session.size, f"{view.length} bytes where {session.size} were sent")
        if session.options.verify:
            check(buffers[turn][view.offset : view.offset + view.length])
        taken += 1
        del view
    for each in receives:
        each.cancel()


def run(session: Session) -> None:
    """The client sends, the server receives."""
    count = session.options.count(session.size)
    outgoing = pattern(session.size).copy()
    begin = perf_counter_ns()
    if session.client:
        session.sync()
        for _ in range(count):
            session.send(outgoing)
    else:
        receive(session, count)
    session.report.add(session.size, count, (perf_counter_ns() - begin) / 1e9)
    session.sync()


PROGRAM = Program(
    summary="Many messages into one buffer.",
    run=run,
    caps="msg|multi_recv",
    out_of_band="sync+address",
    post=False,
    end=False,
)
