# SPDX-License-Identifier: BSD-3-Clause
"""Receives in a storm: one that was interrupted takes no message, unless one was there for it in the moment."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numbered import SIZES, WrongContents, canary, is_untouched, number_of
from pair import PATIENCE, eventually
from storm import INTERRUPTED
from storm_cases import TAG, Rounds, Scene, case, send

import ofipy

Post = Callable[[Scene, bytearray], ofipy.Request]


def posted_are(scene: Scene, number: int) -> None:
    """No receive is posted but those that somebody holds."""
    if scene.counts_receives:
        eventually(f"{number} receives are posted", lambda: scene.a.stats().posted_receives == number)


def is_numbered(memory: bytearray, number: int) -> bool:
    """Whether a message is there, whole."""
    try:
        return number_of(memory) == number
    except WrongContents:
        return False


def payload(result: Any, buffer: bytearray) -> Any:
    """What a receive brought."""
    return result.data if isinstance(result, ofipy.Message) else buffer[: result.length]


def receives(name: str, post: Post, *, tagged: bool = True, **needs: Any) -> None:
    """Enter a way of receiving: messages come when the receives are there."""

    @case(name, **needs)
    def rounds(scene: Scene) -> Rounds:
        while True:
            held: list[tuple[ofipy.Request, bytearray, int]] = []
            kept: list[bytearray] = []
            for _ in range(scene.random.randint(1, 6)):
                size = scene.random.choice(SIZES)
                buffer = canary(size)
                request = scene.storm.attempt(lambda: post(scene, buffer))  # noqa: B023
                if request is not INTERRUPTED:
                    held.append((request, buffer, size))
                elif scene.random.random() < 0.5:
                    kept.append(buffer)
                else:
                    # What is freed becomes another object, which nobody may write into either.
                    del buffer
                    kept.append(canary(size))
                del request
            posted_are(scene, len(held))
            expected = [(next(scene.numbers), size) for _, _, size in held]
            arriving = [send(scene, number, size, tagged=tagged) for number, size in expected]
            for (request, buffer, _), (number, _) in zip(held, expected, strict=True):
                result = scene.storm.until_done(request.wait)
                assert scene.storm.until_done(request.wait) is result
                assert number_of(payload(result, buffer)) == number
            ofipy.wait_all(arriving, timeout=PATIENCE)
            posted_are(scene, 0)
            assert all(map(is_untouched, kept)), "memory of an interrupted receive was written"
            yield


def early_receives(name: str, post: Post, *, tagged: bool = True, takes: bool = False, **needs: Any) -> None:
    """Enter a way of receiving messages that are there before.

    Where it `takes` them, one whose post was interrupted may have put a message into its buffer, all of it.
    """

    @case(name, **needs)
    def rounds(scene: Scene) -> Rounds:
        while True:
            size = scene.random.choice(SIZES)
            sent = [next(scene.numbers) for _ in range(scene.random.randint(1, 4))]
            arriving = [send(scene, number, size, tagged=tagged) for number in sent]
            if scene.counts_receives:
                eventually(
                    "all messages have arrived",
                    lambda: scene.a.stats().unexpected_messages == len(sent),  # noqa: B023
                )
            held: list[tuple[ofipy.Request, bytearray]] = []
            kept: list[bytearray] = []
            for _ in sent:
                buffer = canary(size)
                request = scene.storm.attempt(lambda: post(scene, buffer))  # noqa: B023
                if request is INTERRUPTED:
                    kept.append(buffer)
                else:
                    held.append((request, buffer))
                del request
            # For each that finds none of these there is one more, and one that ends it all.
            more = [next(scene.numbers) for _ in range(len(held) + 1)]
            arriving += [send(scene, number, size, tagged=tagged) for number in more]
            came = [
                number_of(payload(scene.storm.until_done(request.wait), buffer)) for request, buffer in held
            ]
            while not came or came[-1] != more[-1]:
                rest = scene.a.trecv(tag=TAG) if tagged else scene.a.recv()
                came.append(number_of(rest.wait(timeout=PATIENCE).data))
            assert came == sorted(set(came)), f"they arrived as {came}"
            missing = sorted(set(sent + more) - set(came))
            assert takes or not missing, f"messages {missing} of {sent} are lost"
            for number in missing:
                eventually(
                    f"message {number} of {sent} is in the memory of an interrupted receive",
                    lambda: any(is_numbered(buffer, number) for buffer in kept),  # noqa: B023
                )
            untouched = sum(map(is_untouched, kept))
            assert untouched == len(kept) - len(missing), "memory of an interrupted receive was written"
            ofipy.wait_all(arriving, timeout=PATIENCE)
            posted_are(scene, 0)
            yield


receives("trecv", lambda s, _: s.a.trecv(tag=TAG))
receives("trecv-directed", lambda s, _: s.a.trecv(s.pair.to_b, tag=TAG), needs="directed_recv")
receives("recv", lambda s, _: s.a.recv(), tagged=False)
receives("trecv_into", lambda s, buffer: s.a.trecv_into(buffer, tag=TAG))
receives("trecv_into-directed", lambda s, b: s.a.trecv_into(b, s.pair.to_b, tag=TAG), needs="directed_recv")
receives("trecv_into-ignore", lambda s, buffer: s.a.trecv_into(buffer, tag=TAG | 0xFF00, ignore=0xFF00))
receives(
    "trecv_into-list",
    lambda s, b: s.a.trecv_into(np.split(np.frombuffer(b, np.uint8), [16]), tag=TAG),
)
receives("recv_into", lambda s, buffer: s.a.recv_into(buffer), tagged=False)
early_receives("trecv-early", lambda s, _: s.a.trecv(tag=TAG))
early_receives("recv-early", lambda s, _: s.a.recv(), tagged=False)
early_receives("trecv_into-early", lambda s, buffer: s.a.trecv_into(buffer, tag=TAG), takes=True)
early_receives("recv_into-early", lambda s, b: s.a.recv_into(b), tagged=False, takes=True)


@case("prepared-trecv")
def prepared(scene: Scene) -> Rounds:
    """One whose start was interrupted runs, and can be cancelled, or does not."""
    buffer = bytearray(SIZES[-1])
    request = scene.a.prepare_trecv(buffer, tag=TAG)
    while True:
        buffer[:] = canary(len(buffer))
        started = scene.storm.attempt(request.start)
        if started is INTERRUPTED:
            request.cancel()
            posted_are(scene, 0)
            with contextlib.suppress(ofipy.Canceled, ofipy.InvalidArgument):
                request.wait(timeout=PATIENCE)
            assert is_untouched(buffer)
        else:
            assert started is request
            number, size = scene.new()
            arriving = send(scene, number, size)
            assert scene.storm.until_done(request.wait) is request
            assert number_of(buffer[: request.length]) == number
            assert is_untouched(buffer[request.length :])
            arriving.wait(timeout=PATIENCE)
        yield


@case("trecv_many", needs="multi_recv")
def many(scene: Scene) -> Rounds:
    """Each message comes out once, as it is complete, however often somebody asks for it."""
    while True:
        buffer = canary(200_000)
        posted = scene.storm.attempt(lambda: scene.a.trecv_many(buffer, tag=TAG))  # noqa: B023
        if posted is INTERRUPTED:
            posted_are(scene, 0)
            assert is_untouched(buffer)
            yield
            continue
        numbers = [next(scene.numbers) for _ in range(3)]
        arriving = [send(scene, number, scene.random.choice(SIZES[:-1])) for number in numbers]
        # A large one moves by both sides' doing, and may be complete after smaller ones behind it.
        left = set(numbers)
        while left:
            view = scene.storm.until_done(lambda: posted.next(timeout=PATIENCE))  # noqa: B023
            left.remove(number_of(view.data))
        ofipy.wait_all(arriving, timeout=PATIENCE)
        scene.storm.until_done(posted.cancel)
        assert scene.storm.until_done(lambda: posted.next(timeout=PATIENCE)) is None  # noqa: B023
        posted_are(scene, 0)
        yield


@case("probe")
def probe(scene: Scene) -> Rounds:
    """Looking takes nothing."""
    while True:
        number, size = scene.new()
        arriving = send(scene, number, size)
        while (found := scene.storm.attempt(lambda: scene.a.probe(tag=TAG))) in (None, INTERRUPTED):
            pass
        assert found.length == size
        assert number_of(scene.a.trecv(tag=TAG).wait(timeout=PATIENCE).data) == number
        arriving.wait(timeout=PATIENCE)
        yield


@case("probe-discard")
def discard(scene: Scene) -> Rounds:
    """A message that is dropped goes as a whole, and no other with it."""
    while True:
        (first, size), (second, other_size) = scene.new(), scene.new()
        arriving = [send(scene, first, size), send(scene, second, other_size)]
        while (found := scene.storm.attempt(lambda: scene.a.probe(tag=TAG, discard=True))) is None:
            pass
        came = [number_of(scene.a.trecv(tag=TAG).wait(timeout=PATIENCE).data)]
        if came == [first]:
            assert found is INTERRUPTED
            came.append(number_of(scene.a.trecv(tag=TAG).wait(timeout=PATIENCE).data))
        assert came in ([second], [first, second])
        ofipy.wait_all(arriving, timeout=PATIENCE)
        yield
