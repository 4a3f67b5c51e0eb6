# SPDX-License-Identifier: BSD-3-Clause
"""Closing in every order, dropping, forking, ending."""

import gc
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from machine import SLOWNESS
from sides import Side, Sides, Target

import ofipy
from ofipy.pingpong.leftovers import count_descriptors, remove_leftovers

TIMEOUT = 30

OpenEndpoint = Callable[..., ofipy.Endpoint]


def until_asleep(threads: list[threading.Thread]) -> None:
    """Return when all of them sleep, which they do in the core where this one leaves them the interpreter."""
    seen = 0
    while seen < 10:
        stats = [Path(f"/proc/self/task/{thread.native_id}/stat").read_text() for thread in threads]
        asleep = all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)
        seen = seen + 1 if asleep else 0
        time.sleep(0.001)


def test_close_cancels_what_is_in_flight(open_endpoint: OpenEndpoint) -> None:
    first = open_endpoint()
    ep = open_endpoint(first.domain, cq=first.domain.cq())
    me = ep.insert(ep.address)
    region = ep.register(bytearray(8))
    receive = ep.trecv_into(bytearray(8), me, tag=1)
    send = ep.tsend(np.zeros(1 << 20, np.uint8), me, tag=2, complete="match")
    ep.post_trecv(region, me, tag=3, context=77)
    cq = ep.cq
    ep.close(linger=0)
    for request in (receive, send):
        assert isinstance(request.exception(), ofipy.Canceled)
        with pytest.raises(ofipy.Canceled):
            request.wait(timeout=1)
    rows = cq.read()
    assert list(rows["context"]) == [77]
    assert isinstance(cq.exception(rows[0]), ofipy.Canceled)
    cq.close()


@pytest.mark.parametrize("close", ["endpoint", "queue", "all"])
def test_close_ends_waits_of_other_threads(open_endpoint: OpenEndpoint, close: str) -> None:
    first = open_endpoint()
    ep = open_endpoint(first.domain, cq=first.domain.cq(), tx_size=1)
    me = ep.insert(ep.address)
    busy = ep.tsend(np.zeros(1 << 20), me, tag=3, complete="match")
    assert not busy.test()
    ended: list[type] = []

    def wait(call: Callable[[], object]) -> None:
        try:
            call()
        except ofipy.FabricError as error:
            ended.append(type(error))

    calls = [
        lambda: ep.trecv_into(bytearray(8), me, tag=1).wait(),
        lambda: ep.trecv_into(bytearray(8), me, tag=1).wait(timeout=TIMEOUT),
        lambda: ep.tsend(np.zeros(1 << 20), me, tag=3, complete="match").wait(),
        lambda: ep.cq.wait(),
        lambda: ep.cq.wait(timeout=TIMEOUT),
    ]
    if close == "endpoint":
        del calls[3:]  # the queue stays, and so do its waiters
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    until_asleep(threads)
    {"endpoint": ep, "queue": ep.cq, "all": ep.fabric}[close].close(linger=0)
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(thread.is_alive() for thread in threads)
    assert set(ended) <= {ofipy.Canceled, ofipy.Closed}
    assert len(ended) == len(calls)
    assert isinstance(busy.exception(), ofipy.Canceled)


def test_close_meets_threads_that_go_on_calling(open_endpoint: OpenEndpoint) -> None:
    for _ in range(30):
        ep = open_endpoint()
        me = ep.insert(ep.address)
        receive = ep.trecv_into(bytearray(8), me, tag=1)
        prepared = ep.prepare_tsend(b"prepared", me, tag=2)
        batch = ep.cq.batch(4)
        ended: list[type] = []

        def call_until_closed(call: Callable[[], object], ended: list[type] = ended) -> None:
            try:
                while True:
                    call()
            except (ofipy.Closed, ofipy.Canceled) as error:
                ended.append(type(error))

        calls: list[Callable[[], object]] = [
            lambda ep=ep: ep.stats(),
            lambda ep=ep, me=me: ep.trecv_into(bytearray(8), me, tag=3).cancel(),
            lambda ep=ep, me=me: me.address,
            lambda batch=batch: batch.read(),
            lambda ep=ep: ep.domain.progress(),
            lambda receive=receive: receive.test() and receive.wait(timeout=1),
            lambda prepared=prepared: (prepared.start(), prepared.wait(timeout=5)),
        ]
        threads = [threading.Thread(target=call_until_closed, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        ep.fabric.close()
        for thread in threads:
            thread.join(TIMEOUT)
        assert len(ended) == len(calls)


def test_results_are_there_after_the_endpoint(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    me = ep.insert(ep.address)
    room = bytearray(4)
    request = ep.trecv_into(room, me, tag=1)
    ep.tsend(b"done", me, tag=1).wait(timeout=TIMEOUT)
    while ep.stats().receives == 0:
        ep.domain.progress()
    ep.close()
    assert request.wait(timeout=1).length == 4
    assert room == b"done"


def test_closed_objects_say_so(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    me, region, cq, av, domain = ep.insert(ep.address), ep.register(bytearray(8)), ep.cq, ep.av, ep.domain
    waiting = ep.trecv_into(bytearray(1), me, tag=1)
    batch = cq.batch(4)
    assert not ep.closed
    ep.fabric.close()
    for each in (ep, cq, av, domain, domain.fabric):
        assert each.closed
        each.close()
        assert "closed" in repr(each) or isinstance(each, ofipy.Fabric)
    for call in (
        lambda: ep.tsend(b"x", me, tag=1),
        lambda: ep.trecv_into(bytearray(1), me, tag=1),
        lambda: ep.trecv_into(region, me, tag=1),
        lambda: ep.trecv(tag=1),
        lambda: ep.post(np.zeros(1, ofipy.OPERATION_DTYPE)),
        lambda: ep.prepare_tsend(b"x", me),
        lambda: ep.address,
        lambda: ep.stats(),
        lambda: ep.insert("localhost:1"),
        lambda: ep.register(bytearray(1)),
        lambda: ep.empty(1),
        lambda: cq.read(),
        lambda: batch.read(),
        lambda: batch.wait(timeout=1),
        lambda: cq.arm(),
        lambda: domain.cq(),
        lambda: domain.fabric.domain(),
    ):
        with pytest.raises(ofipy.Closed):
            call()
    with pytest.raises(ofipy.Canceled):
        waiting.wait(timeout=1)


def test_parents_close_their_children(target: Target) -> None:
    fabric = ofipy.Fabric(target.info())
    domain = fabric.domain()
    cq, av = domain.cq(), domain.av()
    endpoints = [domain.endpoint(cq=cq, av=av).enable() for _ in range(3)]
    region = domain.register(bytearray(1))
    cq.close()
    assert all(endpoint.closed for endpoint in endpoints)
    assert not av.closed
    fabric.close()
    assert av.closed
    assert domain.closed
    assert region.closed


def test_with_never_hides_an_exception(target: Target) -> None:
    fabric = ofipy.Fabric(target.info())
    domain = fabric.domain(threading="domain")
    cause = KeyError("the cause")
    # Closing from here fails: the domain belongs to the other thread.
    thread = threading.Thread(target=domain.adopt)
    thread.start()
    thread.join()
    with pytest.raises(KeyError), fabric, domain:
        raise cause
    with pytest.raises(ofipy.ThreadingError), domain:
        pass
    assert not domain.closed
    domain.adopt()
    fabric.close()


@pytest.mark.needs("groups")
def test_a_group_that_another_thread_cannot_close_stays_open(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint(threading="domain", progress="manual")
    group = ofipy.Group(ep)
    thread = threading.Thread(target=ep.domain.adopt)
    thread.start()
    thread.join()
    with pytest.raises(ofipy.ThreadingError, match="close a group"):
        group.close()
    assert not group.closed
    ep.domain.adopt()
    group.close()
    assert group.closed


@pytest.mark.parametrize("seed", range(8))
def test_dropping_everything_in_any_order(target: Target, seed: int) -> None:
    """Garbage collection may end objects in any order; a warning is all that happens."""
    gc.collect()
    before = count_descriptors()
    fabric = ofipy.Fabric(target.info())
    domain = fabric.domain(progress="auto")
    cq, av = domain.cq(), domain.av()
    ep = domain.endpoint(cq=cq, av=av).enable()
    me = ep.insert(ep.address)
    things = [
        fabric, domain, cq, av, ep, me, domain.register(bytearray(8)), domain.empty(100), cq.batch(4),
        ep.trecv_into(bytearray(8), me, tag=1), ep.prepare_tsend(b"x", me, tag=2), ep.tsend(b"x", me, tag=3),
        ep.trecv_into(domain.empty(9000), me, tag=1),
    ]  # fmt: skip
    if not ep.info.offloads_matching:
        things.append(ep.trecv(tag=9))
    alive = weakref.ref(domain)
    if seed % 2:
        things.append(things)  # a cycle: the collector decides
    del fabric, domain, cq, av, ep, me
    np.random.default_rng(seed).shuffle(order := list(range(len(things))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for index in order:
            things[index] = None
        del things
        gc.collect()
        gc.collect()
    assert alive() is None
    assert count_descriptors() == before


def test_dropping_an_open_endpoint_warns(target: Target) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        endpoint = target.open()
        del endpoint
        gc.collect()
        assert [str(each.message).split()[1] for each in caught] == ["endpoint"]
        # The warning held the endpoint, and by it the domain.
        caught.clear()
        gc.collect()
        assert [str(each.message).split()[1] for each in caught] == ["domain"]
        assert caught[0].category is ResourceWarning
        caught.clear()


def test_open_and_close_leak_nothing(open_endpoint: OpenEndpoint) -> None:
    domain = open_endpoint().domain
    ep = open_endpoint(domain)
    for number in range(300 // SLOWNESS):
        with domain.endpoint(cq=ep.cq, av=ep.av).enable() as other:
            request = ep.trecv_into(bytearray(1), tag=1)
            other.tsend(b"x", ep.av.insert(ep.address), tag=1).wait(timeout=TIMEOUT)
            request.wait(timeout=TIMEOUT)
        if number == 20:
            before = count_descriptors()
    assert count_descriptors() <= before + 1


def test_whole_stacks_leak_no_descriptor(target: Target) -> None:
    for number in range(30):
        ep = target.open(progress="auto")
        ep.trecv_into(bytearray(1), tag=1)
        ep.tsend(b"x", ep.insert(ep.address), tag=1).wait(timeout=TIMEOUT)
        ep.fabric.close()
        if number == 5:
            before = count_descriptors()
    assert count_descriptors() == before


# ---------------------------------------------------------------------------------------------------------------- fork


def test_fork(target: Target, open_endpoint: OpenEndpoint) -> None:
    """In a child everything of the parent is dead, closing it does nothing, and the child may open anew."""
    ep = open_endpoint()
    me, array = ep.insert(ep.address), ep.empty(100)
    region, request, batch = ep.register(bytearray(8)), ep.trecv_into(bytearray(5), me, tag=1), ep.cq.batch(4)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads: that is the point
        child = os.fork()
    if not child:
        try:
            verdict = in_child(target, ep, me, region, request, batch)
            del array, region, request, batch, ep
            gc.collect()
            os.write(writer, verdict.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "good"
    assert os.waitpid(child, 0)[1] == 0
    ep.tsend(b"alive", me, tag=1).wait(timeout=TIMEOUT)
    assert request.wait(timeout=TIMEOUT).length == 5
    array[:] = 1


def in_child(
    target: Target, ep: ofipy.Endpoint, me: ofipy.Peer, region: ofipy.Region, request: ofipy.Request,
    batch: ofipy.CompletionBatch,
) -> str:  # fmt: skip
    for number, call in enumerate(
        (
            lambda: ep.tsend(b"x", me, tag=1),
            lambda: ep.tsend(region, me, tag=1),
            lambda: ep.trecv_into(bytearray(1), me, tag=1),
            lambda: request.wait(timeout=1),
            lambda: request.wait(),
            lambda: batch.read(),
            lambda: batch.wait(timeout=1),
            lambda: ep.address,
            lambda: ep.domain.cq(),
            lambda: ep.empty(5),
            lambda: ep.prepare_tsend(b"x", me),
        )
    ):
        try:
            call()
        except ofipy.ForkedError:
            continue
        except BaseException as error:
            return f"call {number} raised {error!r}"
        return f"call {number} went through"
    ep.close()
    ep.fabric.close()
    if target.provider == "verbs":
        # Its libraries cannot be opened a second time, and say so: docs/explanation/verbs.md
        said = [
            str(each.reason)
            for each in ofipy.getinfo(provider="verbs", explain=True)
            if each.provider == "verbs"
        ]
        return "good" if "start it anew" in said[0] else f"it said {said[0]}"
    with target.open().fabric as fabric:
        del fabric
    fresh = target.open()
    fresh.tsend(b"new", fresh.insert(fresh.address), tag=1).wait(timeout=10)
    fresh.trecv_into(bytearray(3), tag=1).wait(timeout=10)
    fresh.fabric.close()
    return "good"


# --------------------------------------------------------------------------------------------------- end of the process

LEAVE_OPEN = """
import sys, numpy, ofipy
info = ofipy.getinfo(provider=sys.argv[1], domain=sys.argv[2])[0]
domain = ofipy.Fabric(info).domain(progress="auto")
ep = domain.endpoint().enable()
me = ep.insert(ep.address)
array = domain.empty(100_000)
kept = [ep.trecv_into(array, me, tag=1), ep.prepare_tsend(b"x", me), ep.register(bytearray(5)), ep.cq.batch(5)]
if sys.argv[3] == "thread":
    import threading
    threading.Thread(target=lambda: ep.trecv_into(bytearray(1), tag=4).wait(timeout=0.5), daemon=True).start()
if sys.argv[3] == "raise":
    raise SystemExit(7)
print("end")
"""


@pytest.mark.parametrize("way", ["plain", "thread", "raise"])
def test_interpreter_exit_with_everything_open(target: Target, way: str) -> None:
    command = [sys.executable, "-P", "-X", "dev", "-c", LEAVE_OPEN, target.provider, target.domain, way]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    # libfabric's are not closed under a thread that waits.
    remove_leftovers([process.pid])
    assert process.returncode == (7 if way == "raise" else 0), errors
    assert "Fatal" not in errors


# --------------------------------------------------------------------------------------------------------- other sides


def leave(side: Side) -> None:
    side.ep.tsend(b"last words", side.peer, tag=1).wait(timeout=TIMEOUT)
    side.ep.tsend(np.arange(200_000, dtype=np.uint32), side.peer, tag=2, complete="match").wait(
        timeout=TIMEOUT
    )


def stay(side: Side) -> None:
    room = np.zeros(200_000, np.uint32)
    side.ep.trecv_into(room, side.peer, tag=2).wait(timeout=TIMEOUT)
    assert np.array_equal(room, np.arange(200_000, dtype=np.uint32))
    words = bytearray(10)
    side.ep.trecv_into(words, side.peer, tag=1).wait(timeout=TIMEOUT)
    assert words == b"last words"


def test_messages_outlive_their_sender(sides: Sides) -> None:
    sides.run(leave, stay)


def vanish(side: Side) -> None:
    side.sync()
    os.kill(os.getpid(), 9)


def notice(side: Side) -> str:
    pending = side.ep.trecv_into(bytearray(8), side.peer, tag=5)
    anyone = side.ep.trecv_into(bytearray(8), tag=6)
    side.sync()
    with pytest.raises(ofipy.PeerLost) as caught:
        pending.wait(timeout=10)
    assert caught.value.peer == str(side.peer.address)
    with pytest.raises(ofipy.PeerLost):
        side.ep.trecv_into(bytearray(8), side.peer, tag=5).wait(timeout=3)
    with pytest.raises(ofipy.FabricError):
        side.ep.tsend(np.zeros(1 << 20, np.uint8), side.peer, tag=7).wait(timeout=10)
    with pytest.raises(ofipy.PeerLost):
        side.ep.trecv_into(bytearray(8), side.peer, tag=5).wait(timeout=3)
    assert not anyone.done
    side.ep.tsend(b"to me", side.ep.insert(side.ep.address), tag=6).wait(timeout=10)
    assert anyone.wait(timeout=10).length == 5
    return "noticed"


@pytest.mark.pairs
@pytest.mark.needs("processes", "directed_recv")
def test_killed_peer_is_noticed(target: Target) -> None:
    from sides import SideFailed, Workers

    workers = Workers(target)
    try:
        with pytest.raises(SideFailed, match="side 0 died with status -9"):
            workers.run(vanish, notice, timeout=30)
        with pytest.raises(SideFailed, match="side 1 died"):
            workers.run(notice_marker, vanish)
    finally:
        workers.kill()


def notice_marker(side: Side) -> None:
    notice(side)


@pytest.mark.pairs
def test_endpoints_of_one_process_answer_each_other_and_close(open_endpoint: OpenEndpoint) -> None:
    """What an endpoint leaves behind is in nobody's way, least of all of those in its own process."""
    first = open_endpoint()
    me = first.insert(first.address)
    question, answer = np.arange(500.0), np.arange(3000.0)
    for number in range(5):
        other = open_endpoint()
        room = np.zeros_like(question)
        first.tsend(question, first.insert(other.address), tag=number)
        other.trecv_into(room, tag=number).wait(timeout=TIMEOUT)
        assert np.array_equal(room, question)
        # Met only now by the one that answers.
        other.tsend(answer, other.insert(first.address), tag=number)
        room = np.zeros_like(answer)
        first.trecv_into(room, tag=number).wait(timeout=TIMEOUT)
        assert np.array_equal(room, answer)
        other.fabric.close()
        first.tsend(answer, me, tag=number)
        first.trecv_into(room, tag=number).wait(timeout=TIMEOUT)
