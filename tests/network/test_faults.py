# SPDX-License-Identifier: BSD-3-Clause
"""Hosts and paths that fail while messages are under way: what ends, what goes on, and what works again afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hosts import Network, Wire
from nodes import USER_TIMEOUT, Node, RemoteError

Start = Callable[..., Node]
FAMILIES = pytest.mark.parametrize("family", ["", "-ipv6"], ids=["ipv4", "ipv6"])
# Long ones, so that one of them is under way at any time, and short ones.
LENGTHS = [1 << 20, 10, 5000]
SLACK = 3  # s, of a machine that does other things too


def place(address: str) -> str:
    """Host and port: an endpoint over several ways says of some peers by which they came."""
    return address.partition("://")[2]


class Lan:
    """Three hosts, a node on each: the first in the middle of what happens."""

    def __init__(
        self, network: Network, start: Start, family: str, provider: str = "tcp", **variables: object
    ) -> None:
        hosts = [network.host() for _ in range(3)]
        self.wires = [network.wire(host) for host in hosts]
        if provider == "link":
            variables["INTERFACE"] = "eth0"
        self.nodes = [start(host, **variables) for host in hosts]
        domain = f"eth0{family}" if provider == "tcp" else f"shm+eth0{family}"
        self.addresses = [node.open(domain=domain, provider=provider) for node in self.nodes]

    def stream(self, source: int, sink: int, tag: int) -> None:
        """Messages from one to the other until they are stopped; some have come when this returns."""
        self.nodes[sink].sink(address=self.addresses[source], tag=tag, lengths=LENGTHS)
        self.nodes[source].source(address=self.addresses[sink], tag=tag, lengths=LENGTHS)
        self.goes_on(sink, tag)

    def goes_on(self, sink: int, tag: int) -> None:
        assert self.nodes[sink].wait_for(tag=tag, count=30, seconds=20) >= 30

    def complete(self, source: int, sink: int, tag: int) -> None:
        """Stop the stream: all has come, once."""
        self.nodes[source].stop(tag=tag)
        sent, received = self.nodes[source].source_result(tag=tag), self.nodes[sink].sink_result(tag=tag)
        assert sent["failures"] == received["failures"] == []
        # The source counts its last, empty message.
        assert sent["sent"] == received["received"] + 1

    def say(self, source: int, sink: int, tag: int) -> None:
        """One message."""
        receive = self.nodes[sink].begin("receive", address=self.addresses[source], tag=tag)
        self.nodes[source].send(address=self.addresses[sink], tag=tag, text=f"from {source}")
        result = receive.result()
        assert result["text"] == f"from {source}"
        assert place(result["source"]) == place(self.addresses[source])


@FAMILIES
@pytest.mark.parametrize(
    ("vanish", "come_back"),
    [(Wire.remove_addresses, Wire.add_addresses), (Wire.down, Wire.up)],
    ids=["address", "link"],
)
def test_a_host_that_vanishes(
    network: Network,
    start: Start,
    family: str,
    vanish: Callable[[Wire], None],
    come_back: Callable[[Wire], None],
) -> None:
    lan = Lan(network, start, family)
    lan.stream(0, 1, tag=1)
    lan.stream(1, 0, tag=2)
    lan.stream(0, 2, tag=3)
    vanish(lan.wires[1])
    vanished = time.monotonic()
    for source, peer, tag in ((0, 1, 1), (1, 0, 2)):
        result = lan.nodes[source].source_result(tag=tag)
        assert result["failures"]
        assert all(lan.addresses[peer] in failure["text"] for failure in result["failures"]), result
        assert result["ended"] - vanished < USER_TIMEOUT + SLACK
    lan.goes_on(2, tag=3)
    come_back(lan.wires[1])
    lan.say(0, 1, tag=4)
    lan.say(1, 0, tag=5)
    lan.goes_on(2, tag=3)
    lan.complete(0, 2, tag=3)


@FAMILIES
def test_a_path_that_is_cut_and_healed(network: Network, start: Start, family: str) -> None:
    lan = Lan(network, start, family, TCP_USER_TIMEOUT=30)
    lan.stream(0, 1, tag=1)
    lan.stream(1, 0, tag=2)
    lan.stream(0, 2, tag=3)
    lan.wires[1].cut()
    healed = time.monotonic() + 5
    # What was on its way may still have come, then no more; others do not notice.
    while time.monotonic() < healed:
        before = lan.nodes[1].wait_for(tag=1, count=1_000_000, seconds=0.5)
        lan.goes_on(2, tag=3)
    assert before == 0
    lan.wires[1].heal()
    lan.goes_on(1, tag=1)
    lan.goes_on(0, tag=2)
    for source, sink, tag in ((0, 1, 1), (1, 0, 2), (0, 2, 3)):
        lan.complete(source, sink, tag)


def test_an_idle_peer_that_vanishes(network: Network, start: Start) -> None:
    lan = Lan(network, start, "")
    lan.say(0, 1, tag=1)
    lan.say(2, 0, tag=1)
    lan.wires[1].remove_addresses()
    vanished = time.monotonic()
    assert lan.nodes[0].wait_for_loss(seconds=20) == {"lost": 1, "up": 1}
    assert time.monotonic() - vanished < USER_TIMEOUT + SLACK


@pytest.mark.parametrize(
    ("family", "provider"), [("", "tcp"), ("-ipv6", "tcp"), ("", "link")], ids=["ipv4", "ipv6", "over-link"]
)
@pytest.mark.parametrize("vanish", [Wire.remove_addresses, Wire.down], ids=["address", "link"])
def test_nobody_waits_for_a_host_that_has_vanished(
    network: Network, start: Start, family: str, provider: str, vanish: Callable[[Wire], None]
) -> None:
    """Receives that name it end, although nothing was under way, and nothing came that would say so."""
    lan = Lan(network, start, family, provider)
    lan.say(0, 1, tag=1)
    lan.say(2, 0, tag=1)
    for peer in (1, 2):
        lan.nodes[0].post_receive(address=lan.addresses[peer], tag=10 + peer)
    vanish(lan.wires[1])
    vanished = time.monotonic()
    with pytest.raises(RemoteError, match="PeerLost") as lost:
        lan.nodes[0].received(tag=11)
    assert place(lan.addresses[1]) in str(lost.value)
    assert time.monotonic() - vanished < USER_TIMEOUT + SLACK
    lan.nodes[2].send(address=lan.addresses[0], tag=12, text="still here")
    assert lan.nodes[0].received(tag=12) == "still here"


@FAMILIES
def test_who_answers_is_waited_for(network: Network, start: Start, family: str) -> None:
    """The connection times out; but there is somebody to whom a new one can be made."""
    lan = Lan(network, start, family)
    lan.say(0, 1, tag=1)
    lan.nodes[1].post_receive(address=lan.addresses[0], tag=2)
    # Nothing comes through but the beginning of a connection, and its answer.
    lan.wires[0].host.filter("-I INPUT -p tcp ! --syn -j DROP")
    assert lan.nodes[1].wait_for_loss(seconds=20) == {"lost": 1, "up": 0}
    assert lan.nodes[1].posted(tag=2)
    # The other side has to see it, too, lest it sends into the old one.
    assert lan.nodes[0].wait_for_loss(seconds=20) == {"lost": 1, "up": 0}
    lan.wires[0].host.filter("-D INPUT -p tcp ! --syn -j DROP")
    lan.nodes[0].send(address=lan.addresses[1], tag=2, text="here I am")
    assert lan.nodes[1].received(tag=2) == "here I am"


@pytest.mark.parametrize("connector", [0, 1])
def test_one_side_has_given_up_the_connection(network: Network, start: Start, connector: int) -> None:
    """The other one still believes in it, whoever of them opened it."""
    lan = Lan(network, start, "")
    patient = start(lan.wires[1].host, TCP_USER_TIMEOUT=600)
    lan.nodes[1], lan.addresses[1] = patient, patient.open(domain="eth0")
    lan.say(connector, 1 - connector, tag=1)
    lan.wires[1].cut()
    lost = lan.nodes[0].begin("send", address=lan.addresses[1], tag=2, text="lost", complete="delivery")
    with pytest.raises(RemoteError, match=lan.addresses[1]):
        lost.result()
    lan.wires[1].heal()
    healed = time.monotonic()
    lan.say(0, 1, tag=3)
    lan.say(1, 0, tag=4)
    # Before the other one's keep-alive could find out.
    assert time.monotonic() - healed < SLACK
