# SPDX-License-Identifier: BSD-3-Clause
"""Aliases of an endpoint: other default flags over the same queues and peers."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from remote import BOTH
from sides import Side, Sides

import ofipy

Open = Callable[..., ofipy.Endpoint]
TIMEOUT = 20
TAG = 7
Flag = ofipy.Flag


def test_its_flags_replace_the_endpoint_s(open_endpoint: Open) -> None:
    ep = open_endpoint(selective_completion=True, tx_flags="completion")
    me = ep.insert(ep.address)
    quiet, telling = ep.alias(tx_flags=Flag(0)), ep.alias(rx_flags="completion")
    assert (quiet.tx_flags, quiet.rx_flags) == (Flag(0), Flag(0))
    assert (telling.tx_flags, telling.rx_flags) == (Flag.COMPLETION, Flag.COMPLETION)
    assert ep.tx_flags == Flag.COMPLETION
    with ep.register(bytearray(8)) as region:
        for number, (sender, receiver) in enumerate(
            ((ep, ep), (quiet, telling), (telling, quiet), (quiet, ep))
        ):
            receiver.post_trecv(region, me, tag=TAG, context=2 * number)
            sender.post_tsend(region, me, tag=TAG, context=2 * number + 1)
            ep.trecv_into(bytearray(1), me, tag=number)
            ep.tsend(b"x", me, tag=number).wait(timeout=TIMEOUT)
        assert sorted(ep.cq.batch(8).wait(min=3, timeout=TIMEOUT)["context"]) == [1, 2, 5]
        # Its own record says more.
        receive = ep.trecv_into(region, me, tag=TAG)
        quiet.post_tsend(region, me, tag=TAG, context=9, flags="completion")
        assert ep.cq.wait(timeout=TIMEOUT)["context"].tolist() == [9]
        receive.wait(timeout=TIMEOUT)


def test_default_levels(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    delivered = ep.alias(complete="delivery")
    assert delivered.tx_flags == Flag.DELIVERY_COMPLETE
    into = bytearray(4)
    receive = ep.trecv_into(into, me, tag=TAG)
    delivered.tsend(b"told", me, tag=TAG).wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    assert into == b"told"
    # A level of the call's own replaces it.
    receive = ep.trecv_into(into, me, tag=TAG)
    delivered.tsend(b"also", me, tag=TAG, complete="transmit").wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    assert into == b"also"


def test_it_is_the_endpoint(open_endpoint: Open) -> None:
    ep = open_endpoint()
    me = ep.insert(ep.address)
    alias = ep.alias(tx_flags="inject")
    again = alias.alias()
    assert again.endpoint is alias.endpoint is ep
    assert again.tx_flags == Flag.INJECT
    assert (alias.id, alias.address, alias.info, alias.cq, alias.av) == (
        ep.id,
        ep.address,
        ep.info,
        ep.cq,
        ep.av,
    )
    assert alias.enable() is alias
    alias.set_option("tx_size", 5)
    assert ep.option("tx_size") == 5
    alias.set_option("tx_flags", 0)
    assert again.tx_flags == Flag.INJECT
    alias.tsend(b"one", me, tag=TAG).wait(timeout=TIMEOUT)
    into = bytearray(3)
    again.trecv_into(into, me, tag=TAG).wait(timeout=TIMEOUT)
    assert into == b"one"
    with ep.register(bytearray(8)) as region:
        alias.post_trecv(region, me, tag=TAG, context=4)
        assert ep.cancel(4)
        ep.post_trecv(region, me, tag=TAG, context=5)
        assert again.cancel(5)
        assert ep.cq.batch(2).wait(min=2, timeout=TIMEOUT)["context"].tolist() == [4, 5]
    many = alias.domain.counter()
    records = alias.domain.operations(1)
    records["op"], records["peer"], records["flags"] = ofipy.Op.TSEND, me, int(Flag.INJECT)
    assert alias.post(records, after=(many, 1)) == 1
    many.add(1)
    ep.trecv_into(bytearray(1), me).wait(timeout=TIMEOUT)


@pytest.mark.needs("rma")
def test_remote_memory_through_an_alias(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    alias = ep.alias(complete="delivery")
    memory = np.zeros(8, np.uint8)
    with ep.register(memory, access=BOTH) as region:
        alias.write(b"abcdefgh", me, region.remote).wait(timeout=TIMEOUT)
        assert bytes(memory) == b"abcdefgh"
        into = bytearray(8)
        alias.read(into, me, region.remote).wait(timeout=TIMEOUT)
        assert into == b"abcdefgh"


def test_closing_it_leaves_the_endpoint(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    alias = ep.alias()
    into, second = bytearray(3), bytearray(3)
    receive, later = alias.trecv_into(into, me, tag=1), alias.trecv_into(second, me, tag=2)
    back = alias.trecv_into(bytearray(1), me, tag=3)
    prepared = alias.prepare_tsend(b"two", me, tag=2)
    alias.close()
    alias.close()
    assert alias.closed
    assert not ep.closed
    for use in (
        lambda: alias.tsend(b"x", me),
        lambda: alias.tsend(bytearray(1), me, complete="transmit"),
        lambda: alias.trecv_into(bytearray(1)),
        lambda: alias.prepare_tsend(b"x", me),
        lambda: alias.post(ep.domain.operations(1)),
        lambda: alias.option("tx_flags"),
        lambda: alias.alias(),
        lambda: alias.stats(),
        lambda: alias.enable(),
    ):
        with pytest.raises(ofipy.Closed, match="alias is closed"):
            use()
    # What was started through it goes on, and can be taken back.
    ep.tsend(b"one", me, tag=1).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 3
    prepared.start().wait(timeout=TIMEOUT)
    later.wait(timeout=TIMEOUT)
    assert (into, second) == (b"one", b"two")
    assert back.cancel()
    assert repr(alias) == "<EndpointAlias closed>"


def test_messages_set_aside_outlive_it(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    alias = ep.alias()
    held, dropped = alias.trecv(me, tag=1), alias.trecv(me, tag=2)
    for tag in (1, 2):
        ep.tsend(b"message", me, tag=tag).wait(timeout=TIMEOUT)
    alias.close()
    with pytest.raises(ofipy.Closed, match="alias is closed"):
        alias.trecv()
    assert bytes(held.wait(timeout=TIMEOUT)) == b"message"
    del dropped
    assert bytes(ep.trecv(me, tag=2).wait(timeout=TIMEOUT)) == b"message"


@pytest.mark.parametrize("what", ["alias", "endpoint"])
def test_closing_it_under_threads_that_use_it(open_endpoint: Open, what: str) -> None:
    ep = open_endpoint()
    me = ep.insert(ep.address)
    alias = ep.alias(complete="transmit")
    started, ended = threading.Barrier(5), []

    def use(tag: int) -> None:
        room, number = bytearray(8), 0
        try:
            while True:
                receive = alias.trecv_into(room, me, tag=tag)
                alias.tsend(b"message", me, tag=tag).wait(timeout=TIMEOUT)
                receive.wait(timeout=TIMEOUT)
                number += 1
                if number == 5:
                    started.wait(TIMEOUT)
        except (ofipy.Closed, ofipy.Canceled, ofipy.PeerLost) as error:
            ended.append(error)

    threads = [threading.Thread(target=use, args=(tag,)) for tag in range(4)]
    for thread in threads:
        thread.start()
    started.wait(TIMEOUT)
    (alias if what == "alias" else ep).close()
    for thread in threads:
        thread.join(TIMEOUT)
    assert len(ended) == 4
    assert ep.closed is (what == "endpoint")


def test_closing_the_endpoint_closes_it(open_endpoint: Open) -> None:
    ep = open_endpoint()
    alias = ep.alias()
    receive = alias.trecv_into(bytearray(1), tag=1)
    ep.close()
    assert alias.closed
    with pytest.raises(ofipy.Canceled):
        receive.wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.Closed):
        alias.tsend(b"x", 0)


def test_a_dropped_one_is_gone(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    alias = ep.alias()
    into = bytearray(1)
    receive = alias.trecv_into(into, me, tag=1)
    gone = weakref.ref(alias)
    del alias
    ep.tsend(b"x", me, tag=1).wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    del receive
    gc.collect()
    assert gone() is None
    assert into == b"x"


async def end_of(request: ofipy.Request) -> None:
    await request


def test_awaited(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    alias = ep.alias(complete="delivery")

    async def main() -> bytes:
        into = bytearray(4)
        receive = alias.trecv_into(into, me, tag=1)
        await asyncio.gather(end_of(receive), end_of(alias.tsend(b"seen", me, tag=1)))
        return bytes(into)

    assert asyncio.run(main()) == b"seen"


def test_flags_that_cannot_be_defaults(ep: ofipy.Endpoint) -> None:
    for wrong in ({"tx_flags": "fence"}, {"rx_flags": "peek"}, {"tx_flags": "loud"}, {"complete": "soon"}):
        with pytest.raises(ofipy.InvalidArgument):
            ep.alias(**wrong)


def send_through_two(side: Side, rounds: int) -> None:
    """One thread sends with one level, another with another; both kinds arrive in order."""
    failed: list[BaseException] = []
    side.sync()

    def send(complete: str, tag: int) -> None:
        try:
            with side.ep.alias(complete=complete) as alias:
                for number in range(rounds):
                    alias.tsend(number.to_bytes(4, "little"), side.peer, tag=tag).wait(timeout=TIMEOUT)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=send, args=pair) for pair in (("transmit", 1), ("delivery", 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    side.sync()


def receive_both(side: Side, rounds: int) -> None:
    rooms = np.zeros((2, rounds), np.uint32)
    receives = [
        side.ep.trecv_into(rooms[tag - 1, n : n + 1], side.peer, tag=tag)
        for tag in (1, 2)
        for n in range(rounds)
    ]
    side.sync()
    ofipy.wait_all(receives, timeout=TIMEOUT)
    assert (rooms == np.arange(rounds)).all()
    side.sync()


def test_between_two_sides(sides: Sides) -> None:
    sides.run(send_through_two, receive_both, 500)
