# SPDX-License-Identifier: BSD-3-Clause
"""Address vectors: ranges, iteration, and peers that are removed while messages move."""

import threading
from collections.abc import Callable

import pytest
from sides import Target

import ofipy

Open = Callable[..., ofipy.Endpoint]
TIMEOUT = 20
LARGE = 70_000


def host_of(target: Target) -> str:
    """A host, as a person writes it, that every provider of one machine or process reaches."""
    return "localhost"


# --------------------------------------------------------------------------------------------- ranges and iteration


def test_a_range_of_services(ep: ofipy.Endpoint, target: Target) -> None:
    peers = ep.av.insert_range(host_of(target), service=7471, services=4)
    assert len(set(peers)) == 4
    assert peers == [ep.insert(f"{host_of(target)}:{7471 + step}") for step in range(4)]
    # What is there already keeps its index.
    assert ep.av.insert_range(host_of(target), service=7473, services=3)[:2] == peers[2:]


def test_a_range_is_entered_whole_or_not_at_all(
    ep: ofipy.Endpoint, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ep.av.insert_range(host_of(target), service=7471)
    before, insert = list(ep.av), ofipy.AddressVector.insert

    def insert_three(self: ofipy.AddressVector, address: bytes) -> ofipy.Peer:
        if len(self) == len(before) + 3:
            raise ofipy.NoMemory("the fourth one fails")
        return insert(self, address)

    with monkeypatch.context() as patch:
        patch.setattr(ofipy.AddressVector, "insert", insert_three)
        with pytest.raises(ofipy.NoMemory):
            ep.av.insert_range(host_of(target), service=7470, services=6)
    for wrong in ({"nodes": 2}, {"services": 0}, {"service": "port", "services": 2}):
        arguments = {"service": 7471} | wrong
        with pytest.raises(ofipy.InvalidArgument):
            ep.av.insert_range(None, **arguments)  # type: ignore[arg-type]
    assert list(ep.av) == before
    assert known[0] in before


@pytest.mark.parametrize("service", [-1, 65536, 70_000])
def test_a_number_that_is_no_port(ep: ofipy.Endpoint, open_endpoint: Open, service: int) -> None:
    """Nobody is led to the port that is left of it in 16 bits."""
    with pytest.raises(ofipy.InvalidArgument, match=f"service={service}; 0 to 65535 is meant"):
        open_endpoint(service=service)
    with pytest.raises(ofipy.InvalidArgument, match=f"service={service}; 0 to 65535 is meant"):
        ep.av.insert_range(None, service=service)
    if ep.info.address_format not in (ofipy.AddressFormat.IPV4, ofipy.AddressFormat.IPV6):
        return  # as text it is a name
    with pytest.raises(ofipy.InvalidArgument, match=f"service {service}"):
        open_endpoint(service=str(service))
    for host in ("localhost", "127.0.0.1", "192.0.2.1"):
        with pytest.raises(ofipy.InvalidArgument, match=f"service {service}"):
            ep.insert(f"{host}:{service}")


def test_iteration_survives_changes(ep: ofipy.Endpoint, target: Target) -> None:
    peers = ep.av.insert_range(host_of(target), service=7471, services=5)
    assert list(ep.av) == sorted(peers)
    seen = []
    for peer in ep.av:
        seen.append(peer)
        if peer == peers[1]:
            ep.av.remove(peers[2])
            added = ep.insert(f"{host_of(target)}:9999")
    assert peers[2] not in seen
    assert added in seen
    assert [str(peer.address) for peer in seen[:1]] == [str(peers[0].address)]
    assert len(ep.av) == 5 == len(list(ep.av))


# ---------------------------------------------------------------------------------------------------------- removal


def ends(request: ofipy.Request) -> bool:
    """Whether it went well; being cancelled is the other way to end."""
    try:
        request.wait(timeout=TIMEOUT)
    except ofipy.Canceled:
        return False
    return True


@pytest.mark.pairs
def test_removal_cancels_what_is_under_way_to_that_peer_only(open_endpoint: Open) -> None:
    ep, stays, goes = open_endpoint(), open_endpoint(), open_endpoint()
    peer = ep.insert(bytes(stays.address))
    for number in range(10):
        victim = ep.insert(bytes(goes.address))
        ep.tsend(b"hello", victim, tag=number).wait(timeout=TIMEOUT)
        assert goes.trecv_into(bytearray(9), tag=number).wait(timeout=TIMEOUT).length == 5
        # Where the wire takes a message whole it is not under way for long, unless it waits for its receive.
        cancelled = [ep.tsend(bytes(LARGE), victim, tag=1000, complete="match") for _ in range(5)]
        kept = [ep.tsend(bytes(LARGE), peer, tag=number) for _ in range(5)]
        ep.av.remove(victim)
        assert victim not in list(ep.av)
        for request in cancelled:
            assert not ends(request)
        for request in kept:
            assert stays.trecv_into(bytearray(LARGE), tag=number).wait(timeout=TIMEOUT).length == LARGE
            request.wait(timeout=TIMEOUT)
        with pytest.raises(ofipy.UnknownPeer):
            ep.tsend(b"", victim)


@pytest.mark.pairs
def test_removal_cancels_receives_that_name_the_peer(open_endpoint: Open) -> None:
    """Also when nothing was ever sent to it or heard of it: nobody else will have its index."""
    ep, other = open_endpoint(), open_endpoint()
    for met in (False, True):
        peer = ep.insert(bytes(other.address))
        if met:
            ep.tsend(b"hello", peer, tag=2).wait(timeout=TIMEOUT)
            other.trecv_into(bytearray(9), tag=2).wait(timeout=TIMEOUT)
        receives = [ep.trecv_into(bytearray(8), peer, tag=tag) for tag in (1, 1, 3)]
        ep.av.remove(peer)
        for receive in receives:
            with pytest.raises(ofipy.Canceled):
                receive.wait(timeout=TIMEOUT)


@pytest.mark.pairs
def test_removal_while_other_threads_send(open_endpoint: Open) -> None:
    ep, stays, goes = open_endpoint(), open_endpoint(), open_endpoint()
    peer, rounds, failures = ep.insert(bytes(stays.address)), 100, []

    def send() -> None:
        try:
            for number in range(rounds):
                ep.tsend(number.to_bytes(4, "little") + bytes(number * 50), peer, tag=1).wait(timeout=TIMEOUT)
        except ofipy.FabricError as error:
            failures.append(error)

    def receive() -> None:
        room = bytearray(rounds * 50 + 4)
        try:
            for number in range(rounds):
                got = stays.trecv_into(room, tag=1).wait(timeout=TIMEOUT)
                assert got.length == number * 50 + 4
                assert int.from_bytes(room[:4], "little") == number
        except (ofipy.FabricError, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=each) for each in (send, receive)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        victim = ep.insert(bytes(goes.address))
        requests = [ep.tsend(bytes(size), victim, tag=2) for size in (10, LARGE)]
        ep.av.remove(victim)
        for request in requests:
            ends(request)
    for thread in threads:
        thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.pairs
def test_a_removed_peer_that_comes_back_is_met_again(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    for number in range(5):
        peer = ep.insert(bytes(other.address))
        ep.tsend(bytes([number]), peer, tag=7).wait(timeout=TIMEOUT)
        room = bytearray(1)
        got = other.trecv_into(room, tag=7).wait(timeout=TIMEOUT)
        assert room == bytes([number])
        other.tsend(b"answer", got.source, tag=8).wait(timeout=TIMEOUT)
        assert ep.trecv_into(bytearray(9), tag=8).wait(timeout=TIMEOUT).source == peer
        ep.av.remove(peer)
