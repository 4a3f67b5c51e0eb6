# SPDX-License-Identifier: BSD-3-Clause
"""Many processes, little of everything, and death: the shared-memory provider where it hurts."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from typing import Any

import pytest

STRESS = bool(os.environ.get("OFIPY_STRESS"))
Start = Callable[..., Any]


def run_all_to_all(
    workers: Start, size: int, rounds: int, length: int, before: Any = None
) -> list[dict[str, float]]:
    group = [workers("all_to_all", rank, size, rounds, length, before=before) for rank in range(size)]
    addresses = [worker.hear() for worker in group]
    for worker in group:
        worker.tell(addresses)
    results = [worker.hear() for worker in group]
    for worker in group:
        worker.tell("end")
    assert [worker.end() for worker in group] == [0] * size
    return results


@pytest.mark.timeout(300)
@pytest.mark.parametrize("length", [8, 5_000, 100_000])
def test_64_processes_all_to_all(workers: Start, length: int) -> None:
    started = time.monotonic()
    results = run_all_to_all(workers, 64, 5 if STRESS else 2, length)
    elapsed = time.monotonic() - started
    # Nobody starves: all finished. No spinning storm: two cores cannot give more than this anyway, and waits that
    # spin would take it all.
    assert sum(result["cpu"] for result in results) < elapsed * (os.cpu_count() or 1)


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


@pytest.mark.timeout(200)
def test_all_to_all_of_32_with_few_descriptors(workers: Start) -> None:
    results = run_all_to_all(workers, 32, 2, 100_000, before=few_descriptors)
    assert max(result["descriptors"] for result in results) < 256


@pytest.mark.timeout(120)
@pytest.mark.parametrize("length", [8, 5_000, 1_000_000])
def test_receiver_killed(workers: Start, length: int) -> None:
    """Its peers' operations end with its address named; a third process goes on."""
    victim, other = workers("sink", 1), workers("sink", 1)
    addresses = [victim.hear(), other.hear()]
    import ofipy

    with ofipy.open(provider="shm") as ep:
        dead, alive = (ep.insert(ofipy.Address.from_bytes(bytes.fromhex(str(each)))) for each in addresses)
        for peer, worker in ((dead, victim), (alive, other)):
            ep.tsend(b"a", peer, tag=1).wait(timeout=10)
            assert worker.hear() == {"length": 1, "first": 97}
        unmatched = ep.tsend(bytes(1 << 20), dead, tag=2)
        directed = ep.trecv(dead, tag=9)
        victim.kill()
        killed = time.monotonic()
        with pytest.raises(ofipy.PeerLost) as caught:
            unmatched.wait(timeout=10)
        assert time.monotonic() - killed < 2
        assert "shm://" in str(caught.value)
        with pytest.raises(ofipy.PeerLost):
            directed.wait(timeout=10)
        ep.tsend(bytes([66]) * length, alive, tag=1).wait(timeout=10)
        assert other.hear() == {"length": length, "first": 66}


@pytest.mark.timeout(600)
def test_open_close_leaks_nothing(workers: Start) -> None:
    early, late = workers("open_and_close", 10_000 if STRESS else 1_500).hear()
    assert late["descriptors"] == early["descriptors"]
    assert late["memory"] - early["memory"] < 4 << 20


@pytest.mark.timeout(60)
def test_idle_wait_takes_no_processor_time(workers: Start) -> None:
    assert workers("idle", 3.0).hear() < 0.03


@pytest.mark.timeout(300)
def test_many_threads_on_one_endpoint(workers: Start) -> None:
    threads, rounds = 40, 100 if STRESS else 15
    group = [workers("many_threads", rank, threads, rounds) for rank in range(2)]
    told = [worker.hear() for worker in group]
    for worker, other in zip(group, reversed(told), strict=True):
        worker.tell(other)
    assert [worker.hear() for worker in group] == ["finished"] * 2
    for worker in group:
        worker.tell("look")
    expected = {"count": threads * rounds, "pending": 0, "posted": 0}
    assert [worker.hear() for worker in group] == [expected] * 2
    for worker in group:
        worker.tell("end")
    assert [worker.end() for worker in group] == [0, 0]


@pytest.mark.timeout(300)
def test_threads_that_post_and_threads_that_read(workers: Start) -> None:
    assert workers("one_queue", 8, 4, 20_000 if STRESS else 500).hear() is True
