# SPDX-License-Identifier: BSD-3-Clause
"""Options of an endpoint, default flags, and who writes queue entries."""

from collections.abc import Callable

import pytest

import ofipy

Open = Callable[..., ofipy.Endpoint]
TAG = 7
TIMEOUT = 20
Flag = ofipy.Flag


def test_options_that_tell(ep: ofipy.Endpoint) -> None:
    assert ep.option("inject_size") == ep.info.inject_size
    assert ep.option("max_msg_size") == ep.info.max_msg_size
    assert ep.option("rx_size") == ep.info.rx_size
    assert ep.option("tx_size") == ep.info.tx_size
    for name, cap in (("max_rma_size", ofipy.Cap.RMA), ("max_atomic_size", ofipy.Cap.ATOMIC)):
        if ep.info.caps & cap:
            # Of an endpoint, which may have less than an info can promise.
            assert 0 < ep.option(name) <= getattr(ep.info, name)
        else:
            with pytest.raises(ofipy.NotSupported):
                ep.option(name)
    for name in ("inject_size", "max_msg_size", "max_rma_size", "max_atomic_size", "rx_size"):
        with pytest.raises(ofipy.AccessDenied):
            ep.set_option(name, 1)


def test_unknown_options(ep: ofipy.Endpoint) -> None:
    with pytest.raises(ofipy.NotSupported):
        ep.option("colour")
    with pytest.raises(ofipy.NotSupported):
        ep.set_option("colour", 1)
    for value in (-1, 2**64, "much"):
        with pytest.raises(ofipy.InvalidArgument):
            ep.set_option("tx_size", value)  # type: ignore[arg-type]
    with pytest.raises(ofipy.InvalidArgument):
        ep.set_option("tx_size", 0)
    ep.close()
    with pytest.raises(ofipy.Closed):
        ep.option("tx_size")


@pytest.mark.needs("multi_recv", "core_matching")
def test_the_minimum_counts_for_buffers_posted_later(open_endpoint: Open) -> None:
    ep = open_endpoint(min_multi_recv=50)
    me = ep.insert(ep.address)
    assert ep.option("min_multi_recv") == 50
    early = ep.trecv_many(bytearray(100), tag=1)
    ep.set_option("min_multi_recv", 60)
    late = ep.trecv_many(bytearray(100), tag=2)
    for tag in (1, 2):
        ep.tsend(bytes(45), me, tag=tag).wait(timeout=TIMEOUT)
    assert early.next(timeout=TIMEOUT) is not None
    assert late.next(timeout=TIMEOUT) is not None
    assert not early.released
    assert late.released
    early.cancel()


def test_a_smaller_transmit_queue(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    ep.set_option("tx_size", 2)
    with ep.register(bytearray(10)) as region:
        for context in range(2):
            ep.post_tsend(region, me, tag=TAG, complete="match", context=context)
        with pytest.raises(ofipy.Again):
            ep.post_tsend(region, me, tag=TAG, complete="match")
        for _ in range(2):
            ep.trecv_into(bytearray(10), tag=TAG).wait(timeout=TIMEOUT)
        assert len(ep.cq.wait(min=2, timeout=TIMEOUT)) == 2


def test_a_record_s_own_level_wins_over_the_default(open_endpoint: Open) -> None:
    ep = open_endpoint(complete="match")
    me = ep.insert(ep.address)
    assert ep.tx_flags == Flag.MATCH_COMPLETE
    waiting = ep.tsend(b"default", me, tag=1)
    assert not waiting.test()
    # Short ones are transmitted when they have left.
    ep.tsend(b"own", me, tag=2, complete="transmit").wait(timeout=TIMEOUT)
    with ep.register(bytearray(3)) as region:
        ep.post_tsend(region, me, tag=2, complete="transmit", context=5)
        assert ep.cq.wait(timeout=TIMEOUT)["context"].tolist() == [5]
    assert not waiting.test()
    ep.set_option("tx_flags", 0)
    ep.tsend(b"no default", me, tag=2).wait(timeout=TIMEOUT)
    ep.trecv_into(bytearray(10), tag=1).wait(timeout=TIMEOUT)
    waiting.wait(timeout=TIMEOUT)


def test_flags_that_cannot_be_defaults(open_endpoint: Open, ep: ofipy.Endpoint) -> None:
    for wrong in ({"tx_flags": "fence"}, {"rx_flags": "peek"}, {"tx_flags": "multi_recv"}):
        with pytest.raises(ofipy.InvalidArgument):
            open_endpoint(ep.domain, **wrong)
    with pytest.raises(ofipy.InvalidArgument):
        ep.set_option("tx_flags", Flag.PEEK)
    with pytest.raises(ofipy.InvalidArgument):
        ep.set_option("rx_flags", Flag.INJECT)
    with pytest.raises(ofipy.InvalidArgument):
        ep.domain.endpoint(selective_completion="some")


@pytest.mark.parametrize("direction", ["transmit", "receive"])
def test_selective_completion_of_one_direction(open_endpoint: Open, direction: str) -> None:
    ep = open_endpoint(selective_completion=direction)
    me = ep.insert(ep.address)
    with ep.register(bytearray(10)) as region:
        ep.post_trecv(region, tag=TAG, context=1)
        ep.post_trecv(region, tag=TAG, context=2, flags="completion")
        ep.post_tsend(region, me, tag=TAG, context=3)
        ep.post_tsend(region, me, tag=TAG, context=4, flags="completion")
        rows = ep.cq.batch(8).wait(min=3, timeout=TIMEOUT)
        assert sorted(rows["context"]) == ([1, 2, 4] if direction == "transmit" else [2, 3, 4])


def test_a_default_that_asks_for_entries(open_endpoint: Open) -> None:
    ep = open_endpoint(selective_completion=True, rx_flags="completion")
    me = ep.insert(ep.address)
    with ep.register(bytearray(10)) as region:
        ep.post_trecv(region, tag=TAG, context=1)
        ep.post_tsend(region, me, tag=TAG, context=2)
        assert ep.cq.wait(timeout=TIMEOUT)["context"].tolist() == [1]
    assert ep.rx_flags == Flag.COMPLETION


@pytest.mark.needs("multi_recv")
def test_receives_that_are_for_many_by_default(open_endpoint: Open) -> None:
    """Posted ones only: what a request is for its call says."""
    ep = open_endpoint(rx_flags="multi_recv")
    me = ep.insert(ep.address)
    with ep.register(bytearray(200)) as region:
        ep.post_trecv(region, tag=TAG, context=1)
        for _ in range(2):
            ep.tsend(bytes(20), me, tag=TAG).wait(timeout=TIMEOUT)
        assert ep.cq.batch(2).wait(min=2, timeout=TIMEOUT)["buffer_offset"].tolist() == [0, 20]
        assert ep.cancel(1)
        single = ep.trecv_into(bytearray(100), tag=TAG)
        ep.tsend(b"one", me, tag=TAG).wait(timeout=TIMEOUT)
        assert single.wait(timeout=TIMEOUT).length == 3
        assert ep.stats().posted_receives == 0


def test_level_completion_is_safe_under_another_name() -> None:
    assert ofipy.Threading.COMPLETION is ofipy.Threading.SAFE


LIMITS = {"tx_size": 2**24, "unexpected_size": 2**40, "min_multi_recv": 2**40}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_beyond_their_range(name: str, open_endpoint: Open) -> None:
    for value in (0, -1, LIMITS[name] + 1, 2**64, 1.5, "many"):
        with pytest.raises(
            ofipy.InvalidArgument, match=rf"{name}=.*; 1 to 2\*\*\d+ (bytes|operations) are meant"
        ):
            open_endpoint(**{name: value})


@pytest.mark.parametrize("most", [False, True])
def test_messages_pass_at_the_bounds_of_every_limit(most: bool, open_endpoint: Open) -> None:
    ep = open_endpoint(**{name: bound if most else 1 for name, bound in LIMITS.items()})
    me, sizes = ep.insert(ep.address), (0, 8, 200, 5000, 100_000)
    rooms = [bytearray(size) for size in sizes]
    receives = [ep.trecv_into(room, tag=TAG) for room in rooms]
    for size in sizes:
        ep.tsend(b"x" * size, me, tag=TAG).wait(timeout=TIMEOUT)
    ofipy.wait_all(receives, timeout=TIMEOUT)
    assert rooms == [b"x" * size for size in sizes]
    # One that nobody expects, and that is more than is kept.
    sent, room = ep.tsend(b"y" * 200, me, tag=TAG), bytearray(200)
    ep.trecv_into(room, tag=TAG).wait(timeout=TIMEOUT)
    sent.wait(timeout=TIMEOUT)
    assert room == b"y" * 200
