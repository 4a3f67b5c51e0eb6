# SPDX-License-Identifier: BSD-3-Clause
"""Counters: what counts, what they wake, how they end."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from remote import BOTH, forge, hear, refused, tell
from sides import Side, Sides

import ofipy

TIMEOUT = 20

OpenEndpoint = Callable[..., ofipy.Endpoint]


def counted_pair(side: Side) -> tuple[ofipy.Endpoint, ofipy.Peer, dict[str, ofipy.Counter]]:
    """A second endpoint of this side with counters, and the other side's as its peer."""
    domain = side.ep.domain
    counters = {"send": domain.counter(), "recv": domain.counter(events="bytes")}
    ep = domain.endpoint(counters=counters).enable()
    send = side.ep.tsend(bytes(ep.address), side.peer, tag=1)
    room = bytearray(256)
    length = side.ep.trecv_into(room, side.peer, tag=1).wait(timeout=TIMEOUT).length
    send.wait(timeout=TIMEOUT)
    return ep, ep.insert(bytes(room[:length])), counters


def count_sends(side: Side) -> None:
    ep, peer, counters = counted_pair(side)
    for _ in range(10):
        ep.tsend(bytes(8), peer, tag=2)
    large = ep.tsend(np.zeros(1 << 20, np.uint8), peer, tag=2)
    counters["send"].wait(11, timeout=TIMEOUT)
    large.wait(timeout=TIMEOUT)
    assert counters["send"].value == 11
    assert counters["recv"].value == 0
    side.sync()
    ep.close()


def count_receives(side: Side) -> None:
    ep, peer, counters = counted_pair(side)
    buffers = [*(bytearray(8) for _ in range(10)), bytearray(1 << 20)]
    requests = [ep.trecv_into(buffer, peer, tag=2) for buffer in buffers]
    counters["recv"].wait(80 + (1 << 20), timeout=TIMEOUT)
    assert counters["recv"].value == 80 + (1 << 20)
    assert counters["send"].value == 0
    assert counters["recv"].errors == 0
    for request in requests:
        request.wait(timeout=TIMEOUT)
    side.sync()
    ep.close()


def test_requests_are_counted(sides: Sides) -> None:
    sides.run(count_sends, count_receives)


def test_posts_without_queue_entries_are_counted(open_endpoint: OpenEndpoint) -> None:
    domain = open_endpoint().domain
    both = domain.counter()
    ep = open_endpoint(domain, counters={"send": both, "recv": both}, selective_completion=True)
    me = ep.insert(ep.address)
    region = ep.register(bytearray(8))
    ep.post_trecv(region, me, tag=1)
    ep.post_tsend(region, me, tag=1)
    both.wait(2, timeout=TIMEOUT)
    assert both.value == 2
    assert len(ep.cq.read()) == 0


def test_failures_end_waits(open_endpoint: OpenEndpoint) -> None:
    domain = open_endpoint().domain
    counter = domain.counter()
    ep = open_endpoint(domain, counters={"recv": counter})
    me = ep.insert(ep.address)
    receive = ep.trecv_into(bytearray(8), me, tag=1)
    assert receive.cancel()
    # It failed before the wait began, and is told once.
    with pytest.raises(ofipy.FabricError, match="error value is 1"):
        counter.wait(1, timeout=TIMEOUT)
    with pytest.raises(ofipy.TimedOut):
        counter.wait(1, timeout=0.01)
    with pytest.raises(ofipy.TimedOut, match=r"0\.01 s"):
        counter.wait(1, 0.01)
    with pytest.raises(ofipy.InvalidArgument, match=r"threshold=0\.5; a whole number is meant"):
        counter.wait(0.5)  # type: ignore[arg-type]
    assert (counter.value, counter.errors) == (0, 1)


def test_values_of_ones_own(ep: ofipy.Endpoint) -> None:
    counter = ep.domain.counter()
    counter.set(2**64 - 1)
    counter.add(3)
    counter.add_error()
    assert (counter.value, counter.errors) == (2, 1)
    counter.set_error(7)
    assert counter.errors == 7
    counter.wait(2)
    for wrong in (-1, 2**64):
        with pytest.raises(ofipy.InvalidArgument):
            counter.add(wrong)


@pytest.mark.parametrize("end", ["add", "error", "close"])
def test_another_thread_ends_a_wait(ep: ofipy.Endpoint, end: str) -> None:
    counter = ep.domain.counter()
    raised: list[BaseException | None] = []
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        try:
            counter.wait(5, timeout=TIMEOUT)
        except ofipy.FabricError as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    if end == "add":
        counter.add(5)
    elif end == "error":
        counter.add_error()
    else:
        counter.close()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    expected = {"add": type(None), "error": ofipy.FabricError, "close": (ofipy.Canceled, ofipy.Closed)}[end]
    assert isinstance(raised[0], expected)


def test_closing_a_counter_closes_its_endpoints(open_endpoint: OpenEndpoint) -> None:
    domain = open_endpoint().domain
    counter = domain.counter()
    ep = open_endpoint(domain, counters={"send": counter})
    counter.close()
    assert ep.closed
    with pytest.raises(ofipy.Closed):
        _ = counter.value


def test_wrong_counters_are_refused(open_endpoint: OpenEndpoint) -> None:
    domain = open_endpoint().domain
    with pytest.raises(ofipy.InvalidArgument, match="remote_read"):
        domain.endpoint(counters={"sends": domain.counter()})
    with pytest.raises(ofipy.InvalidArgument, match="bytes"):
        domain.counter(events="messages")  # type: ignore[arg-type]
    with pytest.raises(ofipy.InvalidArgument):
        open_endpoint().domain.endpoint(counters={"send": domain.counter()}).enable()


# -------------------------------------------------------------------------------------------------------------- regions


def use_counted_memory(side: Side, rounds: int) -> None:
    ep, peer = side.ep, side.peer
    counted, other, plain = hear(side), hear(side), hear(side)
    out, into = bytes(range(100)), bytearray(30)
    running = []
    for _ in range(rounds):
        running += [
            ep.write(out, peer, counted[:100]),
            ep.write(out[:10], peer, other[5:15]),
            ep.write(out, peer, plain[:100]),
            ep.read(into, peer, counted[:30]),
            ep.read(into, peer, other[:30]),
        ]
    ofipy.wait_all(running, timeout=TIMEOUT)
    # What is refused did not happen.
    refused(ep.write(out, peer, forge(other, offset=other.offset + 1), complete="delivery"))
    side.sync()


def count_in_memory(side: Side, rounds: int) -> None:
    ep = side.ep
    writes, written, reads = ep.domain.counter(), ep.domain.counter(events="bytes"), ep.domain.counter()
    counted = ep.empty(1000, access=BOTH, counters={"remote_write": writes})
    others = {"remote_write": written, "remote_read": reads}
    other = ep.register(bytearray(100), access=BOTH, counters=others)  # type: ignore[arg-type]
    for region in (ep.domain.region(counted), other, ep.register(bytearray(100), access=BOTH)):
        tell(side, region)
    writes.wait(rounds, timeout=TIMEOUT)
    assert bytes(counted[:100]) == bytes(range(100))
    written.wait(10 * rounds, timeout=TIMEOUT)
    assert bytes(other.array[5:15]) == bytes(range(10))
    reads.wait(rounds, timeout=TIMEOUT)
    side.sync()
    assert (writes.value, written.value, reads.value) == (rounds, 10 * rounds, rounds)
    assert (writes.errors, written.errors, reads.errors) == (0, 0, 0)


@pytest.mark.needs("rma", "rma_event")
def test_accesses_of_peers_are_counted_by_region(sides: Sides) -> None:
    sides.run(use_counted_memory, count_in_memory, 200, progress="auto")


@pytest.mark.needs("rma")
@pytest.mark.parametrize("name", ["remote_read", "remote_write"])
def test_a_counter_of_what_peers_do_counts_or_is_refused(open_endpoint: OpenEndpoint, name: str) -> None:
    domain = open_endpoint().domain
    counter = domain.counter()
    if ofipy.Cap.RMA_EVENT not in domain.info.caps:
        with pytest.raises(ofipy.NotSupported, match=name):
            open_endpoint(domain, counters={name: counter})
        return
    ep = open_endpoint(domain, counters={name: counter})
    me, region = ep.insert(ep.address), ep.register(bytearray(8), access=BOTH)
    ep.write(b"written!", me, region.remote, complete="delivery").wait(timeout=TIMEOUT)
    ep.read(bytearray(8), me, region.remote).wait(timeout=TIMEOUT)
    counter.wait(1, timeout=TIMEOUT)
    assert counter.value == 1


@pytest.mark.needs("rma", "rma_event", "atomic")
def test_atomics_are_counted_by_region(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    reads, writes = ep.domain.counter(), ep.domain.counter()
    memory = np.zeros(4, np.int64)
    counters = {"remote_read": reads, "remote_write": writes}
    region = ep.register(memory, access=BOTH, counters=counters)  # type: ignore[arg-type]
    for _ in range(3):
        ep.atomic(np.ones(4, np.int64), me, region.remote, op="sum", complete="delivery").wait(
            timeout=TIMEOUT
        )
    ep.fetch_atomic(np.ones(4, np.int64), me, region.remote, op="sum").wait(timeout=TIMEOUT)
    assert (memory == 4).all()
    assert reads.value + writes.value == 4
    assert writes.value >= 3


@pytest.mark.needs("rma", "rma_event")
def test_a_counter_that_ends_leaves_its_regions(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    me = ep.insert(ep.address)
    counter = ep.domain.counter()
    region = ep.register(bytearray(8), access=BOTH, counters={"remote_write": counter})
    array = ep.empty(8, access=BOTH, counters={"remote_write": counter})
    for number, target in enumerate((region, ep.domain.region(array))):
        ep.write(b"counted!", me, target.remote, complete="delivery").wait(timeout=TIMEOUT)
        assert counter.value == number + 1
    counter.close()
    for target in (region, ep.domain.region(array)):
        ep.write(b"and then", me, target.remote, complete="delivery").wait(timeout=TIMEOUT)
    assert bytes(region.array) == bytes(array) == b"and then"
    # Arrays may outlive everything, counters do not keep the domain.
    other = ep.domain.counter()
    last = ep.empty(8, access=BOTH, counters={"remote_write": other})
    ep.fabric.close()
    assert other.closed
    assert not last.any()


@pytest.mark.needs("rma", "rma_event")
def test_counters_that_a_region_cannot_have(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    counter = ep.domain.counter()
    for make in (
        lambda **options: ep.register(bytearray(8), **options),
        lambda **options: ep.empty(8, **options),
    ):
        with pytest.raises(ofipy.InvalidArgument, match="known are remote_read, remote_write"):
            make(access=BOTH, counters={"send": counter})
        with pytest.raises(ofipy.InvalidArgument, match="may not access"):
            make(access="remote_read", counters={"remote_write": counter})
        with pytest.raises(ofipy.InvalidArgument):
            make(access=BOTH, counters={"remote_write": open_endpoint().domain.counter()})
    counter.close()
    with pytest.raises(ofipy.Closed):
        ep.register(bytearray(8), access=BOTH, counters={"remote_write": counter})
