# SPDX-License-Identifier: BSD-3-Clause
"""What the core adds to every transport, and says so in the info."""

from collections.abc import Callable

import numpy as np
import pytest
from sides import Target

import ofipy

Open = Callable[..., ofipy.Endpoint]
TAG = 7
TIMEOUT = 20


def test_multi_receive_wherever_the_core_matches(target: Target) -> None:
    info = target.info()
    if not info.offloads_matching:
        assert ofipy.Cap.MULTI_RECV in info.caps
    assert ofipy.Cap.MULTI_RECV not in info.emulated_caps or not info.offloads_matching


def test_multi_receive_is_refused_where_it_is_not_declared(target: Target, ep: ofipy.Endpoint) -> None:
    if ofipy.Cap.MULTI_RECV in target.info().caps:
        ep.recv_many(bytearray(10)).cancel()
    else:
        with pytest.raises(ofipy.NotSupported):
            ep.recv_many(bytearray(10))


@pytest.mark.needs("any_inject", "fence", "trigger")
def test_what_is_everywhere(target: Target) -> None:
    info = target.info()
    assert ofipy.Cap.FENCE | ofipy.Cap.ANY_INJECT | ofipy.Cap.TRIGGER in info.caps
    assert info.emulated_caps in info.caps
    assert (ofipy.Cap.ANY_INJECT in info.emulated_caps) is (info.inject_size < info.max_msg_size)


@pytest.mark.parametrize("extra", [1, 100_000])
def test_inject_beyond_the_size_of_the_transport(ep: ofipy.Endpoint, me: ofipy.Peer, extra: int) -> None:
    """The buffer is reusable at once, and no completion is written; requests and posts alike."""
    size = min(ep.info.inject_size, 1 << 16) + extra
    memory = np.zeros(size, np.uint8)
    with ep.register(memory) as region:
        for number in range(10):
            memory[:] = number
            ep.post_tsend(region, me, tag=TAG, flags="inject")
        requests = []
        for number in range(10, 20):
            memory[:] = number
            requests.append(ep.tsend([memory[:1], memory[1:]], me, tag=TAG, flags="inject"))
        memory[:] = 99
        for number in range(20):
            room = np.zeros(size, np.uint8)
            assert ep.trecv_into(room, me, tag=TAG).wait(timeout=TIMEOUT).length == size
            assert (room == number).all()
        for request in requests:
            request.wait(timeout=TIMEOUT)
        assert len(ep.cq.read()) == 0


@pytest.mark.pairs
def test_a_failed_inject_is_told(open_endpoint: Open) -> None:
    """As fi_cq(3) has it: what writes no entry when it goes well does when it fails."""
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(bytes(other.address))
    ep.tsend(b"", peer, tag=TAG).wait(timeout=TIMEOUT)
    other.trecv_into(bytearray(1), tag=TAG).wait(timeout=TIMEOUT)
    other.close()
    size = min(ep.info.inject_size, 1 << 16) + 1
    with ep.register(bytearray(size)) as region:
        for context in range(3):
            ep.post_tsend(region, peer, tag=TAG, context=context, complete="delivery", flags="inject")
        rows = ep.cq.batch(3).wait(min=3, timeout=TIMEOUT)
        assert rows["context"].tolist() == [0, 1, 2]
        assert (rows["error"] != 0).all()
