# SPDX-License-Identifier: BSD-3-Clause
"""Programs with tcp endpoints that fork and start other programs: connections are the parent's alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

import ofipy

TIMEOUT = 20

OPEN = """
import os, subprocess, sys, warnings
import ofipy

warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads: that is the point

def open_on_loopback():
    info = next(info for info in ofipy.getinfo(provider="tcp", ep_type="rdm") if info.domain == "lo")
    return ofipy.Fabric(info).domain(progress="auto").endpoint().enable()

ep = open_on_loopback()
"""

TALK = """
other = open_on_loopback()
there, back = ep.insert(other.address), other.insert(ep.address)

def talk(text):
    for sender, receiver, peer in ((ep, other, there), (other, ep, back)):
        receive = receiver.trecv(tag=1)
        sender.tsend(text, peer, tag=1).wait(timeout=20)
        assert receive.wait(timeout=20).data == text

def sockets():
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:
            pass
    return {link for link in links if link.startswith("socket:")}
"""

FORK = """
import multiprocessing

talk(b"before")
mine = sockets()
assert len(mine) >= 4, mine

def child():
    assert not mine & sockets(), "the child has sockets of its parent"
    for call in lambda: ep.tsend(b"x", there, tag=1), lambda: ep.trecv(tag=1), lambda: ep.domain.progress():
        try:
            call()
        except ofipy.ForkedError:
            continue
        raise AssertionError("an operation went through")
    with open_on_loopback() as own:
        own.tsend(b"x", own.insert(own.address), tag=1).wait(timeout=20)

# One ends as programs do, with all that it has of its parent; one as multiprocessing has it.
pid = os.fork()
if pid == 0:
    child()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(20)
assert process.exitcode == 0
talk(b"after")
stats = ep.stats()
assert (stats.peers_up, stats.peers_lost) == (1, 0), stats
print("good")
"""

START = """
talk(b"before")
listing = subprocess.run(
    ["ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, text=True, timeout=20, check=True
).stdout
assert "pipe:" in listing, listing
assert "socket:" not in listing, listing
assert "eventpoll" not in listing, listing
talk(b"after")
print("good")
"""


@pytest.mark.parametrize("then", [FORK, START], ids=["fork", "start"])
def test_connections_are_the_parents_alone(then: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", OPEN + TALK + then], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.strip()) == (0, "good"), done.stderr


DIE = """
peer = ep.insert(sys.argv[1])
ep.tsend(b"here", peer, tag=1).wait(timeout=20)
ep.trecv(peer, tag=3).wait(timeout=20)
if os.fork() == 0:
    os.close(1)
    sys.stdin.read()
    os._exit(0)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def endpoint() -> Iterator[ofipy.Endpoint]:
    info = next(info for info in ofipy.getinfo(provider="tcp", ep_type="rdm") if info.domain == "lo")
    with ofipy.Fabric(info) as fabric:
        yield fabric.domain(progress="auto").endpoint().enable()


def test_a_dead_parent_is_noticed_while_its_child_lives(endpoint: ofipy.Endpoint) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", OPEN + DIE, str(endpoint.address)], stdin=subprocess.PIPE
    ) as process:
        try:
            peer = endpoint.trecv(tag=1).wait(timeout=TIMEOUT).source
            receive = endpoint.trecv(peer, tag=2)
            endpoint.tsend(b"now die", peer, tag=3).wait(timeout=TIMEOUT)
            with pytest.raises(ofipy.PeerLost):
                receive.wait(timeout=TIMEOUT)
        finally:
            process.communicate()
