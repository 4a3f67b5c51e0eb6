# SPDX-License-Identifier: BSD-3-Clause
"""One endpoint over several ways at once: a neighbour, who shares memory with it, and a peer on another host."""

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import adder
import numpy as np
import pytest
from remote import BOTH, TIMEOUT, lent
from sides import Target

import ofipy
from ofipy._base.binding import drain_log, lib
from ofipy.cli.key import new_key

pytestmark = pytest.mark.needs("neighbours")

OpenEndpoint = Callable[..., ofipy.Endpoint]
OpenOn = Callable[..., ofipy.Endpoint]
TAG = 7
SIZES = [1, 300, 5000, 200_000]


@pytest.fixture
def open_on(target: Target, open_endpoint: OpenEndpoint, monkeypatch: pytest.MonkeyPatch) -> OpenOn:
    """Opens endpoints on a host of this name, which listen to the network unless told otherwise."""

    def make(host: str, *, listens: bool = True, **options: object) -> ofipy.Endpoint:
        monkeypatch.setenv("OFIPY_HOST_ID", host)
        monkeypatch.setenv("OFIPY_INTERFACE", target.interface if listens else "")
        return open_endpoint(**options)

    return make


@dataclass
class Three:
    """One endpoint in the middle, and who talks with it; `there` is the middle as each of these knows it."""

    middle: ofipy.Endpoint
    others: dict[str, ofipy.Endpoint]
    peers: dict[str, ofipy.Peer]
    there: dict[str, ofipy.Peer]

    def send(self, way: str, data: bytes, tag: int = TAG) -> ofipy.Request:
        return self.others[way].tsend(data, self.there[way], tag=tag)

    def arrived(self, way: str, data: bytes, tag: int = TAG) -> None:
        """Send to the middle, and return when it is there, whether it was received or not."""
        self.others[way].tsend(data, self.there[way], tag=tag, complete="delivery").wait(timeout=TIMEOUT)


@pytest.fixture
def network(target: Target) -> str:
    """The way to another host."""
    return target.network


@pytest.fixture
def three(open_on: OpenOn, network: str) -> Three:
    others = {network: open_on("far"), "shm": open_on("here")}
    middle = open_on("here")
    return Three(
        middle,
        others,
        {way: middle.insert(bytes(other.address)) for way, other in others.items()},
        {way: other.insert(bytes(middle.address)) for way, other in others.items()},
    )


# ----------------------------------------------------------------------------------------------------------- messages


def test_each_peer_has_its_way(three: Three) -> None:
    for way, peer in three.peers.items():
        # Before the first operation it is the one that will be taken.
        assert three.middle.way(peer) == three.others[way].way(three.there[way]) == way
        three.middle.tsend(b"x", peer, tag=TAG).wait(timeout=TIMEOUT)
        assert three.others[way].trecv(tag=TAG).wait(timeout=TIMEOUT).source == three.there[way]
        assert three.middle.way(peer) == way


def test_of_each_way_it_is_known_what_the_peer_has_proven(three: Three, network: str) -> None:
    # All are on this host, where over a network link requires the user's own key.
    proof = ofipy.getinfo(provider=network)[0].peer_proof
    proven = {"shm": True, network: proof is ofipy.PeerProof.KEY}
    for way, peer in three.peers.items():
        assert not three.middle.security(peer).proven
        three.middle.tsend(b"x", peer, tag=TAG).wait(timeout=TIMEOUT)
        three.others[way].trecv(tag=TAG).wait(timeout=TIMEOUT)
        for end, other in ((three.middle, peer), (three.others[way], three.there[way])):
            assert end.security(other) == ofipy.Security(proven=proven[way], encrypted=False, cipher=None)


@pytest.mark.parametrize("posted", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_messages_of_any_source_come_in_the_order_of_arrival(
    three: Three, network: str, size: int, posted: bool
) -> None:
    ways = ["shm", network, network, "shm", network, "shm", "shm", network]
    receives = [three.middle.trecv(tag=TAG) for _ in ways] if posted else []
    for number, way in enumerate(ways):
        three.arrived(way, bytes([number]) * size)
    for number, way in enumerate(ways):
        message = (receives[number] if posted else three.middle.trecv(tag=TAG)).wait(timeout=TIMEOUT)
        assert message.source == three.peers[way]
        assert message.data == bytes([number]) * size


@pytest.mark.parametrize("size", SIZES)
def test_directed_receives_wait_for_their_own_peer(three: Three, network: str, size: int) -> None:
    receives = {way: three.middle.trecv(peer, tag=TAG) for way, peer in three.peers.items()}
    any_source = three.middle.trecv(tag=TAG)
    for way in ("shm", network):
        three.arrived(way, way.encode() + bytes(size))
        assert receives[way].wait(timeout=TIMEOUT).data == way.encode() + bytes(size)
    three.arrived(network, b"left over")
    assert any_source.wait(timeout=TIMEOUT).source == three.peers[network]


def test_one_buffer_takes_the_messages_of_both(three: Three) -> None:
    count, size = 200, 100
    messages = three.middle.trecv_many(bytearray(2 * count * size), tag=TAG)

    def send(way: str) -> None:
        for number in range(count):
            three.send(way, number.to_bytes(4, "little") + bytes(size - 4)).wait(timeout=TIMEOUT)

    senders = [threading.Thread(target=send, args=(way,)) for way in three.peers]
    for sender in senders:
        sender.start()
    next_of = dict.fromkeys(three.peers.values(), 0)
    for _ in range(2 * count):
        message = messages.next(timeout=TIMEOUT)
        assert message is not None
        assert message.source is not None
        # Those of one peer in their order.
        assert int.from_bytes(bytes(message)[:4], "little") == next_of[message.source]
        next_of[message.source] += 1
    for sender in senders:
        sender.join()
    messages.cancel()


def test_a_probe_finds_what_either_has_sent(three: Three, network: str) -> None:
    for way in (network, "shm"):
        three.arrived(way, way.encode())
    for way in (network, "shm"):
        found = three.middle.probe(three.peers[way], tag=TAG)
        assert found is not None
        assert found.length == len(way)


def test_who_looks_rarely_sees_at_once_what_a_quiet_network_has_brought(open_on: OpenOn) -> None:
    ep, far = open_on("here", progress="manual"), open_on("far")
    there = far.insert(bytes(ep.address))
    for extra in range(17):
        receive = ep.trecv_into(bytearray(1), tag=TAG)
        far.tsend(b"x", there, tag=TAG)
        receive.wait(timeout=TIMEOUT)
        receive = ep.trecv_into(bytearray(1), tag=TAG)
        # Long enough that only every so many rounds ask the network, and in each phase of those.
        for _ in range(1100 + extra):
            assert not receive.test()
        far.tsend(b"x", there, tag=TAG).wait(timeout=TIMEOUT)
        time.sleep(2e-3)
        # The first look may only find that there is something to read.
        assert receive.test() or receive.test()


# ------------------------------------------------------------------------------------------------------ remote memory


@pytest.mark.needs("rma", "device_keys")
@pytest.mark.parametrize("chosen", [False, True])
def test_a_device_writes_without_the_owner(open_on: OpenOn, chosen: bool) -> None:
    """By the name that travels in the handle; the key alone asks the owner, and so does one that it has chosen."""
    size = 100_000
    owner, far = open_on("here", progress="manual"), open_on("far", progress="manual")
    peer, memory = far.insert(bytes(owner.address)), np.zeros(size, np.uint8)
    sent, came = far.tsend(b"x", peer, tag=TAG), owner.trecv(tag=TAG)
    while not all([sent.test(), came.test()]):
        pass
    region = owner.register(memory, access=BOTH, key=5 if chosen else None)
    remote = ofipy.RemoteRegion.from_bytes(bytes(region.remote))
    assert bool(remote.ways) is not chosen
    if not chosen:
        far.write(np.full(size, 7, np.uint8), peer, remote).wait(timeout=TIMEOUT)
        assert (memory == 7).all()
    plain = ofipy.RemoteRegion(remote.key, remote.offset, remote.length, remote.access)
    del remote
    served = far.write(np.full(size, 8, np.uint8), peer, plain)
    with pytest.raises(ofipy.TimedOut):
        served.wait(timeout=0.2)
    while not served.test():
        owner.domain.progress()
    assert (memory == 8).all()


@pytest.mark.needs("rma")
@pytest.mark.parametrize("allocated", [False, True])
def test_one_handle_serves_both(three: Three, allocated: bool) -> None:
    size = 100_000
    domain = three.middle.domain
    memory = domain.empty(2 * size, np.uint8, access=BOTH) if allocated else np.zeros(2 * size, np.uint8)
    region = domain.region(memory) if allocated else domain.register(memory, access=BOTH)
    remote = ofipy.RemoteRegion.from_bytes(bytes(region.remote))
    for half, (way, other) in enumerate(three.others.items()):
        mine = remote[half * size : (half + 1) * size]
        value, back = np.full(size, 10 + half, np.uint8), np.zeros(size, np.uint8)
        other.write(value, three.there[way], mine, complete="delivery").wait(timeout=TIMEOUT)
        other.read(back, three.there[way], mine).wait(timeout=TIMEOUT)
        assert (back == value).all()
    # What one has written the other reads.
    for half, (way, other) in enumerate(three.others.items()):
        back = np.zeros(size, np.uint8)
        other.read(back, three.there[way], remote[(1 - half) * size : (2 - half) * size]).wait(
            timeout=TIMEOUT
        )
        assert (back == 10 + 1 - half).all()


@pytest.mark.needs("rma", "refusing_device")
def test_a_region_that_the_device_refuses_is_served_by_the_owner(
    open_on: OpenOn, network: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OFIPY_RDMFAKE_NO_REGIONS", "1")
    owner, far = open_on("here"), open_on("far")
    memory = np.zeros(100_000, np.uint8)
    with owner.register(memory, access=BOTH) as region:
        assert not region.remote.ways
        drain_log()
        assert "unset OFIPY_RDMFAKE_NO_REGIONS" in caplog.text
        peer = far.insert(bytes(owner.address))
        far.write(np.full(len(memory), 7, np.uint8), peer, region.remote).wait(timeout=TIMEOUT)
        assert (memory == 7).all()
        assert far.way(peer) == network


@pytest.mark.needs("atomic")
@pytest.mark.parametrize("kind", ["plain", "mapped", "unaligned"])
def test_atomics_of_both_are_atomic_against_each_other(three: Three, kind: str) -> None:
    # Half a million of each, where it is to be hard: a neighbour updates mapped memory while the owner serves a remote.
    count = 500_000 if os.environ.get("OFIPY_STRESS") == "1" else 2000
    region, _memory = lent(three.middle, 8, kind)
    address, blob = bytes(three.middle.address), bytes(region.remote)
    fetched: dict[str, np.ndarray] = {}

    def add(way: str) -> None:
        fetched[way] = adder.add(three.others[way], address, blob, count)

    threads = [threading.Thread(target=add, args=(way,)) for way in three.others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each value was seen by one of them, once.
    assert sorted(np.concatenate(list(fetched.values())).tolist()) == list(range(2 * count))


# ------------------------------------------------------------------------------------------------- peers come and go


def test_the_queue_hears_once_of_each_change(open_on: OpenOn, three: Three) -> None:
    domain = open_on("here").domain
    events = domain.event_queue()
    ep = open_on("here", domain=domain, eq=events)
    peers = {way: ep.insert(other.address) for way, other in three.others.items()}
    for way, other in three.others.items():
        # Both begin at once, so that each may call the other.
        me = other.insert(ep.address)
        sends = [ep.tsend(b"x", peers[way], tag=1), other.tsend(b"x", me, tag=1)]
        ofipy.wait_all([*sends, ep.trecv(peers[way], tag=1), other.trecv(me, tag=1)], timeout=TIMEOUT)
    for other in three.others.values():
        other.fabric.close()
    seen = [events.wait(timeout=TIMEOUT) for _ in range(4)]
    assert {(each.kind, each.peer) for each in seen} == {
        (kind, peer)
        for kind in (ofipy.EventKind.PEER_UP, ofipy.EventKind.PEER_LOST)
        for peer in peers.values()
    }
    assert events.read() is None


@pytest.mark.parametrize("near", [True, False])
def test_the_loss_of_one_leaves_the_other_and_any_source(three: Three, network: str, near: bool) -> None:
    way, kept = ("shm", network) if near else (network, "shm")
    for each in three.peers:
        three.arrived(each, b"here")
        three.middle.trecv(three.peers[each], tag=TAG).wait(timeout=TIMEOUT)
    any_source, directed = three.middle.trecv(tag=TAG), three.middle.trecv(three.peers[way], tag=TAG)
    three.others[way].fabric.close()
    with pytest.raises(ofipy.PeerLost):
        directed.wait(timeout=TIMEOUT)
    three.arrived(kept, b"still here")
    assert any_source.wait(timeout=TIMEOUT).source == three.peers[kept]


# -------------------------------------------------------------------------------------------------------- texts, ports


@pytest.mark.needs("processes")
def test_one_text_meets_on_either_way(target: Target, open_on: OpenOn) -> None:
    service = target.free_service()
    server = open_on("here", service=service)
    text = str(server.address)
    anywhere = (text, text.partition("://")[2])
    here = (f"localhost:{service}", f"127.0.0.1:{service}", f"{socket.gethostname()}:{service}")
    for host, way, texts in (("here", "shm", anywhere + here), ("far", target.network, anywhere)):
        for text in texts:
            client = open_on(host)
            peer = client.insert(text)
            client.tsend(text.encode(), peer, tag=TAG).wait(timeout=TIMEOUT)
            assert server.trecv(tag=TAG).wait(timeout=TIMEOUT).data == text.encode()
            assert client.way(peer) == way


@pytest.mark.needs("processes")
def test_a_peer_of_another_host_is_written_as_any_other(open_on: OpenOn) -> None:
    ep = open_on("here")
    for text in ("link://198.51.100.7:7471", "198.51.100.7:7471"):
        assert str(ep.insert(text).address) == "link://198.51.100.7:7471"


def meets(ep: ofipy.Endpoint, plain: ofipy.Endpoint) -> str:
    """Both send to the other; the way that `ep` took."""
    peer, me = ep.insert(bytes(plain.address)), plain.insert(bytes(ep.address))
    ep.tsend(b"to plain", peer, tag=TAG).wait(timeout=TIMEOUT)
    assert plain.trecv(tag=TAG).wait(timeout=TIMEOUT).source == me
    plain.tsend(b"from plain", me, tag=TAG).wait(timeout=TIMEOUT)
    assert ep.trecv(tag=TAG).wait(timeout=TIMEOUT).source == peer
    return ep.way(peer)


def test_an_endpoint_of_one_way_meets_one_of_several(open_on: OpenOn) -> None:
    with ofipy.open(provider="shm", progress="auto") as plain, pytest.raises(ofipy.Unreachable):
        meets(open_on("far"), plain)
    ep = open_on("here")
    with ofipy.open(provider="shm", progress="auto") as plain:
        assert meets(ep, plain) == "shm"


@pytest.mark.needs("keys")
def test_a_plain_network_endpoint_of_this_host_needs_the_same_key(
    open_on: OpenOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ofipy.open(provider="tcp", progress="auto") as plain:
        error = outcome(open_on("here"), plain.address)
        assert isinstance(error, ofipy.ConnectionRefused)
        assert "OFIPY_AUTH_KEY_FILE" in str(error)
    new_key(tmp_path / "key")
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(tmp_path / "key"))
    with ofipy.open(provider="tcp", progress="auto") as plain:
        assert meets(open_on("here"), plain) == "tcp"


# ---------------------------------------------------------------------------------------------------------- bad input


def outcome(ep: ofipy.Endpoint, address: ofipy.Address | bytes) -> ofipy.FabricError | str:
    """How a message there ends: the error, or the way that it took. Never a hang."""
    try:
        peer = ep.insert(address)
        ep.tsend(b"who is there?", peer, tag=TAG, complete="delivery").wait(timeout=TIMEOUT)
    except ofipy.TimedOut:
        raise
    except ofipy.FabricError as error:
        return error
    return ep.way(peer)


@pytest.mark.parametrize("host", ["here", "far"])
def test_another_endpoint_at_the_address_is_not_the_peer(open_on: OpenOn, network: str, host: str) -> None:
    other, ep = open_on(host), open_on("here")
    altered = replace(other.address, identity=bytes(16 - 1) + b"\x01")
    error = outcome(ep, altered)
    assert isinstance(error, ofipy.ConnectionRefused)
    assert "another endpoint" in str(error)
    assert other.stats().unexpected_messages == 0
    # And who it really is remains reachable.
    assert outcome(ep, other.address) == {"here": "shm", "far": network}[host]


def test_an_endpoint_that_was_opened_anew_is_not_the_peer(target: Target, open_on: OpenOn) -> None:
    service, ep = target.free_service(), open_on("here")
    first = open_on("here", service=service)
    old = first.address
    first.fabric.close()
    open_on("here", service=service)
    assert isinstance(outcome(ep, old), ofipy.ConnectionRefused)


def test_a_way_that_is_not_known_here_is_left_out(open_on: OpenOn, network: str) -> None:
    other, ep = open_on("far"), open_on("here")
    unknown = ("quantum", b"entangled")
    more = replace(other.address, entries=(unknown, *other.address.entries))
    assert outcome(ep, more) == network
    with pytest.raises(ofipy.Unreachable, match="quantum"):
        ep.insert(ofipy.Address((unknown,)))


def test_a_later_version_is_refused(open_on: OpenOn) -> None:
    other, ep = open_on("far"), open_on("here")
    blob = bytearray(bytes(other.address))
    blob[4] += 1
    with pytest.raises(ofipy.IncompatiblePeer, match=f"version {blob[4]}"):
        ep.insert(bytes(blob))


@pytest.mark.parametrize("everywhere", [False, True])
def test_who_claims_to_be_of_this_host_gets_no_memory_of_it(
    open_on: OpenOn, network: str, everywhere: bool
) -> None:
    other, ep = open_on("far"), open_on("here")
    claim = replace(other.address, host=ep.address.host)
    if everywhere:
        # In the entry of shared memory too: somebody does answer there, and is of another host.
        shm = bytearray(other.address.raw("shm"))
        shm[8:16] = ep.address.raw("shm")[8:16]
        entries = tuple((name, bytes(shm) if name == "shm" else raw) for name, raw in other.address.entries)
        claim = replace(claim, entries=entries)
    result = outcome(ep, claim)
    assert result == network or isinstance(result, ofipy.FabricError)


def test_damaged_addresses_are_refused(open_on: OpenOn) -> None:
    ep = open_on("here")
    blob = bytes(open_on("far").address)
    for cut in range(len(blob)):
        with pytest.raises(ofipy.InvalidArgument):
            ep.insert(blob[:cut])


def test_an_entry_that_its_provider_cannot_read_is_left_out(open_on: OpenOn, network: str) -> None:
    other, ep = open_on("here"), open_on("here")
    entries = tuple((name, b"?" if name == "shm" else raw) for name, raw in other.address.entries)
    assert outcome(ep, replace(other.address, entries=entries)) == network
    with pytest.raises(ofipy.Unreachable):
        ep.insert(ofipy.Address(((network, bytes(lib.OFP_ADDRESS_MAX)),)))


@pytest.mark.needs("processes")
def test_who_does_not_listen_is_answered_on_its_own_connection(open_on: OpenOn) -> None:
    quiet, server = open_on("far", listens=False), open_on("here")
    assert quiet.address.connects_only
    assert not server.address.connects_only
    error = outcome(server, quiet.address)
    assert isinstance(error, ofipy.FabricError)
    for setting in ("node=", "OFIPY_INTERFACE", "OFIPY_AUTH_KEY_FILE"):
        assert setting in str(error)
    there = quiet.insert(server.address)
    quiet.tsend(b"question", there, tag=TAG).wait(timeout=TIMEOUT)
    question = server.trecv(tag=TAG).wait(timeout=TIMEOUT)
    server.tsend(b"answer", question.source, tag=TAG).wait(timeout=TIMEOUT)
    assert quiet.trecv(there, tag=TAG).wait(timeout=TIMEOUT).data == b"answer"
    # Neighbours need no network.
    neighbour = open_on("far", listens=False)
    assert outcome(neighbour, quiet.address) == "shm"
