# SPDX-License-Identifier: BSD-3-Clause
"""Atomic operations on the memory of the other side, held against numpy."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import adder
import numpy as np
import pytest
from remote import BOTH, TIMEOUT, forge, hear, lent, refused, tell
from sides import Side, Sides, Target

import ofipy
from ofipy import AtomicOp, Completed, Datatype

pytestmark = [pytest.mark.needs("atomic"), pytest.mark.connected]

STRESS = os.environ.get("OFIPY_STRESS") == "1"
KINDS = ("base", "fetch", "compare")
OpenEndpoint = Callable[..., ofipy.Endpoint]


def expected(op: AtomicOp, target: np.ndarray, value: np.ndarray, compare: np.ndarray) -> np.ndarray:
    """What the target holds afterwards."""
    old, new, other = target, value, compare
    functions: dict[AtomicOp, Callable[[], np.ndarray]] = {
        AtomicOp.MIN: lambda: np.minimum(old, new),
        AtomicOp.MAX: lambda: np.maximum(old, new),
        AtomicOp.SUM: lambda: old + new,
        AtomicOp.DIFF: lambda: old - new,
        AtomicOp.PROD: lambda: old * new,
        AtomicOp.LOR: lambda: (old != 0) | (new != 0),
        AtomicOp.LAND: lambda: (old != 0) & (new != 0),
        AtomicOp.LXOR: lambda: (old != 0) ^ (new != 0),
        AtomicOp.BOR: lambda: old | new,
        AtomicOp.BAND: lambda: old & new,
        AtomicOp.BXOR: lambda: old ^ new,
        AtomicOp.READ: lambda: old,
        AtomicOp.WRITE: lambda: new,
        AtomicOp.CSWAP: lambda: np.where(other == old, new, old),
        AtomicOp.CSWAP_NE: lambda: np.where(other != old, new, old),
        AtomicOp.CSWAP_LE: lambda: np.where(other <= old, new, old),
        AtomicOp.CSWAP_LT: lambda: np.where(other < old, new, old),
        AtomicOp.CSWAP_GE: lambda: np.where(other >= old, new, old),
        AtomicOp.CSWAP_GT: lambda: np.where(other > old, new, old),
        AtomicOp.MSWAP: lambda: (new & other) | (old & ~other),
    }
    with np.errstate(over="ignore", invalid="ignore"):
        return functions[op]().astype(target.dtype)


def samples(dtype: np.dtype, count: int, seed: int) -> np.ndarray:
    """Values of a type, its edges among them; of floats whole numbers, so that every order of rounding agrees."""
    random = np.random.default_rng(seed)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = random.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        edges = np.array([0, 1, info.max, info.min], dtype)
        return np.where(random.random(count) < 0.4, random.choice(edges, count), values)
    values = random.integers(-9, 10, count).astype(dtype)
    if dtype.kind == "c":
        values += 1j * random.integers(-9, 10, count).astype(dtype)
    return values


def start(
    ep: ofipy.Endpoint, peer: int, remote: Any, kind: str, op: AtomicOp, operands: Any
) -> ofipy.Request:
    value, compare = operands
    if kind == "base":
        return ep.atomic(value, peer, remote, op=op, complete="delivery")
    if kind == "fetch":
        return ep.fetch_atomic(value, peer, remote, op=op)
    return ep.compare_atomic(value, compare, peer, remote, op=op)


def use_every_operation(side: Side, count: int, memory: str) -> int:
    ep, remote = side.ep, hear(side)
    tried = 0
    for datatype in Datatype:
        size = datatype.dtype.itemsize * count
        for kind in KINDS:
            for op in AtomicOp:
                if not ep.domain.atomic_valid(op, datatype, kind=kind):
                    continue
                tried += 1
                old, value, compare = (
                    samples(datatype.dtype, count, seed) for seed in (tried, -tried % 999, 7)
                )
                compare = np.where(np.arange(count) % 3 == 0, old, compare)
                ep.write(old, side.peer, remote[:size], complete="delivery").wait(timeout=TIMEOUT)
                request = start(ep, side.peer, remote[:size], kind, op, (value, compare))
                got = request.wait(timeout=TIMEOUT)
                if kind == "base":
                    assert got is request
                else:
                    assert got.dtype == old.dtype
                    assert np.array_equal(got, old), (datatype, kind, op)
                after = np.empty_like(old)
                ep.read(after, side.peer, remote[:size]).wait(timeout=TIMEOUT)
                assert np.array_equal(after, expected(op, old, value, compare)), (datatype, kind, op)
    whole = bytearray(len(remote))
    ep.read(whole, side.peer, remote).wait(timeout=TIMEOUT)
    assert not any(whole[16 * count :])
    side.sync()
    return tried


def lend(side: Side, count: int, memory: str) -> None:
    region, _memory = lent(side.ep, 16 * count + 64, memory)
    tell(side, region)
    side.sync()


@pytest.mark.parametrize(
    ("count", "memory"), [(1, "plain"), (100, "plain"), (100, "mapped"), (7, "unaligned")]
)
def test_every_operation(sides: Sides, count: int, memory: str) -> None:
    tried, _ = sides.run(use_every_operation, lend, count, memory, progress="auto", timeout=120)
    assert tried > 100


def test_what_there_is(ep: ofipy.Endpoint) -> None:
    """What every provider with atomics has; the limit is its own."""
    domain, limit = ep.domain, ep.info.max_atomic_size
    for dtype in (np.int32, np.uint64, np.float64):
        for op in ("sum", "min", "write"):
            assert domain.atomic_valid(op, dtype) * np.dtype(dtype).itemsize <= limit
            assert domain.atomic_valid(op, dtype, kind="fetch") > 0
        assert domain.atomic_valid("cswap", dtype, kind="compare") > 0
    assert domain.atomic_valid("bor", np.float32) == 0
    assert domain.atomic_valid("read", np.int8) == 0
    assert domain.atomic_valid("cswap", np.int8, kind="fetch") == 0


def test_scalars_and_arrays(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = np.arange(8, dtype=np.int64)
    remote = ep.register(memory, access=BOTH).remote
    old = ep.fetch_atomic(np.int64(10), me, remote[16:24], op="sum").wait(timeout=TIMEOUT)
    assert isinstance(old, np.int64)
    assert (old, memory[2]) == (2, 12)
    into = np.zeros((2, 2), np.int64)
    got = ep.fetch_atomic(np.ones((2, 2), np.int64), me, remote[:32], op=AtomicOp.MAX, into=into)
    assert got.wait(timeout=TIMEOUT) is into
    assert np.array_equal(into, [[0, 1], [12, 3]])
    assert got.wait() is into
    assert np.array_equal(memory[:4], [1, 1, 12, 3])
    old = ep.compare_atomic(np.int64(5), np.int64(12), me, remote[16:24]).wait(timeout=TIMEOUT)
    assert (old, memory[2]) == (12, 5)
    old = ep.compare_atomic(np.int64(6), np.int64(12), me, remote[16:24]).wait(timeout=TIMEOUT)
    assert (old, memory[2]) == (5, 5)
    # Pieces of the target in any order; a value that is not contiguous.
    spread = np.arange(8, dtype=np.int64)[::2] * 100
    ep.atomic(spread, me, [remote[56:64], remote[32:48], remote[0:8]], op="write", complete="delivery").wait(
        timeout=TIMEOUT
    )
    assert np.array_equal(memory, [600, 1, 5, 3, 200, 400, 6, 0])
    array = ep.empty(1024, np.float32, access=ofipy.Access.LOCAL | BOTH)
    region = ep.domain.region(array)
    ep.atomic(np.full(1024, 0.5, np.float32), me, region.remote, op="sum", complete="delivery").wait(
        timeout=TIMEOUT
    )
    assert (array == 0.5).all()


def test_prepared(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = ep.empty(8, np.int64, access=ofipy.Access.LOCAL | BOTH)
    memory[:] = 0
    remote = ep.domain.region(memory).remote
    value, compare, into = np.ones(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    add = ep.prepare_atomic(value, me, remote[:16], op="sum", complete="delivery")
    fetch = ep.prepare_fetch_atomic(value, me, remote[:16], op="sum", into=into)
    swap = ep.prepare_compare_atomic(value, compare, me, remote[:16], into=into)
    for _ in range(3):
        add.start()
        assert add.wait(timeout=TIMEOUT) is add
    assert list(memory[:2]) == [3, 3]
    # Each run has the operand of its time.
    value[:] = [10, 20]
    fetch.start()
    fetch.wait(timeout=TIMEOUT)
    assert (list(into), list(memory[:2])) == ([3, 3], [13, 23])
    compare[1] = 23
    swap.start()
    swap.wait(timeout=TIMEOUT)
    assert (list(into), list(memory[:2])) == ([13, 23], [13, 20])
    many = [
        ep.prepare_fetch_atomic(np.int64(1), me, remote[24:32], op="sum", into=np.zeros(1, np.int64))
        for _ in range(20)
    ]
    ofipy.start(*many)
    ofipy.wait_all(many, timeout=TIMEOUT)
    assert memory[3] == 20
    with pytest.raises(ofipy.InvalidArgument, match="into is not 2 elements"):
        ep.prepare_fetch_atomic(value, me, remote[:16], op="sum", into=np.zeros(1, np.int64))


def test_operands_that_are_not_plain(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """What the cached call does not take is taken or refused as ever."""
    memory = np.zeros(4, np.int64)
    remote = ep.register(memory, access=BOTH).remote
    one = remote[:8]
    assert ep.fetch_atomic(np.array(5), me, one, op=AtomicOp.SUM).wait(timeout=TIMEOUT) == 0
    got = ep.fetch_atomic(np.array([5]), me, one, op="SUM").wait(timeout=TIMEOUT)
    assert isinstance(got, np.ndarray)
    assert got == [5]
    swapped = np.array([5], ">i8")
    with pytest.raises(ofipy.BufferTypeError, match="byte order"):
        ep.fetch_atomic(swapped, me, one, op="sum")
    with pytest.raises(ofipy.BufferTypeError, match="bool"):
        ep.atomic(np.array([True] * 8), me, one, op="sum")
    with pytest.raises(ofipy.InvalidArgument, match="AtomicOp"):
        ep.atomic(np.int64(1), me, one, op=int(AtomicOp.SUM))  # type: ignore[arg-type]
    with pytest.raises(ofipy.InvalidArgument, match="into is not 1 elements of int64"):
        ep.fetch_atomic(np.int64(1), me, one, op="sum", into=np.zeros(1, np.uint64))  # type: ignore[arg-type]
    with pytest.raises(ofipy.InvalidArgument, match="complete="):
        ep.atomic(np.int64(1), me, one, op="sum", complete="soon")
    with pytest.raises(ofipy.UnknownPeer):
        ep.atomic(np.int64(1), 999, one, op="sum")
    assert memory[0] == 10
    # The operands are the library's while it runs, whoever drops them.
    into = np.zeros(1, np.int64)
    request = ep.fetch_atomic(np.int64(7), me, one, op="sum", into=into)
    assert request.wait(timeout=TIMEOUT) is into
    # And the peer, unless it was over within the call.
    assert repr(request).startswith("<FetchRequest fetch_atomic ")
    assert repr(request).endswith(" finished>")
    assert request.exception() is None


def test_empty_vector(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    remote = ep.register(np.ones(1), access=BOTH).remote
    got = ep.fetch_atomic(np.zeros(0), me, remote[:0], op="sum").wait(timeout=TIMEOUT)
    assert got.shape == (0,)


def test_longest_vector(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    limit = ep.info.max_atomic_size
    if limit > 1 << 26:
        return
    memory = np.ones(limit + 8, np.uint8)
    remote = ep.register(memory, access=BOTH).remote
    got = ep.fetch_atomic(np.full(limit, 2, np.uint8), me, remote[4 : limit + 4], op="sum").wait(
        timeout=TIMEOUT
    )
    assert (got == 1).all()
    assert (memory[4:-4] == 3).all()
    assert (memory[:4] == 1).all()
    assert (memory[-4:] == 1).all()
    with pytest.raises(ofipy.MessageTooLong):
        ep.atomic(np.zeros(limit + 1, np.uint8), me, remote[: limit + 1], op="sum")


def test_wrong_arguments(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = np.zeros(4, np.uint64)
    region = ep.register(memory, access=BOTH)
    remote, one = region.remote, np.uint64(1)
    with pytest.raises(ofipy.InvalidArgument, match=r"value=1; a numpy array or scalar.*dtype"):
        ep.atomic(1, me, remote[:8], op="sum")  # type: ignore[arg-type]
    with pytest.raises(ofipy.InvalidArgument, match="known are min, max, sum"):
        ep.atomic(one, me, remote[:8], op="add")
    with pytest.raises(ofipy.BufferTypeError, match="dtype"):
        ep.atomic(np.array("text"), me, remote[:8], op="sum")
    with pytest.raises(ofipy.InvalidArgument, match="8 bytes here, 32 bytes at the peer"):
        ep.atomic(one, me, remote, op="sum")
    with pytest.raises(ofipy.InvalidArgument):
        ep.atomic(np.ones(2, np.uint64), me, [remote[:4], remote[4:16]], op="sum")
    with pytest.raises(ofipy.NotSupported):
        ep.atomic(np.float64(1), me, remote[:8], op="bxor")
    with pytest.raises(ofipy.NotSupported):
        ep.fetch_atomic(one, me, remote[:8], op="cswap")
    with pytest.raises(ofipy.InvalidArgument, match="into is not 1 elements of uint64"):
        ep.fetch_atomic(one, me, remote[:8], op="sum", into=np.zeros(1, np.int64))
    with pytest.raises(ofipy.InvalidArgument, match="compare is not 1 elements"):
        ep.compare_atomic(one, np.zeros(2, np.uint64), me, remote[:8])
    with pytest.raises(ofipy.InvalidArgument):
        ep.fetch_atomic(one, me, remote[:8], op="sum", flags="inject")
    frozen = np.zeros(1, np.uint64)
    frozen.flags.writeable = False
    with pytest.raises(ofipy.BufferTypeError, match="read-only"):
        ep.fetch_atomic(one, me, remote[:8], op="sum", into=frozen)
    readable = forge(remote, access=ofipy.Access.REMOTE_READ, length=8)
    for call in (
        lambda: ep.atomic(one, me, readable, op="sum"),
        lambda: ep.fetch_atomic(one, me, readable, op="sum"),
        lambda: ep.compare_atomic(one, one, me, readable),
    ):
        with pytest.raises(ofipy.RemoteAccessError, match="grants REMOTE_READ"):
            call()
    assert ep.fetch_atomic(one, me, readable, op="read").wait(timeout=TIMEOUT) == 0
    assert not memory.any()


def rows(cq: ofipy.CompletionQueue, count: int) -> np.ndarray:
    found: list[np.ndarray] = []
    while sum(map(len, found)) < count:
        found.append(cq.wait(timeout=TIMEOUT).copy())
    return np.concatenate(found)


def test_raw(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory, local = np.array([5, 6], np.int32), np.array([3, 4, 0, 0, 5, 9], np.int32)
    remote, region = ep.register(memory, access=BOTH).remote, ep.register(local)
    options: dict[str, Any] = {"dtype": np.int32, "length": 8}
    ep.post_atomic(region, me, remote, op="sum", context=1, complete="delivery", **options)
    row = rows(ep.cq, 1)[0]
    assert (row["context"], row["error"], row["length"]) == (1, 0, 8)
    assert int(row["flags"]) & Completed.ATOMIC
    assert list(memory) == [8, 10]
    ep.post_fetch_atomic(region, me, remote, op="diff", result=region[8:16], context=2, **options)
    assert rows(ep.cq, 1)["context"] == [2]
    assert list(local[2:4]) == [8, 10]
    assert list(memory) == [5, 6]
    ep.post_compare_atomic(
        region, me, remote, compare=region[16:24], result=region[8:16], context=3, **options
    )
    assert rows(ep.cq, 1)["context"] == [3]
    assert list(local[2:4]) == [5, 6]
    assert list(memory) == [3, 6]
    with pytest.raises(ofipy.InvalidArgument):
        ep.post_fetch_atomic(region, me, remote, op="sum", result=region[20:24], **options)
    ep.post_atomic(region, me, remote[:4], op="write", dtype="i4", length=4, flags="inject", context=4)
    wrong = forge(remote, key=remote.key ^ 1)
    ep.post_atomic(region, me, wrong, op="sum", context=5, **options)
    row = rows(ep.cq, 1)[0]
    assert row["context"] == 5
    assert isinstance(ep.cq.exception(row), ofipy.RemoteAccessError)


def lie(side: Side) -> None:
    ep, peer, value = side.ep, side.peer, np.full(4, 7, np.uint64)
    readable, writable = hear(side), hear(side)
    for remote in (
        forge(readable, access=BOTH),
        forge(writable, access=BOTH, key=writable.key ^ 1),
        forge(writable, access=BOTH, offset=writable.offset + 8),
    ):
        refused(ep.atomic(value, peer, remote, op="sum", complete="delivery"))
        for wait in (
            ep.fetch_atomic(value, peer, remote, op="sum"),
            ep.compare_atomic(value, np.zeros(4, np.uint64), peer, remote),
        ):
            refused(wait)
    # Without the right to read nothing comes back.
    refused(ep.fetch_atomic(value, peer, forge(writable, access=BOTH), op="write"))
    side.sync()


def be_lied_to(side: Side) -> None:
    memory = np.zeros((2, 4), np.uint64)
    for row, access in zip(memory, ("remote_read", "remote_write"), strict=True):
        tell(side, side.ep.register(row, access=access))
    side.sync()
    assert not memory.any()


def test_a_peer_that_lies(sides: Sides) -> None:
    sides.run(lie, be_lied_to, progress="auto")


def touch(side: Side) -> None:
    remote, one = hear(side), np.uint64(1)
    side.ep.atomic(one, side.peer, remote, op="sum", complete="delivery").wait(timeout=TIMEOUT)
    side.ep.fetch_atomic(one, side.peer, remote, op="sum").wait(timeout=TIMEOUT)
    side.ep.compare_atomic(one, one, side.peer, remote).wait(timeout=TIMEOUT)
    side.sync()


def notice(side: Side) -> None:
    tell(side, side.ep.register(np.zeros(1, np.uint64), access=BOTH))
    found = rows(side.ep.cq, 3)
    reads, writes = Completed.REMOTE_READ | Completed.ATOMIC, Completed.REMOTE_WRITE | Completed.ATOMIC
    assert [int(flags) for flags in found["flags"]] == [writes, reads, reads]
    assert (found["source"] == side.peer).all()
    assert (found["length"] == 8).all()
    side.sync()


@pytest.mark.needs("rma_event")
def test_events(sides: Sides) -> None:
    sides.run(touch, notice, progress="auto", remote_events=True)


# -------------------------------------------------------------------------------------------------------- many at once


def add_in_threads(target: Target, address: bytes, blob: bytes, count: int, adders: int) -> list[np.ndarray]:
    found: list[np.ndarray] = []

    def one() -> None:
        ep = target.open()
        try:
            found.append(adder.add(ep, address, blob, count))
        finally:
            ep.fabric.close()

    threads = [threading.Thread(target=one) for _ in range(adders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return found


def add_in_processes(
    target: Target, address: bytes, blob: bytes, count: int, adders: int, folder: Path
) -> list[np.ndarray]:
    results = [str(folder / f"{number}.npy") for number in range(adders)]
    options = {
        "provider": target.provider,
        "domain": target.domain,
        "remote": target.remote,
        "address": address.hex(),
        "blob": blob.hex(),
        "count": count,
        "results": results,
    }
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, adder.__file__, json.dumps(options)]
    with subprocess.Popen(command, env=environment, start_new_session=True) as program:
        try:
            assert program.wait(300) == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    return [np.load(result) for result in results]


# A million at once take longer than one test may where libfabric carries them on a busy machine.
@pytest.mark.parametrize("part", range(10 if STRESS else 1))
@pytest.mark.parametrize("kind", ["plain", "mapped", "unaligned"])
def test_eight_add_to_one_counter(
    target: Target, open_endpoint: OpenEndpoint, tmp_path: Path, kind: str, part: int
) -> None:
    ep, adders = open_endpoint(), 8
    total = 100_000 if STRESS else 10_000
    region, _memory = lent(ep, 8, kind)
    place = (bytes(ep.address), bytes(region.remote), total // adders, adders)
    together = add_in_threads if target.in_process else partial(add_in_processes, folder=tmp_path)
    found = together(target, *place)
    me = ep.insert(ep.address)
    assert ep.fetch_atomic(np.uint64(0), me, region.remote, op="read").wait(timeout=TIMEOUT) == total
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(total, dtype=np.uint64))
