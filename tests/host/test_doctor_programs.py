# SPDX-License-Identifier: BSD-3-Clause
"""Which programs ``ofipy doctor HOST`` compares with a provider: those that send there, and have more to send."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

import ofipy
from ofipy.doctor.peer.programs import compare_scans, host_of, watch_programs
from ofipy.statistics import Endpoint
from tests.host.snapshots import endpoint, peer, process, snapshot

SECONDS = 60
THERE = frozenset({"10.0.0.2"})
SENDER = """
import sys, ofipy
with ofipy.open(provider="tcp") as ep:
    peer = ep.insert(sys.argv[1])
    requests = [ep.tsend(bytes(1 << 20), peer, tag=1) for _ in range(8)]
    print("begun", flush=True)
    while True:
        requests.append(ep.tsend(bytes(1 << 20), peer, tag=1))
        requests.pop(0).wait()
"""


def sends(pending: int, **moved: int) -> Endpoint:
    """An endpoint that has sent so many bytes to hosts 10.0.0.2, 10.0.0.3, and over shared memory."""
    places = {
        "there": ("10.0.0.2:80", "verbs"),
        "elsewhere": ("10.0.0.3:80", "tcp"),
        "here": ("[::1]:9", "shm"),
    }
    peers = tuple(peer(places[name][0], count, places[name][1]) for name, count in moved.items())
    return endpoint(pending=pending, peers=peers)


def compare(before: Endpoint, now: Endpoint) -> tuple[list[str], int]:
    found = compare_scans(snapshot(process(7, before)), snapshot(process(7, now)), 1.0, THERE)
    assert (found.rate is None) == (not found.bytes)
    return found.names, found.bytes


def test_all_that_it_sends_counts() -> None:
    before, now = sends(3, there=100, elsewhere=200, here=0), sends(3, there=700, elsewhere=900, here=50_000)
    assert compare(before, now) == (["train (pid 7)"], 1300)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (sends(0, there=100), sends(3, there=700)),
        (sends(3, there=100), sends(0, there=700)),
        (sends(3, elsewhere=100), sends(3, elsewhere=700)),
        (sends(3, there=100), sends(3, there=100)),
        (sends(3), sends(3, there=700)),
        (replace(sends(3, there=100), number=2), sends(3, there=700)),
    ],
    ids=["nothing waited", "nothing waits", "another host", "nothing sent", "a new peer", "a new endpoint"],
)
def test_what_is_not_judged(before: Endpoint, now: Endpoint) -> None:
    assert compare(before, now) == ([], 0)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.2:80", "10.0.0.2"),
        ("tcp://[fd00::7]:80", "fd00::7"),
        ("link://node7:80", "node7"),
        ("other", ""),
    ],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host


def test_a_program_that_sends() -> None:
    ended = threading.Event()
    with ofipy.open(provider="tcp", node="127.0.0.1", progress="auto") as ep:

        def receive() -> None:
            buffers = [bytearray(1 << 20) for _ in range(4)]
            posted = [ep.trecv_into(each, tag=1) for each in buffers]
            while not ended.is_set():
                for number, request in enumerate(posted):
                    if request.done:
                        posted[number] = ep.trecv_into(buffers[number], tag=1)
                ended.wait(0.001)
            for request in posted:
                request.cancel()

        receiver = threading.Thread(target=receive)
        receiver.start()
        command = [sys.executable, "-P", "-c", SENDER, str(ep.address)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == "begun\n"
                until = time.monotonic() + SECONDS
                while not any(f"pid {child.pid}" in name for name in watch_programs("127.0.0.1", 0.2).names):
                    assert time.monotonic() < until
            finally:
                child.kill()
                ended.set()
                receiver.join(SECONDS)
