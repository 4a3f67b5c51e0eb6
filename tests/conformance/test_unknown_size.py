# SPDX-License-Identifier: BSD-3-Clause
"""Receives of unknown size: served while the program computes; what nobody took goes back, and nothing stays."""

import asyncio
import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ofipy

# Where the transport matches, the core learns of a message when it is whole.
pytestmark = [pytest.mark.needs("core_matching"), pytest.mark.needs("tagged")]
TIMEOUT = 30
TAG, LATER = 5, 6
LENGTHS = (100_000, 5_000_000)

Open = Callable[..., ofipy.Endpoint]


def contents(length: int) -> bytes:
    return np.arange(length, dtype=np.uint32).astype(np.uint8).tobytes()


# ------------------------------------------------------------------------------------- while the program computes


@pytest.mark.parametrize("length", LENGTHS)
def test_served_without_a_thread_that_waits_for_it(open_endpoint: Open, length: int) -> None:
    """The one thread that there is waits for the send, which ends only if its message is received."""
    sender, receiver = open_endpoint(), open_endpoint()
    peer = sender.insert(receiver.address)
    receives: list[Any] = [receiver.trecv(tag=TAG), receiver.recv(), receiver.trecv_obj(tag=LATER)]
    sender.tsend(contents(length), peer, tag=TAG).wait(timeout=TIMEOUT)
    sender.send(contents(length), peer).wait(timeout=TIMEOUT)
    sender.tsend_obj(np.frombuffer(contents(length), np.uint8), peer, tag=LATER).wait(timeout=TIMEOUT)
    for receive in receives[:2]:
        message = receive.wait(timeout=TIMEOUT)
        assert isinstance(message.data, bytearray)
        assert message.data == contents(length)
    assert receives[2].wait(timeout=TIMEOUT).tobytes() == contents(length)
    assert receiver.stats().unexpected_messages == 0


def test_served_in_a_domain_without_a_helper(open_endpoint: Open) -> None:
    sender = open_endpoint(progress="manual")
    receiver = open_endpoint(sender.domain)
    receive = receiver.trecv(tag=TAG)
    sender.tsend(contents(LENGTHS[0]), sender.insert(receiver.address), tag=TAG).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).data == contents(LENGTHS[0])


def test_served_while_the_loop_of_its_task_does_not_turn(open_endpoint: Open) -> None:
    sender, receiver = open_endpoint(), open_endpoint()
    peer = sender.insert(receiver.address)

    async def main() -> bytes:
        task = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        # It blocks the loop.
        sender.tsend(contents(LENGTHS[0]), peer, tag=TAG).wait(timeout=TIMEOUT)
        return await task

    async def receive() -> bytes:
        return bytes((await receiver.trecv(tag=TAG)).data)

    assert asyncio.run(main()) == contents(LENGTHS[0])


def test_what_was_served_is_given_back_whole(open_endpoint: Open) -> None:
    sender, receiver = open_endpoint(), open_endpoint()
    peer = sender.insert(receiver.address)
    receive = receiver.trecv(tag=TAG)
    sender.tsend(contents(LENGTHS[0]), peer, tag=TAG).wait(timeout=TIMEOUT)
    assert receive.cancel()
    assert_received_into_memory(receiver, LENGTHS[0])


# -------------------------------------------------------------------------------------------------- without a taker


def assert_received_into_memory(receiver: ofipy.Endpoint, length: int) -> None:
    """Any receive, and a probe, finds the message, and it leaves nothing."""
    found = receiver.probe(tag=TAG)
    assert found is not None
    assert found.length == length
    into = bytearray(length)
    assert receiver.trecv_into(into, tag=TAG).wait(timeout=TIMEOUT).length == length
    assert into == contents(length)
    stats = receiver.stats()
    assert (stats.unexpected_messages, stats.unexpected_bytes) == (0, 0)
    assert (stats.posted_receives, stats.announced_messages) == (0, 0)


def claimed(open_endpoint: Open, length: int) -> tuple[ofipy.Endpoint, Any, Any]:
    """A receiver, its receive that has claimed a message, and the send of that."""
    sender, receiver = open_endpoint(progress="manual"), open_endpoint(progress="manual")
    send = sender.tsend(contents(length), sender.insert(receiver.address), tag=TAG)
    receive = receiver.trecv(tag=TAG)
    while not receive._claimed:
        send.test()
        receive.test()
    return receiver, receive, send


def let_end(send: Any, receiver: ofipy.Endpoint) -> None:
    while not send.test():
        receiver.probe(tag=LATER)
    send.wait()


@pytest.mark.parametrize("length", [8, *LENGTHS])
def test_dropped_while_its_message_comes(open_endpoint: Open, length: int) -> None:
    receiver, receive, send = claimed(open_endpoint, length)
    del receive
    gc.collect()
    let_end(send, receiver)
    assert_received_into_memory(receiver, length)


@pytest.mark.parametrize("length", [8, *LENGTHS])
def test_dropped_with_a_message_that_nobody_looked_at(open_endpoint: Open, length: int) -> None:
    """As where Ctrl-C comes between the end of the wait and its return."""
    receiver, receive, send = claimed(open_endpoint, length)
    while not receive.test():
        send.test()
    let_end(send, receiver)
    del receive
    gc.collect()
    assert_received_into_memory(receiver, length)


def test_given_to_a_receive_that_is_posted_already(open_endpoint: Open) -> None:
    length = LENGTHS[1]
    receiver, receive, send = claimed(open_endpoint, length)
    into = bytearray(length)
    posted = receiver.trecv_into(into, tag=TAG)
    del receive
    gc.collect()
    let_end(send, receiver)
    assert posted.wait(timeout=TIMEOUT).length == length
    assert into == contents(length)
    assert receiver.stats().unexpected_messages == 0


def test_nothing_stays_of_a_sender_that_closes(open_endpoint: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_LINGER", "0")
    receiver, receive, send = claimed(open_endpoint, LENGTHS[1])
    send._endpoint.fabric.close()
    try:
        assert receive.wait(timeout=TIMEOUT).data == contents(LENGTHS[1])
    except (ofipy.PeerLost, ofipy.Canceled):
        assert not receive._claimed
    del receive
    other = open_endpoint()
    good = other.tsend(b"good", other.insert(receiver.address), tag=TAG)
    assert receiver.trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"good"
    good.wait(timeout=TIMEOUT)
    assert receiver.stats().unexpected_messages == 0


def test_a_cancelled_task_gives_back_what_comes(open_endpoint: Open) -> None:
    length = LENGTHS[1]
    sender, receiver = open_endpoint(), open_endpoint()
    peer = sender.insert(receiver.address)

    async def main() -> None:
        task = asyncio.ensure_future(receive())
        send = sender.tsend(contents(length), peer, tag=TAG)
        while not send.done:
            await asyncio.sleep(0)
        # Its message is here or comes, and the loop has not resumed the task.
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            got.append(await task)

    async def receive() -> bytes:
        return bytes((await receiver.trecv(tag=TAG)).data)

    got: list[bytes] = []
    asyncio.run(main())
    if got:
        assert got == [contents(length)]
        assert receiver.stats().unexpected_messages == 0
    else:
        assert_received_into_memory(receiver, length)
