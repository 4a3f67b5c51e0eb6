# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts joined by a path that is slow or narrow, or loses, repeats or mixes packets.

They need the kernel's module sch_netem, which few hosts have and the machine of tests/guest has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import traffic
from hosts import Network
from nodes import USER_TIMEOUT, Node, RemoteError

FAR = 0.3  # s, one way
PATIENT = 30  # s, a time-out that is long enough for TCP to get through: it is another test's


class Pair:
    """Two hosts with a node on each, and the same faults of the path in both directions."""

    def __init__(self, network: Network) -> None:
        self.hosts = [network.host() for _ in range(2)]
        self.wires = [network.wire(host) for host in self.hosts]
        for wire in self.wires:
            wire.send_frames()
        self.nodes = [Node(host) for host in self.hosts]

    def open(self, fault: str, **variables: object) -> None:
        """Have endpoints with these settings, and that fault between them."""
        for wire in self.wires:
            wire.disturb(fault)
        self.addresses = [node.open(domain="eth0", **variables) for node in self.nodes]
        traffic.meet(self.nodes, self.addresses)
        self._before = [host.counters() for host in self.hosts]

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def counted(self, name: str) -> list[int]:
        """By how much the kernel's counter has grown since, on each host."""
        return [
            host.counters()[name] - before[name]
            for host, before in zip(self.hosts, self._before, strict=True)
        ]

    def nobody_gave_up(self, seconds: float = 0) -> bool:
        """No connection has ended and been made anew, nor does within that time."""
        waits = [node.begin("wait_for_loss", seconds=seconds) for node in self.nodes]
        seen = [wait.result() for wait in waits]
        return seen == [{"lost": 0, "up": 1}] * 2 and self.counted("TCPAbortOnTimeout") == [0, 0]


@pytest.fixture(scope="module")
def hosts(privileged: None) -> Iterator[Pair]:
    network = Network()
    host = network.host()
    attempt = host.run("tc qdisc add dev lo root netem delay 1ms")
    if "qdisc kind is unknown" in attempt.stderr:
        network.close()
        pytest.skip("this kernel has no sch_netem")
    assert attempt.returncode == 0, attempt.stderr
    pair = Pair(network)
    yield pair
    for node in pair.nodes:
        node.end()
    network.close()


@pytest.fixture
def pair(hosts: Pair) -> Iterator[Pair]:
    yield hosts
    hosts.close()


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
def test_packets_come_late_in_another_order_twice_or_never(pair: Pair, fault: str, evidence: str) -> None:
    pair.open(fault, TCP_USER_TIMEOUT=PATIENT)
    traffic.begin(pair.nodes, pair.addresses)
    traffic.finish(pair.nodes)
    traffic.mixed_messages(pair.nodes, seed=3)
    traffic.remote_memory(pair.nodes)
    assert all(pair.counted(evidence))
    assert pair.nobody_gave_up()


def test_a_narrow_path_behind_which_everything_is_full(pair: Pair) -> None:
    pair.open("delay 20ms rate 40mbit", TCP_USER_TIMEOUT=USER_TIMEOUT)
    traffic.begin(pair.nodes, pair.addresses)
    deadline = time.monotonic() + 20
    while not all(wire.backlog() > 100_000 for wire in pair.wires):
        assert time.monotonic() < deadline
    traffic.finish(pair.nodes)
    traffic.remote_memory(pair.nodes)
    assert pair.nobody_gave_up()


def test_a_long_path_is_not_a_dead_one(pair: Pair, tmp_path: Path) -> None:
    """With keys, since proving adds to the way."""
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_bytes(bytes(range(32)))
    pair.open(f"delay {FAR}s", TCP_USER_TIMEOUT=USER_TIMEOUT, AUTH_KEY_FILE=str(key))
    # Both begin, and so both connect at once.
    traffic.mixed_messages(pair.nodes, seed=3)
    opened = pair.counted("ActiveOpens")
    assert pair.nobody_gave_up(3 * USER_TIMEOUT)
    # It was asked meanwhile whether the other one is still there.
    assert any(pair.counted("TCPKeepAlive"))
    traffic.mixed_messages(pair.nodes, seed=40)
    assert pair.counted("ActiveOpens") == opened
    assert pair.nobody_gave_up()
    assert all(host.round_trip() >= 2 * FAR for host in pair.hosts)


def test_a_peer_that_dies_at_the_end_of_a_long_path(pair: Pair) -> None:
    pair.open(f"delay {FAR}s", AUTH_KEY_FILE="")
    node = Node(pair.hosts[1])
    address = node.open(domain="eth0")
    receive = pair.nodes[0].begin("receive", address=address, tag=1)
    node.send(address=pair.addresses[0], tag=1, text="I am here")
    assert receive.result()["text"] == "I am here"
    receive = pair.nodes[0].begin("receive", address=address, tag=1)
    node.end()
    with pytest.raises(RemoteError, match=r"PeerLost"):
        receive.result()
