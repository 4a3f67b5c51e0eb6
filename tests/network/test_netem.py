# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts joined by a path that is slow or narrow, or loses, repeats or mixes packets.

They need the kernel's module sch_netem, which few hosts have and the machine of tests/guest has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import traffic
from hosts import Host, Network
from nodes import USER_TIMEOUT, Node, RemoteError

Start = Callable[..., Node]
FAR = 0.3  # s, one way


@pytest.fixture(autouse=True, scope="module")
def _netem(privileged: None) -> None:
    host = Host()
    attempt = host.run("tc qdisc add dev lo root netem delay 1ms")
    host.close()
    if "qdisc kind is unknown" in attempt.stderr:
        pytest.skip("this kernel has no sch_netem")
    assert attempt.returncode == 0, attempt.stderr


class Pair:
    """Two hosts with the same fault in both directions, and a node on each."""

    def __init__(self, network: Network, start: Start, fault: str, **variables: object) -> None:
        self.hosts = [network.host() for _ in range(2)]
        self.wires = [network.wire(host) for host in self.hosts]
        for wire in self.wires:
            wire.disturb(fault)
        self.nodes = [start(host, **variables) for host in self.hosts]
        self.addresses = [node.open(domain="eth0") for node in self.nodes]

    def counted(self, name: str) -> list[int]:
        return [host.counter(name) for host in self.hosts]

    def nobody_gave_up(self) -> bool:
        """No connection has ended, by a time-out or otherwise."""
        return self.counted("TCPAbortOnTimeout") == self.counted("EstabResets") == [0, 0]

    def exchange(self) -> None:
        """Messages of all kinds, and memory, in both directions."""
        traffic.begin(self.nodes, self.addresses)
        traffic.finish(self.nodes)
        traffic.meet(self.nodes, self.addresses)
        traffic.mixed_messages(self.nodes, seed=3)
        traffic.remote_memory(self.nodes)


@pytest.mark.parametrize(
    ("fault", "evidence"),
    [
        ("delay 20ms 10ms", "TCPOFOQueue"),
        ("delay 5ms reorder 25% 50%", "TCPOFOQueue"),
        ("duplicate 10%", "TCPDSACKOldSent"),
        ("loss 3%", "RetransSegs"),
    ],
    ids=["delay", "reorder", "duplicate", "loss"],
)
def test_packets_come_late_in_another_order_twice_or_never(
    network: Network, start: Start, fault: str, evidence: str
) -> None:
    # Long enough for TCP to get through: the timeout is another test's.
    pair = Pair(network, start, fault, TCP_USER_TIMEOUT=30)
    pair.exchange()
    assert all(pair.counted(evidence))
    assert pair.nobody_gave_up()


def test_a_narrow_path_behind_which_everything_is_full(network: Network, start: Start) -> None:
    pair = Pair(network, start, "delay 20ms rate 20mbit", TCP_USER_TIMEOUT=30)
    traffic.begin(pair.nodes, pair.addresses)
    deadline = time.monotonic() + 20
    while not all(wire.backlog() > 100_000 for wire in pair.wires):
        assert time.monotonic() < deadline
    traffic.finish(pair.nodes)
    traffic.meet(pair.nodes, pair.addresses)
    traffic.remote_memory(pair.nodes)
    assert pair.nobody_gave_up()


def test_a_long_path_is_not_a_dead_one(network: Network, start: Start, tmp_path: Path) -> None:
    """With keys, since proving adds to the way."""
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_bytes(bytes(range(32)))
    pair = Pair(network, start, f"delay {FAR}s", AUTH_KEY_FILE=key)
    # Both begin, and so both connect at once.
    traffic.begin(pair.nodes, pair.addresses)
    traffic.finish(pair.nodes)
    opened = pair.counted("ActiveOpens")
    waits = [node.begin("wait_for_loss", seconds=3 * USER_TIMEOUT) for node in pair.nodes]
    assert [wait.result() for wait in waits] == [{"lost": 0, "up": 1}] * 2
    # It was asked meanwhile whether the other one is still there.
    assert any(pair.counted("TCPKeepAlive"))
    traffic.meet(pair.nodes, pair.addresses)
    traffic.mixed_messages(pair.nodes, seed=3)
    assert pair.counted("ActiveOpens") == opened
    assert pair.nobody_gave_up()
    assert all(host.round_trip() >= 2 * FAR for host in pair.hosts)


def test_a_peer_that_dies_at_the_end_of_a_long_path(network: Network, start: Start) -> None:
    pair = Pair(network, start, f"delay {FAR}s")
    one, other = pair.nodes
    receive = one.begin("receive", address=pair.addresses[1], tag=1)
    other.send(address=pair.addresses[0], tag=1, text="I am here")
    assert receive.result()["text"] == "I am here"
    receive = one.begin("receive", address=pair.addresses[1], tag=1)
    other.end()
    with pytest.raises(RemoteError, match=r"PeerLost"):
        receive.result()
