# SPDX-License-Identifier: BSD-3-Clause
"""What may leave the process, and what is refused there with what to send in its place."""

import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sides import Target

import ofipy

TIMEOUT = 30


def received(ep: ofipy.Endpoint, me: ofipy.Peer) -> ofipy.Message:
    out, into = ep.tsend(b"hello", me, tag=3), bytearray(5)
    request = ep.trecv_into(into, tag=3)
    request.wait(timeout=TIMEOUT)
    out.wait(timeout=TIMEOUT)
    return ofipy.Message(into, request.source, request.tag, request.length, request.remote_data)


def test_a_peer_is_refused_and_its_address_travels(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(ofipy.InvalidArgument, match=r"Peer objects.*peer\.address"):
            pickle.dumps(me, protocol)
    assert ep.insert(pickle.loads(pickle.dumps(me.address))) is me


def test_a_message_is_refused_for_its_source(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    message = received(ep, me)
    assert message.source == me
    with pytest.raises(ofipy.InvalidArgument, match=r"peer\.address"):
        pickle.dumps(message)
    anonymous = dataclasses.replace(message, source=None)
    assert pickle.loads(pickle.dumps(anonymous)) == anonymous


def test_copies_in_the_process_keep_the_peer(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    assert copy.copy(me) is me
    assert copy.deepcopy([me])[0] is me
    message = received(ep, me)
    assert copy.deepcopy(message).source is message.source
    assert dataclasses.asdict(message)["source"] is message.source


def bound(ep: ofipy.Endpoint) -> Iterator[Any]:
    """One of everything that belongs to its process."""
    yield from (ep, ep.domain, ep.fabric, ep.cq, ep.av, ep.alias())
    yield from (ep.domain.counter(), ep.domain.event_queue())
    yield from (ep.register(bytearray(8)), ep.domain.region(ep.empty(8)))
    yield ep.domain.counter().add(1, after=(ep.domain.counter(), 1))
    yield from (ep.cq.batch(4), ep.prepare_trecv(bytearray(8), tag=1), ep.trecv_into(bytearray(8), tag=2))
    if not ep.info.offloads_matching:
        yield from (ep.domain.receive_context(), ep.trecv(tag=3), ep.trecv_many(bytearray(100), tag=4))


def test_what_belongs_to_its_process_says_so(ep: ofipy.Endpoint) -> None:
    for each in bound(ep):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(ofipy.InvalidArgument, match="mean nothing outside their process"):
                attempt(each)
    ep.close()
    with pytest.raises(ofipy.InvalidArgument, match=r"Endpoint objects.*endpoint\.address"):
        pickle.dumps(ep)


@pytest.mark.needs("connections")
def test_listeners_and_requests_say_so(target: Target) -> None:
    connected = target.connected()
    assert connected is not None
    with connected.listen(progress="auto") as listener, connected.open(progress="auto") as client:
        client.connect(listener.address)
        for each in (listener, listener.wait(timeout=TIMEOUT), client.peer):
            with pytest.raises(ofipy.InvalidArgument, match="mean nothing outside their process"):
                pickle.dumps(each)
        listener.fabric.close()
        client.fabric.close()


def test_what_travels(ep: ofipy.Endpoint, open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    region = ep.register(bytearray(8), access="remote_read")
    for each in (ep.address, ep.info, region.remote, ep.stats(), ofipy.Cap.MSG, ofipy.Event(data=b"x")):
        assert pickle.loads(pickle.dumps(each)) == each
    array = ep.empty(4)
    array[:] = 7
    assert np.array_equal(pickle.loads(pickle.dumps(array)), array)
