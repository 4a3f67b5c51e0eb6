# SPDX-License-Identifier: BSD-3-Clause
"""What is told when the port goes down and up, and what becomes of datagrams; of connections: test_gone_device.py."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ofipy
from ofipy import EventKind

TIMEOUT = 30

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not Path("/sys/class/infiniband/rxe0").exists(), reason="needs tests/verbs/soft-roce"),
]


def run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=TIMEOUT)


def await_device() -> None:
    deadline = time.monotonic() + TIMEOUT
    while not ofipy.getinfo(provider="verbs"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def link_down() -> Iterator[None]:
    run("ip", "link", "set", "roce0", "down")
    try:
        yield
    finally:
        run("ip", "link", "set", "roce0", "up")
        await_device()


@pytest.fixture
def fabric() -> Iterator[ofipy.Fabric]:
    with ofipy.Fabric(ofipy.getinfo(provider="verbs", ep_type="msg")[0]) as opened:
        yield opened


@pytest.fixture
def datagrams() -> Iterator[ofipy.Domain]:
    with ofipy.Fabric(ofipy.getinfo(provider="verbs", ep_type="dgram")[0]) as opened:
        yield opened.domain(progress="auto")


def next_of(events: ofipy.EventQueue, kind: EventKind, said: str) -> ofipy.Event:
    """The next event of the kind that says so."""
    deadline = time.monotonic() + TIMEOUT
    seen = []
    while time.monotonic() < deadline:
        event = events.wait(timeout=TIMEOUT)
        seen.append(event)
        if event.kind is kind and (said.encode() in event.data or said in str(event.exception)):
            return event
    raise AssertionError(seen)


def test_port_down_and_up_are_events(fabric: ofipy.Fabric) -> None:
    # Of both domains, though the device tells the process.
    with fabric.domain(progress="auto") as here, fabric.domain(progress="auto") as there:
        queues = here.event_queue(), there.event_queue()
        with link_down():
            for events in queues:
                down = next_of(events, EventKind.DEVICE, "rxe0 port 1 is down")
                assert (down.endpoint, down.error) == (0, 100)
                assert "port 1 is down" in str(down.exception)
        for events in queues:
            assert next_of(events, EventKind.DEVICE, "rxe0 port 1 is up").exception is None


def test_datagrams_over_a_port_that_goes_down_and_up(datagrams: ofipy.Domain) -> None:
    events = datagrams.event_queue()
    here, there = datagrams.endpoint().enable(), datagrams.endpoint().enable()
    peer = here.insert(there.address)
    before, receive = there.recv(), there.recv()
    here.send(b"before", peer).wait(timeout=TIMEOUT)
    assert before.wait(timeout=TIMEOUT).data == b"before"
    with link_down():
        next_of(events, EventKind.DEVICE, "is down")
        with pytest.raises(ofipy.FabricError, match="port down") as caught:
            here.send(b"lost", peer, complete="transmit").wait(timeout=TIMEOUT)
        assert caught.value.peer == str(there.address)
    # The same endpoints and the same receive: the kernel may take a moment for the way.
    deadline = time.monotonic() + TIMEOUT
    while not receive.done:
        here.send(b"good", peer).wait(timeout=TIMEOUT)
        time.sleep(0.05)
        assert time.monotonic() < deadline
    assert receive.wait(timeout=TIMEOUT).data == b"good"
