# SPDX-License-Identifier: BSD-3-Clause
"""What an endpoint says of its protocols: messages of the lengths of each row are counted under the row's protocol."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from connected import TIMEOUT, OpenDomain, connect
from sides import Target

import ofipy
from ofipy.statistics import Reader

OpenEndpoint = Callable[..., ofipy.Endpoint]

LONGEST = 8 << 20  # bytes that this test sends of a row without an end
FEW = 12  # messages of one length: with more, shared memory would try other methods


@pytest.fixture
def reader() -> Iterator[Reader]:
    with Reader() as opened:
        yield opened


@pytest.fixture(params=["no", "always"])
def _attach(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where costs choose, they may choose anew for each message. These settings leave them no choice."""
    monkeypatch.setenv("OFIPY_SHM_ATTACH", request.param)


def counts(reader: Reader) -> Counter[tuple[str, str]]:
    """Messages of this process by direction and protocol."""
    found: Counter[tuple[str, str]] = Counter()
    for process in reader.scan().processes:
        if process.pid == os.getpid():
            for endpoint in process.endpoints:
                found.update({key: sum(each.counts) for key, each in endpoint.messages.items()})
    return found


def row_of(
    rows: Sequence[ofipy.Protocol], length: int, *, direction: str = "sent", memory: str = "any"
) -> ofipy.Protocol | None:
    """The one row of a length. Received messages have none where their receiver does not choose."""
    found = [
        row
        for row in rows
        if (row.direction, row.memory) == (direction, memory) and row.from_size <= length <= row.to_size
    ]
    assert len(found) <= 1
    return found[0] if found else None


def check_whole(rows: Sequence[ofipy.Protocol], longest: int) -> None:
    """Rows leave no length out, and name none twice."""
    sent = [row for row in rows if row.direction == "sent"]
    assert rows[: len(sent)] == tuple(sent)
    for direction, memory, first in (
        ("sent", "any", 0),
        ("received", "private", 1),
        ("received", "shared", 1),
    ):
        part = [row for row in rows if (row.direction, row.memory) == (direction, memory)]
        if direction == "sent" or part:
            assert part[0].from_size == first
            assert part[-1].to_size == longest
        assert all(row.from_size <= row.to_size for row in part)
        assert all(one.to_size + 1 == following.from_size for one, following in pairwise(part))


def lengths_of(rows: Sequence[ofipy.Protocol]) -> list[int]:
    """The ends of all rows, and a length within each."""
    found = {0}
    for row in rows:
        last = min(row.to_size, max(row.from_size, LONGEST))
        found |= {row.from_size, (row.from_size + last) // 2, last}
    return sorted(found)


def share(here: ofipy.Endpoint, there: ofipy.Endpoint, peer: Any, reader: Reader) -> np.ndarray[Any, Any]:
    """Memory of the provider's that the peer has mapped, where providers share memory: that takes a few messages."""
    memory = here.domain.empty(LONGEST, np.uint8)
    for _ in range(FEW):
        before, receive = counts(reader), there.recv_into(np.empty(100_000, np.uint8))
        here.send(memory[:100_000], peer).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        if ("received", "mapped") in counts(reader) - before or here.way(peer) != "shm":
            break
    return memory


def check_messages(
    reader: Reader, here: ofipy.Endpoint, there: ofipy.Endpoint, peer: Any, source: Any, memory: str
) -> set[str]:
    """Messages are counted as the rows say. Returns the protocols of those that were received."""
    received_by = set()
    whole = share(here, there, peer, reader) if memory == "shared" else np.empty(LONGEST, np.uint8)
    for length in lengths_of(here.protocols(peer)):
        payload, target = whole[:length], np.empty(length, np.uint8)
        payload[:] = 7
        receive = there.recv_into(target, source)
        # What the receiver has granted again for the message before arrives before this reply.
        answer = here.recv_into(bytearray(1), peer)
        there.send(bytes(1), source).wait(timeout=TIMEOUT)
        answer.wait(timeout=TIMEOUT)
        sent, received = row_of(here.protocols(peer), length), None
        assert sent is not None
        if sent.protocol == "announced":
            received = row_of(there.protocols(source), length, direction="received", memory=memory)
        before = counts(reader)
        here.send(payload, peer).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        assert np.array_equal(payload, target)
        arrived = received.protocol if received else sent.protocol
        assert counts(reader) - before == {("sent", sent.protocol): 1, ("received", arrived): 1}, (
            length,
            sent,
        )
        received_by.add(arrived)
    return received_by


@pytest.mark.usefixtures("_attach")
@pytest.mark.parametrize("memory", ["private", "shared"])
def test_messages_travel_as_the_rows_say(
    target: Target, reader: Reader, open_endpoint: OpenEndpoint, memory: str
) -> None:
    here, there = open_endpoint(), open_endpoint()
    peer = here.insert(there.address)
    assert here.protocols(peer) == ()
    receive = there.recv()
    here.send(b"first", peer).wait(timeout=TIMEOUT)
    source = receive.wait(timeout=TIMEOUT).source
    assert source is not None
    check_whole(here.protocols(peer), here.info.max_msg_size)
    if not there.info.offloads_matching:  # such a transport connects with the first message of its own side
        check_whole(there.protocols(source), there.info.max_msg_size)
    received = check_messages(reader, here, there, peer, source, memory)
    if here.way(peer) == "shm":
        attach = os.environ["OFIPY_SHM_ATTACH"]
        wanted = "mapped" if memory == "shared" else {"no": "pipelined", "always": "attached"}[attach]
        assert received == {"eager", "bounce", wanted}
    elif here.info.offloads_matching:
        assert received == {"offloaded"}
    elif target.provider != "fake":  # it copies all messages within its process
        assert received == {"eager", "announced"}


@pytest.mark.needs("connections")
@pytest.mark.untagged
def test_connected_endpoints_need_no_peer(open_domain: OpenDomain, reader: Reader) -> None:
    listener, client = open_domain().passive_endpoint(), open_domain().endpoint().enable()
    listener.listen()
    assert client.protocols() == ()
    server = connect(listener, client)
    for one, other in ((client, server), (server, client)):
        rows = one.protocols()
        check_whole(rows, one.info.max_msg_size)
        expected = row_of(rows, 8)
        assert expected is not None
        before, receive = counts(reader), other.recv()
        one.send(bytes(8)).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        assert counts(reader) - before == {("sent", expected.protocol): 1, ("received", expected.protocol): 1}


def test_a_full_receiver_is_told(target: Target, open_endpoint: OpenEndpoint) -> None:
    """A receiver without memory for unexpected messages has its senders announce also short ones."""
    here, there = open_endpoint(), open_endpoint(unexpected_size=64 << 10)
    peer = here.insert(there.address, wait=TIMEOUT)
    if here.info.offloads_matching:
        assert [(row.protocol, row.reason) for row in here.protocols(peer)] == [("offloaded", "forced")]
        return
    if target.provider == "fake":
        assert [(row.protocol, row.reason) for row in here.protocols(peer)] == [("eager", "forced")]
        return
    length, full = 4000, ("announced", "memory")
    for _ in range(1000):  # tcp has granted 2 MiB before
        row = row_of(here.protocols(peer), length)
        assert row is not None
        if (row.protocol, row.reason) == full:
            break
        assert row.reason == "threshold"
        here.send(bytes(length), peer)
        there.domain.progress()
    else:
        pytest.fail(f"{target.provider} never announces messages of {length} bytes")


def test_what_is_no_peer_is_refused(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    assert ep.alias().protocols(me) == ep.protocols(me)
    with pytest.raises(ofipy.UnknownPeer):
        ep.protocols(4095)
