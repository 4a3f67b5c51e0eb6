# SPDX-License-Identifier: BSD-3-Clause
"""Requests: waiting, testing, several at once, prepared operations, threads and signals."""

import gc
import os
import re
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from sides import Side, Sides

import ofipy
from tests.timers import running

pytestmark = pytest.mark.connected

TIMEOUT = 30

OpenEndpoint = Callable[..., ofipy.Endpoint]


def test_send_that_is_over_is_one_shared_request(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    ep.tsend(b"first", me, tag=1).wait(timeout=TIMEOUT)  # the first one has to find the peer
    # What is posted behind another one may wait for the next look at the network, and then is not over yet.
    ep.domain.progress()
    one = ep.tsend(b"x", me, tag=1)
    ep.domain.progress()
    two = ep.tsend(np.zeros(2), me, tag=1)
    assert one is two
    assert one.done
    assert one.test()
    assert one.wait() is one
    assert one.exception() is None
    assert not one.cancel()
    assert (one.length, one.tag, one.source, one.remote_data) == (0, 0, None, None)


def test_states_of_a_receive(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    request = ep.trecv_into(bytearray(4), me, tag=9)
    assert not request.done
    assert not request.test()
    assert request.exception() is None
    assert "running" in repr(request)
    ep.tsend(b"abc", me, tag=9).wait(timeout=TIMEOUT)
    assert request.wait(timeout=TIMEOUT) is request
    assert request.done
    assert request.wait() is request
    assert (request.length, request.tag, request.source, request.remote_data) == (3, 9, me, None)
    assert "finished" in repr(request)


def test_failure_is_raised_each_time(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    request = ep.trecv_into(bytearray(2), me, tag=1)
    ep.tsend(b"too long", me, tag=1).wait(timeout=TIMEOUT)
    for _ in range(2):
        with pytest.raises(ofipy.Truncated, match=f"trecv with .*{re.escape(ep.provider)}"):
            request.wait(timeout=TIMEOUT)
    assert isinstance(request.exception(), ofipy.Truncated)
    assert request.done
    assert "failed" in repr(request)


def test_timeout_leaves_the_operation_running(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    room = bytearray(4)
    request = ep.trecv_into(room, me, tag=1)
    for timeout in (0, 0.001, 0.05):
        begin = time.monotonic()
        with pytest.raises(ofipy.TimedOut, match=r"trecv with .*not finished within") as caught:
            request.wait(timeout=timeout)
        assert time.monotonic() - begin >= timeout
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.peer == str(ep.address)
        assert caught.value.provider == ep.provider
        assert caught.value.remedy is not None
        assert "it goes on" in caught.value.remedy
    ep.tsend(b"late", me, tag=1).wait(timeout=TIMEOUT)
    request.wait(timeout=TIMEOUT)
    assert room == b"late"
    for wrong in (-1, float("nan")):
        with pytest.raises(ofipy.InvalidArgument):
            request.wait(timeout=wrong)


def test_timeout_beyond_one_second(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """C waits a second at most in one call."""
    begin = time.monotonic()
    with pytest.raises(ofipy.TimedOut):
        ep.trecv_into(bytearray(1), me, tag=1).wait(timeout=1.3)
    assert time.monotonic() - begin >= 1.3


# ------------------------------------------------------------------------------------------------------ several at once


def test_wait_all(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    rooms = [bytearray(8) for _ in range(20)]
    receives = [ep.trecv_into(room, me, tag=tag) for tag, room in enumerate(rooms)]
    with pytest.raises(ofipy.TimedOut, match="20 of 20"):
        ofipy.wait_all(receives, timeout=0.01)
    sends = [ep.tsend(b"%d" % tag, me, tag=tag) for tag in reversed(range(20))]
    assert ofipy.wait_all([*receives, *sends], timeout=TIMEOUT) == [*receives, *sends]
    assert [int(room.rstrip(b"\0")) for room in rooms] == list(range(20))
    assert ofipy.wait_all([]) == []


def test_wait_all_of_every_kind_of_request(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    buffer = bytearray(1)
    into, of_any_size = ep.trecv_into(buffer, tag=1), ep.trecv(tag=2)
    sends = [ep.tsend(b"x", me, tag=1), ep.tsend(b"yz", me, tag=2)]
    found = ofipy.wait_all([sends[0], into, sends[1], of_any_size, into])
    assert found[:3] == [sends[0], into, sends[1]]
    assert (found[3].data, found[4]) == (b"yz", into)
    assert buffer == b"x"
    assert ofipy.wait_all([into, into]) == [into, into]


def test_wait_all_raises_after_all_have_finished(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    receives = [ep.trecv_into(bytearray(2), me, tag=tag) for tag in range(3)]
    for tag, data in enumerate((b"ok", b"too long", b"ok")):
        ep.tsend(data, me, tag=tag)
    with pytest.raises(ofipy.Truncated):
        ofipy.wait_all(receives, timeout=TIMEOUT)
    assert all(request.done for request in receives)


def test_a_wait_all_that_times_out_tells_what_has_failed(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    receives = [ep.trecv_into(bytearray(2), me, tag=tag) for tag in range(3)]
    ep.tsend(b"too long", me, tag=1).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.Truncated):
        receives[1].wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.TimedOut, match="2 of 3") as caught:
        ofipy.wait_all(receives, timeout=0.01)
    assert isinstance(caught.value.__cause__, ofipy.Truncated)


def test_wait_any(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    receives = [ep.trecv_into(bytearray(8), me, tag=tag) for tag in range(5)]
    with pytest.raises(ofipy.TimedOut, match="none of 5"):
        ofipy.wait_any(receives, timeout=0.01)
    for tag in (3, 0, 4):
        ep.tsend(b"x", me, tag=tag)
        found = ofipy.wait_any(receives, timeout=TIMEOUT)
        assert found.tag == tag
        receives.remove(found)
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.wait_any([])


def test_wait_any_of_unknown_sizes(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    receives = [ep.trecv(tag=1), ep.trecv(tag=2)]
    send = ep.tsend(bytes(300_000), me, tag=2)
    assert ofipy.wait_any(receives, timeout=TIMEOUT) is receives[1]
    assert receives[1].wait(timeout=0).length == 300_000
    send.wait(timeout=TIMEOUT)
    ep.tsend(b"1", me, tag=1)
    assert ofipy.wait_all(receives, timeout=TIMEOUT)[0].data == b"1"


# ------------------------------------------------------------------------------------------------------------ prepared


def test_prepared_operations(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    outgoing, incoming = np.zeros(100, np.uint8), np.zeros(100, np.uint8)
    send, receive = ep.prepare_tsend(outgoing, me, tag=7), ep.prepare_trecv(incoming, me, tag=7)
    for request in (send, receive):
        assert not request.done
        with pytest.raises(ofipy.InvalidArgument, match="not started"):
            request.wait()
    for number in range(50):
        outgoing[:] = number
        ofipy.start(receive, send)
        got = receive.wait(timeout=TIMEOUT)
        assert (got.length, got.tag, got.source) == (100, 7, me)
        send.wait(timeout=TIMEOUT)
        assert (incoming == number).all()
    assert receive.start() is receive
    with pytest.raises(ofipy.Busy):
        receive.start()
    with pytest.raises(ofipy.Busy):
        ofipy.start(receive, send)
    ofipy.start(send)
    send.wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)


def test_many_prepared_with_one_call(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = np.zeros((2, 30), np.uint8)
    receives = [ep.prepare_trecv(memory[1, tag : tag + 1], me, tag=tag) for tag in range(30)]
    sends = [ep.prepare_tsend(memory[0, tag : tag + 1], me, tag=tag) for tag in range(30)]
    for number in range(5):
        memory[0] = np.arange(30) + number
        ofipy.start(*receives, *sends)
        ofipy.wait_all([*sends, *receives], timeout=TIMEOUT)
        assert np.array_equal(memory[0], memory[1])


def test_prepared_of_several_pieces_and_of_plain_messages(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    parts, room = [bytearray(3), bytearray(5)], bytearray(8)
    send, receive = ep.prepare_send(parts, me, remote_data=4), ep.prepare_recv(room)
    for number in range(3):
        parts[0][:], parts[1][:] = b"%d%d%d" % (number, number, number), b"-----"
        ofipy.start(send)
        ofipy.start(receive)
        assert receive.wait(timeout=TIMEOUT).remote_data == 4
        send.wait(timeout=TIMEOUT)
        assert room == b"%d%d%d-----" % (number, number, number)


def test_prepared_receive_can_be_cancelled_and_started_again(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    room = bytearray(2)
    receive = ep.prepare_trecv(room, me, tag=1)
    ofipy.start(receive)
    assert receive.cancel()
    with pytest.raises(ofipy.Canceled):
        receive.wait(timeout=TIMEOUT)
    ofipy.start(receive)
    ep.tsend(b"ok", me, tag=1).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 2


def test_prepared_after_close(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    me = ep.insert(ep.address)
    idle, running = ep.prepare_tsend(b"x", me, tag=1), ep.prepare_trecv(bytearray(1), me, tag=2)
    ofipy.start(running)
    ep.close()
    with pytest.raises(ofipy.Closed):
        ofipy.start(idle)
    with pytest.raises(ofipy.Closed):
        idle.start()
    with pytest.raises(ofipy.Canceled):
        running.wait(timeout=1)


def play(side: Side, rounds: int, size: int) -> None:
    outgoing, incoming = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    send = side.ep.prepare_tsend(outgoing, side.peer, tag=1)
    receive = side.ep.prepare_trecv(incoming, side.peer, tag=1)
    for number in range(rounds):
        outgoing[:] = number % 251 + side.first
        ofipy.start(receive, send)
        receive.wait(timeout=TIMEOUT)
        assert (incoming == number % 251 + (not side.first)).all()
        send.wait(timeout=TIMEOUT)


@pytest.mark.parametrize(("rounds", "size"), [(3000, 8), (200, 50_000)])
def test_prepared_between_two_sides(sides: Sides, rounds: int, size: int) -> None:
    sides.run(play, play, rounds, size)


# ---------------------------------------------------------------------------------------------------- threads, signals


def test_many_threads_on_one_endpoint(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    failures = []

    def work(number: int) -> None:
        try:
            room = bytearray(8)
            for turn in range(300):
                receive = ep.trecv_into(room, me, tag=number)
                ep.tsend(turn.to_bytes(8, "little"), me, tag=number).wait(timeout=TIMEOUT)
                receive.wait(timeout=TIMEOUT)
                assert int.from_bytes(room, "little") == turn
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


def test_one_thread_sends_while_others_sleep(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    got: list[int] = []

    def sleep(tag: int) -> None:
        got.append(ep.trecv_into(bytearray(1), me, tag=tag).wait(timeout=TIMEOUT).tag)

    threads = [threading.Thread(target=sleep, args=(tag,)) for tag in range(5)]
    for thread in threads:
        thread.start()
    while ep.stats().posted_receives < 5:
        pass
    for tag in reversed(range(5)):
        ep.tsend(b"x", me, tag=tag).wait(timeout=TIMEOUT)
        threads[tag].join(TIMEOUT)
        assert got[-1] == tag


def test_signal_handlers_run_while_waiting(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    room = bytearray(4)
    request = ep.trecv_into(room, me, tag=1)

    def handler(number: int, frame: object) -> None:
        ep.tsend(b"woke", me, tag=1)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        request.wait(timeout=TIMEOUT)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert room == b"woke"


def test_ctrl_c_leaves_the_operation_running(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    room = bytearray(4)
    request = ep.trecv_into(room, me, tag=1)
    # A shell's background job inherits SIGINT ignored, and Python leaves it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), running(timer):
        request.wait(timeout=TIMEOUT)
    ep.tsend(b"fine", me, tag=1).wait(timeout=TIMEOUT)
    request.wait(timeout=TIMEOUT)
    assert room == b"fine"


@pytest.mark.parametrize("peer_is_named", [True, False])
def test_ctrl_c_as_the_message_arrives_loses_nothing(
    ep: ofipy.Endpoint, me: ofipy.Peer, peer_is_named: bool
) -> None:
    room = bytearray(4)
    request = ep.trecv_into(room, me if peer_is_named else None, tag=1)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt_then_send() -> None:
        time.sleep(0.05)
        # Python's handler has to wait until the main thread comes back from C, where the message keeps it no longer.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        ep.tsend(b"fine", me, tag=1).wait(timeout=TIMEOUT)

    thread = threading.Thread(target=interrupt_then_send)
    with pytest.raises(KeyboardInterrupt), running(thread):
        request.wait()
    others = [ep.trecv_into(bytearray(1), me, tag=2) for _ in range(3)]
    assert request.done
    assert request.wait(timeout=TIMEOUT) is request
    assert (room, request.length, request.tag, request.source) == (b"fine", 4, 1, me)
    del request
    gc.collect()
    for other in others:
        ep.tsend(b"x", me, tag=2).wait(timeout=TIMEOUT)
        assert other.wait(timeout=TIMEOUT).length == 1


def test_domain_of_one_thread(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint(threading="domain", progress="manual")
    me = ep.insert(ep.address)
    caught: list[BaseException] = []

    def trespass() -> None:
        try:
            ep.tsend(b"x", me, tag=1)
        except BaseException as error:
            caught.append(error)

    def take_over() -> None:
        ep.domain.adopt()
        ep.tsend(b"x", me, tag=1).wait(timeout=TIMEOUT)

    for work in (trespass, take_over):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert isinstance(caught[0], ofipy.ThreadingError)
    with pytest.raises(ofipy.ThreadingError, match="adopt"):
        ep.trecv_into(bytearray(1), me, tag=1)
    ep.domain.adopt()
    assert ep.trecv_into(bytearray(1), me, tag=1).wait(timeout=TIMEOUT).length == 1
