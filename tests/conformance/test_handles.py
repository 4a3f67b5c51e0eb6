# SPDX-License-Identifier: BSD-3-Clause
"""Handles that are over: one answer each, as docs/reference/errors.md lists them."""

from collections.abc import Callable

import pytest
from sides import Target

import ofipy

TIMEOUT = 30


def test_a_finished_request_answers_the_same_each_time(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    receive = ep.trecv_into(bytearray(4), tag=1)
    ep.tsend(b"abcd", me, tag=1).wait(timeout=TIMEOUT)
    for _ in range(2):
        assert receive.wait(timeout=TIMEOUT).length == 4
        assert receive.test()
        assert receive.exception() is None
        assert not receive.cancel()


def test_a_cancelled_request_answers_the_same_each_time(ep: ofipy.Endpoint) -> None:
    receive = ep.trecv_into(bytearray(4), tag=1)
    assert receive.cancel()
    for _ in range(2):
        with pytest.raises(ofipy.Canceled):
            receive.wait(timeout=TIMEOUT)
        assert isinstance(receive.exception(), ofipy.Canceled)
        assert not receive.cancel()


def test_prepared_operations_are_started_one_run_at_a_time(ep: ofipy.Endpoint) -> None:
    prepared = ep.prepare_trecv(bytearray(4), tag=1)
    for call in (lambda: prepared.wait(timeout=TIMEOUT), prepared.test):
        with pytest.raises(ofipy.InvalidArgument, match="not started"):
            call()
    assert not prepared.cancel()
    prepared.start()
    with pytest.raises(ofipy.Busy):
        prepared.start()
    assert prepared.cancel()
    for _ in range(2):
        with pytest.raises(ofipy.Canceled):
            prepared.wait(timeout=TIMEOUT)
    prepared.start()
    assert prepared.cancel()


def test_handles_of_an_endpoint_that_is_closed(
    open_endpoint: Callable[..., ofipy.Endpoint],
) -> None:
    ep = open_endpoint()
    me = ep.insert(ep.address)
    receive, idle = ep.trecv_into(bytearray(4), tag=1), ep.prepare_trecv(bytearray(4), tag=2)
    running = ep.prepare_trecv(bytearray(4), tag=3).start()
    ep.close()
    ep.close()
    for call in (
        lambda: ep.tsend(b"x", me),
        ep.stats,
        lambda: ep.address,
        idle.start,
        running.start,
        ep.alias,
    ):
        with pytest.raises(ofipy.Closed):
            call()
    for _ in range(2):
        for request in (receive, running):
            with pytest.raises(ofipy.Canceled):
                request.wait(timeout=TIMEOUT)


def test_deferred_work_is_cancelled_once(ep: ofipy.Endpoint) -> None:
    trigger, counter = ep.domain.counter(), ep.domain.counter()
    work = counter.add(1, after=(trigger, 1))
    assert work is not None
    assert work.cancel()
    assert not work.cancel()
    started = counter.add(1, after=(trigger, 1))
    assert started is not None
    trigger.add(1)
    counter.wait(1, timeout=TIMEOUT)
    assert not started.cancel()


@pytest.mark.needs("multi_recv")
def test_a_released_buffer_is_the_end(ep: ofipy.Endpoint) -> None:
    buffer = ep.trecv_many(bytearray(1000), tag=1)
    assert buffer.cancel()
    assert not buffer.cancel()
    for _ in range(2):
        assert buffer.next(timeout=TIMEOUT) is None
        assert list(buffer) == []


@pytest.mark.needs("connections")
def test_a_connection_request_is_answered_once(target: Target) -> None:
    connected = target.connected()
    assert connected is not None
    listener, client = connected.listen(progress="auto"), connected.open(progress="auto")
    connection = client.connect(listener.address)
    request = listener.wait(timeout=TIMEOUT)
    server = request.accept()
    connection.wait(timeout=TIMEOUT)
    assert server.peer_address
    for answer in (request.accept, request.reject):
        with pytest.raises(ofipy.InvalidArgument, match="answered before"):
            answer()
    with pytest.raises(ofipy.FabricError, match="has, or had, a connection"):
        client.connect(listener.address)
    listener.fabric.close()
    client.fabric.close()
