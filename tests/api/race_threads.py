# SPDX-License-Identifier: BSD-3-Clause
"""Several threads at one object: each gets what is its own, or is told why not."""

import threading
from collections.abc import Callable
from typing import Any

from numbered import canary, is_untouched, message, number_of
from pair import PATIENCE, open_domain
from race_stage import TAG, Stage, scenario

import ofipy

SIZE = 4096


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run each in a thread, all at once. Returns what they returned, or the FabricError that they raised."""
    results: list[Any] = [None] * len(calls)
    begin = threading.Barrier(len(calls))

    def run(place: int, call: Callable[[], Any]) -> None:
        begin.wait()
        try:
            results[place] = call()
        except BaseException as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"a thread hangs; the others: {results}"
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, ofipy.FabricError):
            raise result
    return results


def next_one(stage: Stage, number: int) -> None:
    """The next message is this one."""
    assert number_of(stage.ep.trecv(tag=TAG).wait(timeout=PATIENCE).data) == number


def waiters(name: str, *waits: Callable[[ofipy.Request], Any]) -> None:
    """Enter ways of waiting for one request, a thread each; all get the same."""

    @scenario(name)
    def turn(stage: Stage) -> None:
        number, buffer = stage.new(), canary(SIZE)
        any_size = stage.random.random() < 0.5
        request = stage.ep.trecv(tag=TAG) if any_size else stage.ep.trecv_into(buffer, tag=TAG)
        calls = [lambda wait=wait: wait(request) for wait in waits]
        *results, sent = together(*calls, lambda: stage.send(number, SIZE))
        assert sent is None
        expected = request.wait(timeout=PATIENCE)
        for result in results:
            assert result is expected or result is True, f"{result!r}, and not {expected!r}"
        assert number_of(expected.data if any_size else buffer) == number


def until(look: Callable[[], bool]) -> bool:
    while not look():
        pass
    return True


WAIT = (
    lambda request: request.wait(),
    lambda request: request.wait(timeout=PATIENCE),
    lambda request: ofipy.wait_all([request])[0],
    lambda request: ofipy.wait_any([request]).wait(),
)
waiters("wait-wait", WAIT[0], WAIT[0])
waiters("wait-wait-timeout", WAIT[0], WAIT[0], WAIT[1])
waiters("wait-wait_all-wait_any", WAIT[0], WAIT[2], WAIT[3])
waiters("wait-done-test", WAIT[1], lambda r: until(lambda: r.done), lambda r: until(r.test))


def cancels(name: str, receive: Callable[[Stage, bytearray], ofipy.Request]) -> None:
    """Enter a way of receiving, which is waited for and cancelled while its message comes."""

    @scenario(name)
    def turn(stage: Stage) -> None:
        number, buffer = stage.new(), canary(SIZE)
        request = receive(stage, buffer)
        result, canceled, sent = together(
            lambda: request.wait(timeout=PATIENCE),
            lambda: (stage.pause(), request.cancel())[1],
            lambda: stage.send(number, SIZE),
        )
        assert sent is None
        if canceled:
            assert isinstance(result, ofipy.Canceled), f"cancelled, and it returned {result!r}"
            assert is_untouched(buffer)
            next_one(stage, number)
        else:
            data = result.data if isinstance(result, ofipy.Message) else buffer[: result.length]
            assert number_of(data) == number


cancels("cancel-trecv", lambda stage, _: stage.ep.trecv(tag=TAG))
cancels("cancel-trecv_into", lambda stage, buffer: stage.ep.trecv_into(buffer, tag=TAG))


@scenario("prepared-wait-wait")
def prepared_wait(stage: Stage) -> None:
    number, buffer = stage.new(), bytearray(SIZE)
    request = stage.ep.prepare_trecv(buffer, tag=TAG).start()
    first, second, sent = together(
        lambda: request.wait(timeout=PATIENCE),
        lambda: request.wait(timeout=PATIENCE),
        lambda: stage.send(number, SIZE),
    )
    assert (first, second, sent) == (request, request, None)
    assert number_of(buffer) == number


@scenario("prepared-start-start")
def prepared_start(stage: Stage) -> None:
    number = stage.new()
    request = stage.ep.prepare_tsend(message(number, SIZE), stage.me, tag=TAG)
    begun = together(*[lambda: request.start().wait(timeout=PATIENCE)] * 2)
    for result in begun:
        assert result is request or isinstance(result, ofipy.Busy), repr(result)
    for _ in range(sum(result is request for result in begun)):
        next_one(stage, number)
    assert stage.ep.probe(tag=TAG) is None


@scenario("many-next-next", needs="multi_recv")
def many(stage: Stage) -> None:
    """One thread at a time may ask; of two, each message goes to one, and none is lost."""
    numbers = {stage.new(), stage.new()}
    many = stage.ep.trecv_many(canary(4 * SIZE), tag=TAG)
    *views, _, _ = together(
        lambda: many.next(timeout=1),
        lambda: many.next(timeout=1),
        *[lambda number=number: stage.send(number, SIZE) for number in numbers],
    )
    came = [number_of(view.data) for view in views if isinstance(view, ofipy.MessageView)]
    many.cancel()
    came += [number_of(view.data) for view in many]
    assert sorted(came) == sorted(numbers), f"{came} of {numbers}, from {views}"


@scenario("close-wait")
def close(stage: Stage) -> None:
    endpoint = stage.ep.domain.endpoint().enable()
    one, other = endpoint.trecv(tag=TAG), endpoint.trecv_into(bytearray(SIZE), tag=TAG)
    *results, closed = together(
        lambda: one.wait(timeout=PATIENCE),
        lambda: other.wait(timeout=PATIENCE),
        lambda: other.wait(),
        lambda: (stage.pause(), endpoint.close())[1],
    )
    assert closed is None
    for result in results:
        assert isinstance(result, ofipy.Canceled | ofipy.Closed), repr(result)


@scenario("close-send")
def close_send(stage: Stage) -> None:
    domain = open_domain(stage.target)
    endpoint = domain.endpoint().enable()
    peer = endpoint.insert(stage.ep.address)
    numbers = [stage.new() for _ in range(20)]

    def sends() -> int:
        for place, number in enumerate(numbers):
            try:
                endpoint.tsend(message(number, SIZE), peer, tag=TAG)
            except (ofipy.Closed, ofipy.Canceled):
                return place
        return len(numbers)

    sent, closed = together(sends, lambda: (stage.pause(), domain.fabric.close(linger=0))[1])
    assert closed is None
    assert isinstance(sent, int)
    stage.send(last := stage.new(), SIZE)
    came = [0]
    while came[-1] != last:
        try:
            data = stage.ep.trecv(tag=TAG).wait(timeout=PATIENCE).data
        except ofipy.PeerLost:
            # Of a message that was announced, and whose sender closed before it was fetched.
            continue
        came.append(number_of(data))
        assert came[-2] < came[-1]
        assert came[-1] in numbers[:sent] or came[-1] == last


@scenario("close-send-linger")
def close_send_that_lingers(stage: Stage) -> None:
    domain = open_domain(stage.target)
    endpoint = domain.endpoint().enable()
    peer = endpoint.insert(stage.ep.address)
    numbers, last = [stage.new() for _ in range(20)], stage.new()

    def sends() -> list[int]:
        for place, number in enumerate(numbers):
            try:
                endpoint.tsend(message(number, SIZE), peer, tag=TAG)
            except (ofipy.Closed, ofipy.Canceled):
                return numbers[:place]
        return numbers

    def close() -> None:
        stage.pause()
        domain.fabric.close(linger=PATIENCE)
        stage.send(last, SIZE)

    def receives() -> list[int]:
        came: list[int] = []
        while last not in came:
            came.append(number_of(stage.ep.trecv(tag=TAG).wait(timeout=2 * PATIENCE).data))
        return came

    sent, closed, came = together(sends, close, receives)
    assert closed is None, repr(closed)
    assert isinstance(sent, list), repr(sent)
    assert came == [*sent, last]


@scenario("close-read", needs="rma")
def close_region(stage: Stage) -> None:
    source = message(stage.new(), SIZE)
    region = stage.ep.register(bytearray(source), access="remote_read")
    remote = region.remote
    # libfabric's tcp has no answer but the end of the connection (tests/conformance/deviations.py).
    refused = ofipy.Canceled if "ofi:tcp" in stage.ep.provider else ofipy.RemoteAccessError

    def read() -> bool:
        for _ in range(20):
            into = canary(SIZE)
            try:
                stage.ep.read(into, stage.me, remote).wait(timeout=PATIENCE)
            except refused:
                assert is_untouched(into)
                return True
            assert into == source
        return True

    assert together(read, lambda: (stage.pause(), region.close())[1]) == [True, None]


@scenario("cq-wait-wait")
def queue(stage: Stage) -> None:
    memory = stage.ep.register(bytearray(2 * SIZE))
    for place in range(2):
        stage.ep.post_trecv(memory[place * SIZE : (place + 1) * SIZE], tag=TAG, context=place)
    one, other, _, _ = together(
        lambda: stage.ep.cq.wait(timeout=0.3),
        lambda: stage.ep.cq.wait(timeout=0.3),
        lambda: stage.send(stage.new(), SIZE),
        lambda: stage.send(stage.new(), SIZE),
    )
    contexts = [int(row["context"]) for rows in (one, other) if len(rows_of(rows)) for row in rows]
    while len(contexts) < 2:
        contexts += map(int, stage.ep.cq.wait(timeout=PATIENCE)["context"])
    assert sorted(contexts) == [0, 1]
    memory.close()


def rows_of(result: Any) -> Any:
    if isinstance(result, ofipy.FabricError):
        assert isinstance(result, ofipy.TimedOut), repr(result)
        return ()
    return result


@scenario("close-counter")
def counter(stage: Stage) -> None:
    counted = stage.ep.domain.counter()
    result, closed = together(
        lambda: counted.wait(1, timeout=PATIENCE), lambda: (stage.pause(), counted.close())[1]
    )
    assert closed is None
    assert isinstance(result, ofipy.Canceled | ofipy.Closed), repr(result)


@scenario("remove-send")
def remove(stage: Stage) -> None:
    """What goes to a peer that is removed arrives, or ends as cancelled; nobody else gets it."""
    domain = open_domain(stage.target)
    other = domain.endpoint().enable()
    peer = stage.ep.insert(other.address)
    numbers = [stage.new() for _ in range(20)]
    requests: list[ofipy.Request] = []

    def sends() -> None:
        for number in numbers:
            try:
                requests.append(stage.ep.tsend(message(number, SIZE), peer, tag=TAG))
            except ofipy.UnknownPeer:
                return

    assert together(sends, lambda: (stage.pause(), stage.ep.av.remove(peer))[1]) == [None, None]
    for request in requests:
        try:
            request.wait(timeout=PATIENCE)
        except (ofipy.Canceled, ofipy.UnknownPeer):
            continue
    assert stage.ep.probe(tag=TAG) is None
    came = [0]
    while other.probe(tag=TAG) is not None:
        came.append(number_of(other.trecv(tag=TAG).wait(timeout=PATIENCE).data))
        assert came[-2] < came[-1]
        assert came[-1] in numbers[: len(requests)]
    domain.fabric.close()
