# SPDX-License-Identifier: BSD-3-Clause
"""Groups over libfabric take one bit of its tags from the program, once an endpoint has a group."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ofipy
from ofipy._objects.group import Group

TIMEOUT = 30.0
BIT = 1 << 62
EVERY = (1 << 64) - 1
PROVIDERS = ["ofi:tcp", "ofi:tcp;ofi_rxm", "ofi:shm"]


@pytest.fixture(params=PROVIDERS)
def ep(request: pytest.FixtureRequest) -> Iterator[ofipy.Endpoint]:
    infos = ofipy.getinfo(provider=request.param, ep_type="rdm")
    if not infos:
        pytest.skip(f"a libfabric with {request.param} is not installed")
    with ofipy.Fabric(infos[0]) as fabric:
        yield fabric.domain(progress="auto").endpoint().enable()


def exchange(ep: ofipy.Endpoint, tag: int) -> bool:
    """Send with a tag, and receive with the same one."""
    me, receive = ep.insert(ep.address), ep.trecv(tag=tag)
    ep.tsend(b"text", me, tag=tag).wait(timeout=TIMEOUT)
    return receive.wait(timeout=TIMEOUT).data == b"text"


def test_without_a_group_all_tags_are_the_program_s(ep: ofipy.Endpoint) -> None:
    assert exchange(ep, BIT)
    assert exchange(ep, BIT | 5 << 32)
    receive = ep.trecv(tag=BIT, ignore=BIT - 1)
    ep.tsend(b"", ep.insert(ep.address), tag=BIT | 7).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).tag == BIT | 7


def test_tags_with_the_bit_are_refused(ep: ofipy.Endpoint) -> None:
    me = ep.insert(ep.address)
    group = Group(ep)
    # The first send waits for a connection, the later ones do not.
    for match in "has the bit that tags of groups have", "tag 0x4000000000000000 has the bit":
        with pytest.raises(ofipy.InvalidArgument, match=match) as caught:
            ep.tsend(b"", me, tag=BIT).wait(timeout=TIMEOUT)
        assert caught.value.remedy == "tags below 2**59 never have it"
        assert exchange(ep, 3)
    with pytest.raises(ofipy.InvalidArgument, match="tag 0x4000000000000001"):
        ep.trecv(tag=BIT | 1, ignore=BIT - 1)
    # A late message of the group must meet no receive of the program.
    group.close()
    with pytest.raises(ofipy.InvalidArgument):
        ep.trecv(tag=BIT)
    assert exchange(ep, EVERY & ~BIT)


def test_a_receive_that_ignores_the_bit_does_so_no_more(ep: ofipy.Endpoint) -> None:
    Group(ep)
    receive = ep.trecv(tag=BIT | 5, ignore=EVERY)
    probed = ep.probe(tag=BIT, ignore=EVERY)
    assert probed is None
    ep.tsend(b"any", ep.insert(ep.address), tag=EVERY & ~BIT).wait(timeout=TIMEOUT)
    message = receive.wait(timeout=TIMEOUT)
    assert (message.data, message.tag) == (b"any", EVERY & ~BIT)


def test_a_posted_receive_that_would_get_a_group_s_messages(ep: ofipy.Endpoint) -> None:
    me = ep.insert(ep.address)
    others = ep.trecv(tag=BIT - 1, ignore=BIT - 1)
    for peer, tag, ignore in (None, 0, EVERY), (None, BIT, 0), (me, BIT, 0):
        receive = ep.trecv(peer, tag=tag, ignore=ignore)
        with pytest.raises(ofipy.Busy, match="a posted receive accepts tags that messages of groups have"):
            Group(ep)
        receive.cancel()
        with pytest.raises(ofipy.Canceled):
            receive.wait(timeout=TIMEOUT)
    Group(ep)
    ep.tsend(b"", me, tag=8).wait(timeout=TIMEOUT)
    assert others.wait(timeout=TIMEOUT).tag == 8
