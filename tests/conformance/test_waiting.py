# SPDX-License-Identifier: BSD-3-Clause
"""Programs start in any order: what is posted to a peer that is not there yet leaves when it is."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sides import Target

import ofipy
from ofipy._operations import reach
from tests.timers import running

OpenEndpoint = Callable[..., ofipy.Endpoint]
TIMEOUT = 30
# More than the whole test may take: who waits so long, and should not, hangs.
FOR_EVER = 600
# What an error says of an attempt that should end after two seconds, and on a busy machine ends later.
TWO_OR_MORE = r"tried for ([2-9]|\d{2,}) s"
# Seconds after which the peer opens.
LATER = 0.3
TAG = 7

pytestmark = pytest.mark.needs("absent_peers")


@pytest.fixture
def service(target: Target) -> str:
    """Where nobody is."""
    return target.free_service()


def insert(ep: ofipy.Endpoint, service: str, **options: Any) -> ofipy.Peer:
    return ep.insert(f"localhost:{service}", **options)


def open_later(open_endpoint: OpenEndpoint, service: str) -> tuple[threading.Timer, list[ofipy.Endpoint]]:
    opened: list[ofipy.Endpoint] = []
    timer = threading.Timer(LATER, lambda: opened.append(open_endpoint(service=service)))
    timer.start()
    return timer, opened


def patience(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", str(seconds))


def test_the_first_message_waits_for_its_peer(open_endpoint: OpenEndpoint, service: str) -> None:
    ep = open_endpoint()
    began = time.monotonic()
    timer, opened = open_later(open_endpoint, service)
    sent = ep.tsend(b"early", insert(ep, service), tag=TAG, complete="delivery")
    sent.wait(timeout=TIMEOUT)
    assert time.monotonic() - began > LATER
    timer.join()
    assert opened[0].trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"early"


def test_all_that_waits_leaves_in_its_order(open_endpoint: OpenEndpoint, service: str) -> None:
    """Of every kind, those that the core copies and those that it does not."""
    ep = open_endpoint()
    peer = insert(ep, service)
    large = np.arange(300_000, dtype=np.uint8)
    prepared = ep.prepare_tsend(b"prepared", peer, tag=TAG)
    sent = [ep.tsend(b"first", peer, tag=TAG), ep.tsend(large, peer, tag=TAG), prepared.start()]
    sent += [ep.tsend(b"%d" % number, peer, tag=TAG) for number in range(50)]
    sent.append(ep.send(b"untagged", peer))
    time.sleep(LATER)
    other = open_endpoint(service=service)
    came = [bytes(other.trecv(tag=TAG).wait(timeout=TIMEOUT).data) for _ in range(53)]
    assert came == [b"first", large.tobytes(), b"prepared", *(b"%d" % number for number in range(50))]
    assert other.recv().wait(timeout=TIMEOUT).data == b"untagged"
    for request in sent:
        request.wait(timeout=TIMEOUT)


@pytest.mark.needs("rma", "atomic")
def test_remote_memory_waits_too(target: Target, open_endpoint: OpenEndpoint, service: str) -> None:
    """Its handle travelled by another way, before the endpoint was open through which it is reached."""
    ep = open_endpoint()
    domain = target.open_domain(progress="auto")
    memory = np.zeros(8, np.int64)
    remote = domain.register(memory, access="remote_read,remote_write").remote
    peer = insert(ep, service)
    requests = [
        ep.write(np.arange(8, dtype=np.int64), peer, remote, complete="delivery"),
        ep.tsend(b"written", peer, tag=TAG),
        ep.atomic(np.int64(5), peer, remote[:8], op="sum", complete="delivery"),
    ]
    other = open_endpoint(domain, service=service)
    for request in requests:
        request.wait(timeout=TIMEOUT)
    assert other.trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"written"
    assert memory.tolist() == [5, 1, 2, 3, 4, 5, 6, 7]


def test_insert_returns_when_the_peer_answers(open_endpoint: OpenEndpoint, service: str) -> None:
    ep = open_endpoint()
    began = time.monotonic()
    timer, opened = open_later(open_endpoint, service)
    peer = insert(ep, service, wait=TIMEOUT)
    assert LATER < time.monotonic() - began < TIMEOUT
    timer.join()
    # Who is there already costs no wait, and hears nothing of it.
    assert insert(ep, service, wait=0) == peer
    ep.tsend(b"now", peer, tag=TAG).wait(timeout=TIMEOUT)
    assert opened[0].trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"now"
    assert opened[0].stats().unexpected_messages == 0


def test_insert_says_who_did_not_come(open_endpoint: OpenEndpoint, service: str) -> None:
    ep = open_endpoint()
    with pytest.raises(ofipy.TimedOut, match=r"within 0\.3 s") as caught:
        insert(ep, service, wait=0.3)
    assert service in str(caught.value.peer)
    assert "start the peer" in str(caught.value.remedy)
    for wrong in (-1, float("nan"), "soon"):
        with pytest.raises(ofipy.InvalidArgument):
            insert(ep, service, wait=wrong)


def test_a_time_out_says_that_nobody_is_there(open_endpoint: OpenEndpoint, service: str) -> None:
    ep = open_endpoint()
    request = ep.tsend(b"in vain", insert(ep, service), tag=TAG)
    with pytest.raises(ofipy.TimedOut, match=r"within 0\.2 s, and the peer is not connected") as caught:
        request.wait(timeout=0.2)
    assert "start the peer" in str(caught.value.remedy)


def test_insert_waits_longer_than_the_default(
    open_endpoint: OpenEndpoint, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience(monkeypatch, 1)
    ep = open_endpoint()
    began = time.monotonic()
    with pytest.raises(ofipy.TimedOut):
        insert(ep, service, wait=1.5)
    assert time.monotonic() - began >= 1.5


def test_insert_says_the_same_where_its_thread_runs_late(
    open_endpoint: OpenEndpoint, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core, which asks a little longer than `insert` waits, has given up before."""
    patience(monkeypatch, 1)
    monkeypatch.setattr(reach, "_SLACK", -FOR_EVER * 10**9)
    ep = open_endpoint()
    with pytest.raises(ofipy.TimedOut, match=rf"within {FOR_EVER} s") as caught:
        insert(ep, service, wait=FOR_EVER)
    assert service in str(caught.value.peer)


def test_ctrl_c_ends_the_wait(open_endpoint: OpenEndpoint, service: str) -> None:
    ep = open_endpoint()
    main = threading.main_thread().ident
    assert main is not None
    # Whatever ran before may have left another one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), running(timer):
        insert(ep, service, wait=FOR_EVER)
    assert_nobody_asks(open_endpoint, service)


def assert_nobody_asks(open_endpoint: OpenEndpoint, service: str) -> None:
    """A peer that opens now is not met by anybody."""
    other = open_endpoint(service=service)
    time.sleep(0.4)
    assert other.stats().peers_up == 0


@pytest.mark.parametrize("end", ["interrupt", "time-out"])
def test_the_peer_is_asked_as_long_as_somebody_waits(
    open_endpoint: OpenEndpoint, service: str, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Operations that were posted meanwhile wait for the time that they would have waited without."""
    patience(monkeypatch, 1)
    ep = open_endpoint()
    peer = ep.av.insert(f"localhost:{service}")
    main = threading.main_thread().ident
    assert main is not None
    # Whatever ran before may have left another one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent: list[ofipy.Request] = []

    def wait(self: ofipy.Request, timeout: float) -> object:
        if not sent:
            sent.append(ep.tsend(b"in vain", peer, tag=TAG))
        return ofipy.Request.wait(self, timeout)

    monkeypatch.setattr(reach._Reach, "wait", wait)
    timers = []
    if end == "interrupt":
        timers.append(threading.Timer(0.4, signal.pthread_kill, (main, signal.SIGINT)))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt if end == "interrupt" else ofipy.TimedOut), running(*timers):
        insert(ep, service, wait=FOR_EVER if end == "interrupt" else 0.4)
    assert insert_in_vain(ep, service) == peer
    with pytest.raises(ofipy.ConnectionRefused):
        sent[0].wait(timeout=TIMEOUT)
    assert time.monotonic() - began >= 1


def insert_in_vain(ep: ofipy.Endpoint, service: str) -> ofipy.Peer:
    with pytest.raises(ofipy.TimedOut):
        insert(ep, service, wait=0.1)
    return ep.av.insert(f"localhost:{service}")


def test_the_error_says_what_set_the_time(
    open_endpoint: OpenEndpoint, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience(monkeypatch, 1)
    ep = open_endpoint()
    sent = ep.tsend(b"in vain", ep.av.insert(f"localhost:{service}"), tag=TAG)
    with pytest.raises(ofipy.TimedOut):
        insert(ep, service, wait=2)
    with pytest.raises(ofipy.ConnectionRefused, match=TWO_OR_MORE + r" \(insert\(wait=\)\)"):
        sent.wait(timeout=TIMEOUT)


def test_who_never_comes_is_given_up(
    open_endpoint: OpenEndpoint,
    service: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    patience(monkeypatch, 2)
    ep = open_endpoint()
    peer = insert(ep, service)
    began, before = time.monotonic(), ep.stats()
    sent = [ep.tsend(b"in vain", peer, tag=number) for number in range(3)]
    with caplog.at_level(logging.WARNING, "ofipy"):
        for request in sent:
            with pytest.raises(
                ofipy.ConnectionRefused, match=TWO_OR_MORE + r" \(OFIPY_CONNECT_TIMEOUT\)"
            ) as caught:
                request.wait(timeout=TIMEOUT)
            # All of them end at once.
            assert all(each.done for each in sent)
            assert service in str(caught.value.peer)
            assert "start the peer" in str(caught.value.remedy)
    waited = time.monotonic() - began
    assert waited >= 2
    after = ep.stats()
    sleeps = after.sleeps - before.sleeps
    # It sleeps between attempts, and looks some hundred times before each sleep.
    assert sleeps <= 100 * waited
    assert after.progress_calls - before.progress_calls <= 2000 * (sleeps + 1)
    told = [text for record in caplog.records if "waits for peer" in (text := record.getMessage())]
    assert [f"waits for peer {int(peer)}, up to 2 s" in text for text in told] == [True]
    # Nobody has been there yet, so that the next one waits again.
    late = ep.tsend(b"at last", peer, tag=TAG)
    other = open_endpoint(service=service)
    late.wait(timeout=TIMEOUT)
    assert other.trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"at last"


def test_who_has_been_there_is_not_waited_for(
    open_endpoint: OpenEndpoint, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience(monkeypatch, FOR_EVER)
    ep, other = open_endpoint(), open_endpoint(service=service)
    peer = insert(ep, service)
    ep.tsend(b"there", peer, tag=TAG).wait(timeout=TIMEOUT)
    other.trecv(tag=TAG).wait(timeout=TIMEOUT)
    other.fabric.close()
    while ep.stats().peers_lost == 0:
        time.sleep(0.01)
    with pytest.raises(ofipy.ConnectionRefused):
        ep.tsend(b"gone", peer, tag=TAG).wait(timeout=TIMEOUT)
    # Inserted again it is expected again.
    assert insert(ep, service) == peer
    late = ep.tsend(b"again", peer, tag=TAG)
    again = open_endpoint(service=service)
    late.wait(timeout=TIMEOUT)
    assert again.trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"again"


def test_what_waits_can_be_cancelled(open_endpoint: OpenEndpoint, service: str) -> None:
    ep = open_endpoint()
    peer = insert(ep, service)
    kept, taken_back, last = (ep.tsend(b"%d" % number, peer, tag=TAG) for number in range(3))
    time.sleep(0.05)
    assert taken_back.cancel()
    with pytest.raises(ofipy.Canceled):
        taken_back.wait(timeout=TIMEOUT)
    other = open_endpoint(service=service)
    kept.wait(timeout=TIMEOUT)
    last.wait(timeout=TIMEOUT)
    assert [bytes(other.trecv(tag=TAG).wait(timeout=TIMEOUT).data) for _ in range(2)] == [b"0", b"2"]


@pytest.mark.parametrize("ends", ["close", "remove"])
def test_closing_does_not_wait(
    open_endpoint: OpenEndpoint, service: str, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    patience(monkeypatch, FOR_EVER)
    monkeypatch.setattr("ofipy._base.linger.CLOSE_TIMEOUT", FOR_EVER)
    ep = open_endpoint()
    peer = insert(ep, service)
    waiting = ep.tsend(b"never", peer, tag=TAG)
    time.sleep(0.05)
    if ends == "close":
        ep.fabric.close(linger=0)
    else:
        ep.av.remove(peer)
    with pytest.raises(ofipy.Canceled):
        waiting.wait(timeout=TIMEOUT)


def test_who_is_waited_for_may_call_first(open_endpoint: OpenEndpoint, service: str) -> None:
    ep = open_endpoint()
    sent = ep.tsend(b"question", insert(ep, service), tag=TAG)
    time.sleep(0.2)
    other = open_endpoint(service=service)
    other.tsend(b"call", other.insert(ep.address), tag=TAG).wait(timeout=TIMEOUT)
    sent.wait(timeout=TIMEOUT)
    assert ep.trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"call"
    assert other.trecv(tag=TAG).wait(timeout=TIMEOUT).data == b"question"
