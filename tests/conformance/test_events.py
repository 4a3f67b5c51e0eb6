# SPDX-License-Identifier: BSD-3-Clause
"""Event queues: peers that come and go, events of one's own."""

import asyncio
import errno
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sides import Target

import ofipy

TIMEOUT = 20

OpenEndpoint = Callable[..., ofipy.Endpoint]


@pytest.mark.pairs
def test_peers_that_come_and_go(open_endpoint: OpenEndpoint) -> None:
    domain = open_endpoint().domain
    events = domain.event_queue(size=1)
    ep = open_endpoint(domain, eq=events)
    other = open_endpoint()
    peer = ep.insert(other.address)
    room = bytearray(4)
    receive = other.trecv_into(room, tag=1)
    ep.tsend(b"here", peer, tag=1).wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    up = events.wait(timeout=TIMEOUT)
    assert (up.kind, up.peer, up.endpoint) == (ofipy.EventKind.PEER_UP, peer, ep.id)
    assert up.exception is None
    other.fabric.close()
    lost = events.wait(timeout=TIMEOUT)
    assert (lost.kind, lost.peer, lost.endpoint) == (ofipy.EventKind.PEER_LOST, peer, ep.id)
    assert isinstance(lost.exception, ofipy.FabricError)


def test_events_of_ones_own(ep: ofipy.Endpoint) -> None:
    events = ep.domain.event_queue(size=2)
    first = ofipy.Event(context=2**64 - 1, data=b"said", error=errno.ECANCELED)
    second = ofipy.Event(handle=5)
    assert events.read() is None
    events.write(first)
    events.write(second)
    with pytest.raises(ofipy.Again):
        events.write(second)
    assert events.peek() == first
    assert isinstance(first.exception, ofipy.Canceled)
    assert events.read() == first
    assert events.wait() == second
    with pytest.raises(ofipy.TimedOut):
        events.wait(timeout=0.01)
    with pytest.raises(ofipy.TimedOut, match=r"0\.01 s"):
        events.wait(0.01)
    with pytest.raises(ofipy.MessageTooLong):
        events.write(ofipy.Event(data=bytes(513)))
    with pytest.raises(ofipy.InvalidArgument):
        events.write(ofipy.Event(context=2**64))


def test_the_descriptor_wakes(ep: ofipy.Endpoint) -> None:
    events = ep.domain.event_queue()
    while not events.arm():
        assert events.read() is None
    writer = threading.Thread(target=events.write, args=(ofipy.Event(context=3),))
    writer.start()
    assert select.select([events], [], [], TIMEOUT)[0]
    writer.join()
    assert not events.arm()
    event = events.read()
    assert event is not None
    assert event.context == 3


def test_closing_the_queue_closes_its_endpoints(open_endpoint: OpenEndpoint) -> None:
    domain = open_endpoint().domain
    events = domain.event_queue()
    ep = open_endpoint(domain, eq=events)
    events.close()
    assert ep.closed
    with pytest.raises(ofipy.Closed):
        events.read()


VICTIM = """
import sys
sys.path.insert(0, sys.argv[1])
from sides import Target, part_hosts
target = Target(sys.argv[2], sys.argv[3], False, remote=sys.argv[5] == "True")
part_hosts(target)
ep = target.open(progress="auto")
ep.tsend(b"hello", ep.insert(bytes.fromhex(sys.argv[4])), tag=1).wait(timeout=20)
sys.stdin.read()
"""


@pytest.fixture
def victim(target: Target) -> Iterator[Callable[[ofipy.Address], subprocess.Popen[bytes]]]:
    """Starts a process that greets an address, and then does nothing."""
    started: list[subprocess.Popen[bytes]] = []

    def start(address: ofipy.Address) -> subprocess.Popen[bytes]:
        arguments = [
            str(Path(__file__).parent),
            target.provider,
            target.domain,
            bytes(address).hex(),
            str(target.remote),
        ]
        command = [sys.executable, "-P", "-c", VICTIM, *arguments]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        with process:
            process.wait()


@pytest.mark.needs("processes", "source")
def test_a_killed_process_is_told_of(
    open_endpoint: OpenEndpoint, victim: Callable[[ofipy.Address], subprocess.Popen[bytes]]
) -> None:
    """The event is the only word of its end: nothing is on its way to the process, or expected from it."""
    domain = open_endpoint().domain
    events = domain.event_queue()
    ep = open_endpoint(domain, eq=events)
    process = victim(ep.address)
    room = bytearray(5)
    source = ep.trecv_into(room, tag=1).wait(timeout=TIMEOUT).source
    assert source is not None
    up = events.wait(timeout=TIMEOUT)
    assert (up.kind, up.peer, up.endpoint) == (ofipy.EventKind.PEER_UP, source, ep.id)
    assert events.read() is None
    process.kill()
    lost = events.wait(timeout=TIMEOUT)
    assert (lost.kind, lost.peer, lost.endpoint) == (ofipy.EventKind.PEER_LOST, source, ep.id)
    assert isinstance(lost.exception, ofipy.PeerLost)
    # Its address stays in the vector; the end is told once.
    assert ep.av.address(source)
    for _ in range(20):
        domain.progress()
    assert events.read() is None


def test_events_can_be_awaited(ep: ofipy.Endpoint) -> None:
    events = ep.domain.event_queue()

    async def main() -> list[int]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await events.next()
        found: list[int] = []
        waiting = [asyncio.create_task(events.next()) for _ in range(2)]
        await asyncio.sleep(0)
        writer = threading.Thread(target=lambda: [events.write(ofipy.Event(context=n)) for n in range(5)])
        writer.start()
        found += [(await asyncio.wait_for(task, TIMEOUT)).context for task in waiting]
        async for event in events:
            found.append(event.context)
            if len(found) == 5:
                break
        writer.join()
        return found

    assert sorted(asyncio.run(main())) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in a thread"])
def test_closing_ends_an_awaited_event(ep: ofipy.Endpoint, elsewhere: bool) -> None:
    events = ep.domain.event_queue()

    async def main() -> None:
        waiting = asyncio.create_task(events.next())
        await asyncio.sleep(0.01)
        if elsewhere:
            await asyncio.to_thread(events.close)
        else:
            events.close()
        # Canceled: the other thread closed it while this one looked.
        with pytest.raises((ofipy.Closed, ofipy.Canceled) if elsewhere else ofipy.Closed):
            await asyncio.wait_for(waiting, TIMEOUT)

    asyncio.run(main())
