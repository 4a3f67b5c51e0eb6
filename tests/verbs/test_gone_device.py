# SPDX-License-Identifier: BSD-3-Clause
"""A port that goes down under connections, and a device that is removed: each time made anew.

The kernel waits until every process that has opened a device lets go of it, and librdmacm never does. So these tests
are for a pytest that has not used it: they are run by themselves. A port of Soft-RoCE over which the connection manager
has spoken while it was down connects no more until it is made anew.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TIMEOUT = 30

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not Path("/sys/class/infiniband/rxe0").exists(), reason="needs tests/verbs/soft-roce"),
]

COMMON = """
import subprocess, sys, ofipy
from ofipy import EventKind

def open_domain(kind):
    domain = ofipy.Fabric(ofipy.getinfo(provider="verbs", ep_type=kind)[0]).domain(progress="auto")
    return domain, domain.event_queue()

def two_of(domain):
    if domain.info.ep_type is not ofipy.EndpointType.MSG:
        one, other = domain.endpoint().enable(), domain.endpoint().enable()
        peer = one.insert(other.address)
        one.send(b"first", peer, complete="transmit").wait(timeout=20)
        return one, other, peer
    listener = domain.passive_endpoint()
    listener.listen()
    one = domain.endpoint(eq=events).enable()
    connection = one.connect(listener.address)
    other = listener.wait(timeout=20).accept()
    connection.wait(timeout=20)
    return one, other, None

def send_until_it_fails(one, peer):
    while True:
        try:
            one.send(b"traffic", peer, complete="transmit").wait(timeout=20)
        except ofipy.FabricError as error:
            return f"{type(error).__name__} {error.errno}: {error}"

seen = {}

def next_of(events, kind):
    while kind not in seen:
        event = events.wait(timeout=20)
        if event.error:
            seen.setdefault(event.kind, event.exception)
    return seen[kind]

domain, events = open_domain(sys.argv[1])
one, other, peer = two_of(domain)
receives = [other.recv_into(bytearray(8)) for _ in range(10_000)]
"""

REMOVAL = """
print("traffic", flush=True)
failure = send_until_it_fails(one, peer)
# Between two sends nothing fails but the connection.
print(next_of(events, EventKind.SHUTDOWN) if failure.startswith("NotConnected") else failure)
print(next_of(events, EventKind.DEVICE))
domain.fabric.close()
print("closed")
"""

PORT_DOWN = """
print("traffic", flush=True)
print(next_of(events, EventKind.DEVICE))
print(send_until_it_fails(one, peer))
domain.fabric.close()
print("closed")
"""


def run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=TIMEOUT)


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    """It is made anew behind each test."""
    held = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    if any(path.startswith("/dev/infiniband/uverbs") for path in held):
        pytest.skip("this process has used the device; run these tests by themselves")
    yield
    run("ip", "link", "set", "roce0", "up")
    if Path("/sys/class/infiniband/rxe0").exists():
        run("rdma", "link", "delete", "rxe0")
    run("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "roce0")


def what_is_said(script: str, kind: str, *change: str) -> list[str]:
    """Lines of a program whose device is changed while it sends."""
    program = subprocess.Popen(
        [sys.executable, "-P", "-c", COMMON + script, kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert program.stdout is not None
    changing = None
    try:
        first = program.stdout.readline()
        assert first == "traffic\n", first + program.stdout.read()
        changing = subprocess.Popen(change)
        said, _ = program.communicate(timeout=TIMEOUT)
    finally:
        program.kill()
        if changing is not None:
            assert changing.wait(timeout=TIMEOUT) == 0
    assert program.returncode == 0, said
    *lines, last = said.splitlines()
    assert last == "closed"
    return lines


@pytest.mark.parametrize("kind", ["msg", "dgram"])
def test_the_device_is_removed_during_traffic(kind: str) -> None:
    failure, event = what_is_said(REMOVAL, kind, "rdma", "link", "delete", "rxe0")
    assert "removed" in failure
    assert "rxe0 was removed" in event


@pytest.mark.parametrize("kind", ["msg", "dgram"])
def test_the_port_goes_down_during_traffic(kind: str) -> None:
    event, failure = what_is_said(PORT_DOWN, kind, "ip", "link", "set", "roce0", "down")
    assert "rxe0 port 1 is down" in event
    assert "port down" in failure
    assert "203.0.113.1" in failure


SILENT = """
import os
import subprocess
import time
import ofipy

domain = ofipy.Fabric(ofipy.getinfo(provider="verbs", ep_type="rdm")[0]).domain(progress="auto")
events = domain.event_queue(size=16)
here = domain.endpoint(eq=events).enable()
there = ofipy.open(provider="verbs")
here.tsend(b"hello", here.insert(there.address), tag=1).wait(timeout=30)
there.trecv(tag=1).wait(timeout=30)
subprocess.run(["ip", "link", "set", "roce0", "down"], check=True)
kinds, deadline = [], time.monotonic() + 15
while time.monotonic() < deadline and "PEER_LOST" not in kinds:
    try:
        kinds.append(events.wait(timeout=1).kind.name)
    except ofipy.TimedOut:
        pass
print(*kinds, flush=True)
# Without a way the kernel would go on for minutes to tell the other side that the process has ended.
subprocess.run(["ip", "link", "set", "roce0", "up"], check=True)
os._exit(0)
"""


@pytest.mark.parametrize("seconds", [0, 1])
def test_keep_alive(seconds: int) -> None:
    """That nobody answers a silent RDM endpoint any more is noticed only if it asks."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", SILENT],
        env=os.environ | {"OFIPY_VERBS_KEEPALIVE": str(seconds), "OFIPY_VERBS_ACK_TIMEOUT": "12"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT + 60,
    )
    assert ran.returncode == 0, ran.stderr
    assert "PEER_UP" in ran.stdout
    assert ("PEER_LOST" in ran.stdout) == bool(seconds), ran.stdout
