# SPDX-License-Identifier: BSD-3-Clause
"""Peers that are killed, half of them in the middle of a message: their packet buffers come back.

A kernel either returns such a buffer with a flushed completion, as that of Debian 12 does since 6.1.176, or keeps it,
and the endpoint finds it. The endpoint has fewer buffers than peers are killed so: without them it could not receive.

``OFIPY_LOST_PEERS`` is how many are killed, 1,000 unless it is set.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from other_host import PYTHON, ROOT, OtherHost

import ofipy

PEERS = int(os.environ.get("OFIPY_LOST_PEERS", "1000"))
AT_ONCE = 50
BUFFERS = 400  # each peer is granted six or more while it is there
SECONDS = 60
TAG_HELLO, TAG_AFTERWARDS = 1, 3
AFTERWARDS, AFTER_BYTES = 3000, 1000

pytestmark = pytest.mark.timeout(240 + PEERS)

# The last packet of a message of several: the first byte behind the UDP header is 2 (RC SEND LAST).
DROPPED = ["INPUT", "-p", "udp", "--dport", "4791", "-m", "u32", "--u32", "0>>22&0x3C@8>>24=2", "-j", "DROP"]


@pytest.fixture
def without_last_packets() -> Iterator[None]:
    subprocess.run(["iptables-legacy", "-A", *DROPPED], check=True)
    yield
    subprocess.run(["iptables-legacy", "-D", *DROPPED], check=True)


def dropped() -> int:
    """Packets that the rule has dropped."""
    listing = subprocess.run(
        ["iptables-legacy", "-nvxL", "INPUT"], capture_output=True, text=True, check=True
    ).stdout
    return int(next(line for line in listing.splitlines() if "u32" in line).split()[0])


def wait_until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


AFTER = f"""
import sys
import ofipy
with ofipy.open(provider="verbs", progress="auto") as ep:
    peer = ep.insert(sys.argv[1])
    sends = [ep.tsend(bytes({AFTER_BYTES}), peer, tag={TAG_AFTERWARDS}) for _ in range({AFTERWARDS})]
    ofipy.wait_all(sends, timeout={SECONDS})
"""


@pytest.mark.usefixtures("without_last_packets")
def test_buffers_of_lost_peers_come_back(there: OtherHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_VERBS_PACKET_BUFFERS", str(BUFFERS))
    with ofipy.open(provider="verbs", progress="auto") as ep:
        before = ep.stats()
        assert before.packet_buffers <= BUFFERS < PEERS // 2
        began = time.monotonic()
        lose_peers(ep, there)
        spent = time.monotonic() - began
        print(f"{PEERS} lost peers: {spent:.0f} s, {1000 * spent / PEERS:.0f} ms each")
        # A message needs a buffer here, and PEERS / 2 have been begun and never ended.
        with there.running(*PYTHON, "-c", AFTER, str(ep.address)) as speaker:
            for number in range(AFTERWARDS):
                received = ep.trecv(tag=TAG_AFTERWARDS).wait(timeout=SECONDS)
                assert received.length == AFTER_BYTES, number
            assert speaker.wait(timeout=SECONDS) == 0
        after = ep.stats()
        print(f"packet buffers: {before.packet_buffers}, {after.packet_buffers_reclaimed} reclaimed")
        assert after.packet_buffers == before.packet_buffers


def lose_peers(ep: ofipy.Endpoint, there: OtherHost) -> None:
    """Meet the peers, and lose them when half of their second messages have come by half."""
    began = time.monotonic()
    program = [*PYTHON, str(ROOT / "tests/verbs/hosts/losers.py"), str(ep.address), str(AT_ONCE)]
    with there.running(*program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as losers:
        assert losers.stdin is not None
        assert losers.stdout is not None
        for lost in range(AT_ONCE, PEERS + 1, AT_ONCE):
            hellos = [ep.trecv(tag=TAG_HELLO) for _ in range(AT_ONCE)]
            halves = dropped() + AT_ONCE // 2
            losers.stdin.write("come\n")
            assert losers.stdout.readline() == "up\n"
            ofipy.wait_all(hellos, timeout=SECONDS)
            wait_until("half of each message has come", lambda least=halves: dropped() >= least)
            losers.stdin.write("die\n")
            assert losers.stdout.readline() == "-9\n"
            wait_until("they are lost", lambda least=lost: ep.stats().peers_lost >= least)
            print(f"{lost} lost after {time.monotonic() - began:.1f} s", flush=True)
        # It ends with its input.
        losers.stdin.close()
