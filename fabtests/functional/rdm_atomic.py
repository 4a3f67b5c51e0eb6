# SPDX-License-Identifier: BSD-3-Clause
"""Every atomic operation on every type that the provider has, with its result checked."""

from typing import Any

import numpy as np
import numpy.typing as npt
import rich_click as click

import ofipy
from fabtests.base.memory import Memory
from fabtests.base.program import Program
from fabtests.base.session import Session
from ofipy import AtomicOp, Datatype

KINDS = ("base", "fetch", "compare")

Numbers = npt.NDArray[Any]


def expected(op: AtomicOp, old: Numbers, new: Numbers, compare: Numbers) -> Numbers:
    """What the target holds afterwards, as numpy computes it."""
    with np.errstate(all="ignore"):
        match op:
            case AtomicOp.MIN:
                return np.minimum(old, new)
            case AtomicOp.MAX:
                return np.maximum(old, new)
            case AtomicOp.SUM:
                return old + new
            case AtomicOp.DIFF:
                return old - new
            case AtomicOp.PROD:
                return old * new
            case AtomicOp.LOR:
                return np.logical_or(old, new).astype(old.dtype)
            case AtomicOp.LAND:
                return np.logical_and(old, new).astype(old.dtype)
            case AtomicOp.LXOR:
                return np.logical_xor(old, new).astype(old.dtype)
            case AtomicOp.BOR:
                return old | new
            case AtomicOp.BAND:
                return old & new
            case AtomicOp.BXOR:
                return old ^ new
            case AtomicOp.READ:
                return old
            case AtomicOp.WRITE:
                return new
            case AtomicOp.MSWAP:
                return (new & compare) | (old & ~compare)
    tests = {
        AtomicOp.CSWAP: np.equal,
        AtomicOp.CSWAP_NE: np.not_equal,
        AtomicOp.CSWAP_LE: np.less_equal,
        AtomicOp.CSWAP_LT: np.less,
        AtomicOp.CSWAP_GE: np.greater_equal,
        AtomicOp.CSWAP_GT: np.greater,
    }
    return np.where(tests[op](compare, old), new, old)


class Target:
    """The server's memory, as the client reads and writes it."""

    def __init__(self, session: Session, memory: Memory) -> None:
        self._session = session
        self._memory = memory

    def try_one(self, kind: str, op: AtomicOp, datatype: Datatype) -> None:
        """One operation on a few numbers."""
        session, memory, dtype = self._session, self._memory, datatype.dtype
        old, new = (np.array(each).astype(dtype) for each in ([1, 2, 3, 0], [3, 1, 3, 5]))
        compare = np.array([1, 1, 3, 7]).astype(dtype)
        remote = memory.remote[: old.nbytes]
        session.wait(session.endpoint.write(old, session.peer, remote, complete="delivery"))
        fetched = np.zeros_like(old)
        request: ofipy.Request[Any]
        if kind == "base":
            request = session.endpoint.atomic(new, session.peer, remote, op=op, complete="delivery")
        elif kind == "fetch":
            request = session.endpoint.fetch_atomic(new, session.peer, remote, op=op, into=fetched)
        else:
            request = session.endpoint.compare_atomic(new, compare, session.peer, remote, op=op, into=fetched)
        session.wait(request)
        after = np.zeros_like(old)
        session.wait(session.endpoint.read(after, session.peer, remote))
        what = f"{kind} {op.name.lower()} of {datatype.name.lower()}"
        session.expect(
            np.array_equal(after, expected(op, old, new, compare)), f"{what}: {after} is in the target"
        )
        session.expect(
            kind == "base" or np.array_equal(fetched, old), f"{what}: {fetched} was fetched, not {old}"
        )


def run(session: Session) -> None:
    """The client does all of them."""
    memory = Memory(session)
    if session.client:
        target, count = Target(session, memory), 0
        wanted = session.options.extra["operation"]
        for kind in KINDS:
            for op in AtomicOp:
                if wanted not in ("all", op.name.lower()):
                    continue
                for datatype in Datatype:
                    if valid(session, kind, op, datatype):
                        for _ in range(min(session.options.count(64), 10)):
                            target.try_one(kind, op, datatype)
                        count += 1
        session.expect(count > 0, f"no type has the operation {wanted}")
        session.passed(f"{count} combinations of operation, type and kind")
    session.sync()


def valid(session: Session, kind: str, op: AtomicOp, datatype: Datatype) -> bool:
    """Whether the provider has it."""
    if kind == "base" and op is AtomicOp.READ:
        return False
    try:
        return session.domain.atomic_valid(op, datatype, kind=kind) > 0  # type: ignore[arg-type]
    except ofipy.FabricError:
        return False


PROGRAM = Program(
    summary="Every atomic operation on every type.",
    run=run,
    caps="msg|rma|atomic",
    iterations=1,
    options=(
        click.option(
            "-o", "operation", default="all", show_default=True, metavar="OP", help="One operation, or all."
        ),
    ),
)
