# SPDX-License-Identifier: BSD-3-Clause
"""Objects of somebody else, and objects that are gone: each way of posting refuses them, and nothing moves."""

import errno
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from remote import BOTH
from sides import Target
from ways import MESSAGES, SIZE, Way, every_peer_way, every_region_way, good

import ofipy
from ofipy import Op
from ofipy._base.binding import lib

Open = Callable[..., ofipy.Endpoint]

TIMEOUT = 20


@pytest.fixture
def target_memory(ep: ofipy.Endpoint) -> ofipy.Region:
    """What peers may read and write, where the provider has that."""
    if not ep.info.caps & ofipy.Cap.RMA:
        return ep.register(bytearray(SIZE))
    return ep.register(bytearray(b"target##"), access=BOTH)


def remote_of(region: ofipy.Region) -> ofipy.RemoteRegion | None:
    return region.remote if region.access & BOTH else None


def refused(way: Way, kind: type[ofipy.FabricError], *arguments: Any) -> ofipy.FabricError:
    """The one error that a way ends with; it says what to do."""
    with pytest.raises(kind) as caught:
        way(*arguments)
    assert type(caught.value) is kind
    assert caught.value.operation
    assert caught.value.remedy
    return caught.value


def nothing_moved(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """What is sent now is what arrives, and no receive is there before this one."""
    for number in range(2):
        room = bytearray(1)
        receive = ep.trecv_into(room, me, tag=1)
        ep.tsend(bytes([number + 1]), me, tag=1).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == 1
        assert room[0] == number + 1
    assert len(ep.cq.read()) == 0


# ---------------------------------------------------------------------------------------------------------- regions


@pytest.fixture
def foreign_region(ep: ofipy.Endpoint, open_endpoint: Open) -> ofipy.Region:
    """A region of another domain under an id that is another region's here: the worst there can be."""
    own, other = ep.register(bytearray(b"OWN MINE")), open_endpoint()
    region = other.register(bytearray(b"foreign!"))
    return ofipy.Region(
        region._domain, own.id, 0, SIZE, start=0, access=region.access, key=0, remote_base=0,
        keep=region._keep, core=region._core,
    )  # fmt: skip


@every_region_way
def test_a_region_of_another_domain(
    ep: ofipy.Endpoint, me: ofipy.Peer, foreign_region: ofipy.Region, target_memory: ofipy.Region, way: Way
) -> None:
    error = refused(way, ofipy.InvalidArgument, ep, foreign_region, me, remote_of(target_memory))
    assert error.errno == errno.EXDEV
    assert "belongs to another domain" in error.message
    assert bytes(foreign_region.array) == b"foreign!"
    nothing_moved(ep, me)
    if remote_of(target_memory):
        assert bytes(target_memory.array) == b"target##"


@every_region_way
def test_a_closed_region(ep: ofipy.Endpoint, me: ofipy.Peer, target_memory: ofipy.Region, way: Way) -> None:
    memory = bytearray(b"closed!!")
    region = ep.register(memory)
    region.close()
    # Among these are those that get its place in the table.
    others = [ep.register(bytearray(b"%08d" % number)) for number in range(100)]
    error = refused(way, ofipy.Closed, ep, region, me, remote_of(target_memory))
    assert error.errno == lib.OFP_ENOREGION
    assert memory == b"closed!!"
    assert [bytes(other.array) for other in others] == [b"%08d" % number for number in range(100)]
    nothing_moved(ep, me)


def test_slices_know_their_domain_and_allocated_memory_its_own(
    ep: ofipy.Endpoint, open_endpoint: Open
) -> None:
    other = open_endpoint()
    for region in (ep.register(bytearray(SIZE)), ep.domain.region(ep.empty(SIZE))):
        assert region._domain is ep.domain is region[2:4]._domain
    foreign = other.domain.region(other.empty(SIZE))
    with pytest.raises(ofipy.InvalidArgument, match="another domain"):
        ep.post_trecv(foreign[2:4], tag=1)
    # As plain memory it is anybody's.
    me = ep.insert(ep.address)
    receive = ep.trecv_into(other.empty(10_000), me, tag=1)
    ep.tsend(other.empty(10_000), me, tag=1).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 10_000


def test_ids_of_regions_do_not_come_again(ep: ofipy.Endpoint) -> None:
    seen = set()
    for _ in range(500):
        region = ep.register(bytearray(1))
        region.close()
        seen.add(region.id)
    assert len(seen) == 500
    assert 0 not in seen


@pytest.mark.parametrize("name", [name for name in MESSAGES if name.startswith("prepare")])
def test_a_region_closed_between_preparing_and_starting(
    ep: ofipy.Endpoint, me: ofipy.Peer, name: str
) -> None:
    region, arguments = ep.register(bytearray(SIZE)), {"tag": 1} if "_t" in name else {}
    prepared = getattr(ep, name)(region, me, **arguments)
    region.close()
    for number in range(100):
        ep.register(bytearray([number] * SIZE))
    for _ in range(2):
        with pytest.raises(ofipy.Closed, match="no region of this domain") as caught:
            prepared.start()
        assert caught.value.errno == lib.OFP_ENOREGION
    with pytest.raises(ofipy.Closed):
        ofipy.start(prepared)
    nothing_moved(ep, me)


# ------------------------------------------------------------------------------------------------------------ peers


@every_peer_way
def test_a_peer_of_another_vector(
    ep: ofipy.Endpoint, me: ofipy.Peer, open_endpoint: Open, target_memory: ofipy.Region, way: Way
) -> None:
    """Both vectors are fresh, so its number is that of a peer of this one."""
    stranger = open_endpoint().insert(ep.address)
    assert int(stranger) == int(me)
    if way is MESSAGES["trecv_into from any"]:
        return
    error = refused(way, ofipy.InvalidArgument, ep, good(ep), stranger, remote_of(target_memory))
    assert error.errno == errno.EXDEV
    assert "belongs to another address vector" in error.message
    nothing_moved(ep, me)


@every_peer_way
def test_a_removed_peer(
    ep: ofipy.Endpoint, me: ofipy.Peer, open_endpoint: Open, target_memory: ofipy.Region, way: Way
) -> None:
    other = open_endpoint()
    gone = ep.insert(bytes(other.address))
    ep.av.remove(gone)
    if way is MESSAGES["trecv_into from any"]:
        return
    error = refused(way, ofipy.UnknownPeer, ep, good(ep), gone, remote_of(target_memory))
    assert error.errno == lib.OFP_EADDRNOTAVAIL
    nothing_moved(ep, me)


def test_the_place_of_a_removed_peer_is_no_way_to_the_next(ep: ofipy.Endpoint, open_endpoint: Open) -> None:
    """The whole table is gone through often enough that others have the places of those that were removed."""
    next_one, gone = open_endpoint(), []
    for number in range(40):
        peer = ep.insert(bytes(next_one.address))
        gone.append(peer)
        assert [int(each) for each in gone].count(int(peer)) == 1
        ep.av.remove(peer)
        with pytest.raises(ofipy.UnknownPeer):
            ep.av.remove(gone[number // 2])
    peer = ep.insert(bytes(next_one.address))
    assert int(peer) > 2**20, "its place was another one's before"
    assert list(ep.av) == [peer]
    assert len(ep.av) == 1
    for old in gone:
        with pytest.raises(ofipy.UnknownPeer):
            ep.tsend(b"for nobody", old, tag=1)
        with pytest.raises(ofipy.UnknownPeer):
            ep.trecv_into(bytearray(9), old, tag=1)
        with pytest.raises(ofipy.UnknownPeer):
            _ = old.address
    ep.tsend(b"hello", peer, tag=1).wait(timeout=TIMEOUT)
    got = next_one.trecv_into(bytearray(9), tag=1).wait(timeout=TIMEOUT)
    assert got.length == 5
    next_one.tsend(b"answer", next_one.insert(bytes(ep.address)), tag=2).wait(timeout=TIMEOUT)
    got = ep.trecv_into(bytearray(9), peer, tag=2).wait(timeout=TIMEOUT)
    assert (got.length, got.source) == (6, peer)


def test_fresh_vectors_number_their_peers_from_zero(ep: ofipy.Endpoint, target: Target) -> None:
    assert [int(peer) for peer in ep.av.insert_range("localhost", service=7471, services=40)] == list(
        range(40)
    )


def test_a_vector_refuses_peers_of_another(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    others = ep.domain.av()
    stranger = others.insert(ep.address)
    for call in (ep.av.remove, ep.av.address):
        with pytest.raises(ofipy.InvalidArgument, match="another address vector") as caught:
            call(stranger)
        assert caught.value.errno == errno.EXDEV
    assert list(ep.av) == [me]
    with pytest.raises(ofipy.Closed):
        _ = ofipy.Peer(0).address
    with pytest.raises(ofipy.InvalidArgument):
        ep.av.address(ofipy.Peer(0))


@pytest.mark.needs("shared_context")
def test_shared_contexts(ep: ofipy.Endpoint, open_endpoint: Open, foreign_region: ofipy.Region) -> None:
    domain, other = ep.domain, open_endpoint()
    context = domain.receive_context()
    stranger, gone = ep.insert(bytes(other.address)), context.av.insert(bytes(other.address))
    context.av.remove(gone)
    region = good(ep)
    for name, way in MESSAGES.items():
        if "recv" not in name:
            continue
        refused(way, ofipy.InvalidArgument, context, foreign_region, None, None)
        if "from any" not in name:
            refused(way, ofipy.InvalidArgument, context, region, stranger, None)
            refused(way, ofipy.UnknownPeer, context, region, gone, None)
    region.close()
    for name, way in MESSAGES.items():
        if "recv" in name:
            refused(way, ofipy.Closed, context, region, None, None)


def test_aliases(
    ep: ofipy.Endpoint, me: ofipy.Peer, open_endpoint: Open, foreign_region: ofipy.Region
) -> None:
    alias = ep.alias(complete="transmit")
    stranger, closed = open_endpoint().insert(ep.address), good(ep)
    closed.close()
    for name, way in MESSAGES.items():
        if "many" in name and not ep.info.caps & ofipy.Cap.MULTI_RECV:
            continue
        refused(way, ofipy.InvalidArgument, alias, foreign_region, me, None)
        refused(way, ofipy.Closed, alias, closed, me, None)
        if "from any" not in name:
            refused(way, ofipy.InvalidArgument, alias, good(ep), stranger, None)
    nothing_moved(alias, me)


# ---------------------------------------------------------------------------------------------------------- records


def record(ep: ofipy.Endpoint, region: int, peer: int) -> Any:
    ops = ep.domain.operations(1)
    ops["op"], ops["region"], ops["peer"], ops["length"], ops["tag"] = Op.TSEND, region, peer, SIZE, 1
    ops["context"] = 77
    return ops


def test_stale_ids_in_records(ep: ofipy.Endpoint, me: ofipy.Peer, open_endpoint: Open) -> None:
    region, gone = good(ep), ep.insert(bytes(open_endpoint().address))
    segments = np.zeros(2, ofipy.SEGMENT_DTYPE)
    region.close()
    ep.av.remove(gone)
    keep = [good(ep) for _ in range(50)]
    with pytest.raises(ofipy.Closed, match="it is closed, or another domain's"):
        ep.post(record(ep, region.id, me))
    with pytest.raises(ofipy.UnknownPeer, match="it was never inserted, or it was removed"):
        ep.post(record(ep, keep[0].id, gone))
    segments["region"], segments["length"] = (keep[0].id, region.id), 4
    several = record(ep, 0, me)
    several["segments"], several["segment_count"] = segments.ctypes.data, 2
    if ep.info.segment_limit >= 2:
        with pytest.raises(ofipy.Closed):
            ep.post(several)
    counter = ep.domain.counter()
    with pytest.raises(ofipy.Closed):
        ep.post(record(ep, region.id, me), after=(counter, 1))
    nothing_moved(ep, me)


def test_foreign_ids_in_records(ep: ofipy.Endpoint, me: ofipy.Peer, open_endpoint: Open) -> None:
    """Refused when the generation differs; of two domains it is the same once in 4095 times."""
    own = good(ep)
    other = next(region for _ in range(5) if (region := good(open_endpoint())).id != own.id)
    with pytest.raises(ofipy.Closed, match="it is closed, or another domain's"):
        ep.post(record(ep, other.id, me))
    nothing_moved(ep, me)


def test_what_goes_before_deferred_work_starts(
    ep: ofipy.Endpoint, me: ofipy.Peer, open_endpoint: Open
) -> None:
    """It ends with the same codes, in a completion."""
    region, gone, counter = good(ep), ep.insert(bytes(open_endpoint().address)), ep.domain.counter()
    kept = good(ep)
    ep.post(record(ep, region.id, me), after=(counter, 1))
    ep.post(record(ep, kept.id, gone), after=(counter, 1))
    region.close()
    ep.av.remove(gone)
    for _ in range(50):
        good(ep)
    counter.add(1)
    rows = ep.cq.wait(min=2, timeout=TIMEOUT)
    assert set(rows["error"]) == {lib.OFP_ENOREGION, lib.OFP_EADDRNOTAVAIL}


# --------------------------------------------------------------------------------- queues, counters, vectors, contexts


@pytest.fixture
def domains(target: Target) -> Iterator[tuple[ofipy.Domain, ofipy.Domain]]:
    """Two of one kind."""
    made = target.open_domain(), target.open_domain()
    yield made
    for domain in made:
        domain.fabric.close()


def test_queues_vectors_and_counters_of_another_domain(domains: tuple[ofipy.Domain, ofipy.Domain]) -> None:
    own, other = domains
    mine, theirs = own.counter(), other.counter()
    ep = own.endpoint().enable()
    ops = record(ep, 0, ep.insert(ep.address))
    ops["length"], ops["endpoint"] = 0, ep.id
    memory = own.register(bytearray(8))
    calls: list[Callable[[], Any]] = [
        lambda: own.endpoint(cq=other.cq()),
        lambda: own.endpoint(av=other.av()),
        lambda: own.endpoint(send_cq=other.cq()),
        lambda: own.endpoint(eq=other.event_queue()),
        lambda: own.endpoint(counters={"send": theirs}),
        lambda: ep.post(ops, after=(theirs, 1)),
        lambda: own.defer(ops, after=(theirs, 1)),
        lambda: own.defer(ops, after=(mine, 1), completes=theirs),
        lambda: own.defer_reduce(memory, memory, op="sum", dtype="u1", after=(theirs, 1)),
        lambda: own.defer_reduce(memory, memory, op="sum", dtype="u1", after=(mine, 1), completes=theirs),
        lambda: other.defer_reduce(memory, memory, op="sum", dtype="u1", after=(theirs, 1)),
        lambda: mine.add(1, after=(theirs, 1)),
        lambda: mine.set(1, after=(theirs, 1)),
    ]
    if own.info.caps & ofipy.Cap.SHARED_CONTEXT:
        context = other.receive_context()
        calls += [
            lambda: own.endpoint(rx=context),
            lambda: own.receive_context(cq=other.cq()),
            lambda: own.receive_context(av=other.av()),
        ]
    if own.info.caps & ofipy.Cap.RMA_EVENT:
        calls += [
            lambda: own.register(bytearray(8), access=BOTH, counters={"remote_write": theirs}),
            lambda: own.empty(8, access=BOTH, counters={"remote_write": theirs}),
        ]
    for call in calls:
        with pytest.raises(ofipy.InvalidArgument, match="belongs to another domain") as caught:
            call()
        assert caught.value.errno == errno.EXDEV
        assert caught.value.remedy
    assert own.flush_work() == 0
    # The errors refer to this frame, and so to the endpoint: a collector may come before the domain is closed.
    ep.close()


@pytest.mark.needs("connections")
def test_connected_endpoints(target: Target, domains: tuple[ofipy.Domain, ofipy.Domain]) -> None:
    connecting = target.connected()
    assert connecting is not None
    listener, domain = connecting.listen(progress="auto"), connecting.open_domain(progress="auto")
    rdm = domains[0].endpoint().enable()
    try:
        with pytest.raises(ofipy.InvalidArgument, match="belongs to another domain"):
            listener.domain.passive_endpoint(eq=domain.event_queue())
        client = domain.endpoint().enable()
        connection = client.connect(listener.address)
        server = listener.wait(timeout=TIMEOUT).accept()
        connection.wait(timeout=TIMEOUT)
        region, closed = client.register(bytearray(b"foreign!")), server.register(bytearray(SIZE))
        closed.close()
        stranger = rdm.insert(rdm.address)
        for name, way in MESSAGES.items():
            if "many" in name and not server.info.caps & ofipy.Cap.MULTI_RECV:
                continue
            refused(way, ofipy.InvalidArgument, server, region, server.peer, None)
            refused(way, ofipy.Closed, server, closed, server.peer, None)
            if "from any" not in name:
                refused(way, ofipy.InvalidArgument, server, good(server), client.peer, None)
                refused(way, ofipy.InvalidArgument, server, good(server), stranger, None)
        with pytest.raises(ofipy.FabricError):
            rdm.tsend(b"to another's peer", server.peer, tag=1)
        nothing_moved_between(client, server)
    finally:
        rdm.close()
        listener.fabric.close()
        domain.fabric.close()


def nothing_moved_between(client: ofipy.Endpoint, server: ofipy.Endpoint) -> None:
    for one, other in ((client, server), (server, client)):
        room = bytearray(1)
        receive = other.trecv_into(room, tag=1)
        one.tsend(b"!", tag=1).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == 1
        assert room == b"!"
