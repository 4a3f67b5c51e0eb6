# SPDX-License-Identifier: BSD-3-Clause
"""Sends in a storm: one that was interrupted has left whole, or not at all; its memory is the library's until then."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numbered import SIZES, message, number_of
from storm import INTERRUPTED
from storm_cases import TAG, Rounds, Scene, case, litter, receive

import ofipy

Post = Callable[[Scene, Any], ofipy.Request]


def drain(
    scene: Scene, sent: Collection[int], perhaps: Collection[int], *, tagged: bool = True, first: int = 0
) -> None:
    """Take what has arrived: each message that was sent, in order, and of the others some.

    So many `first`, before one more message says that there is no other.
    """
    last, to = next(scene.numbers), scene.pair.to_b
    end = None
    arrived = [0]
    while arrived[-1] != last:
        if len(arrived) > first and end is None:
            data = message(last, 16)
            end = scene.a.tsend(data, to, tag=TAG) if tagged else scene.a.send(data, to)
        number = number_of(receive(scene, tagged=tagged).data)
        assert number > arrived[-1], f"message {number} arrived after message {arrived[-1]}"
        assert number in sent or number in perhaps or number == last, f"nobody sent message {number}"
        arrived.append(number)
    lost = set(sent) - set(arrived)
    assert not lost, f"messages {sorted(lost)} of {sorted(sent)} never arrived"
    assert end is not None
    end.wait()


def sends(
    name: str,
    post: Post,
    *,
    memory: Callable[[Scene, bytes], Any] = lambda _, data: data,
    tagged: bool = True,
    **needs: Any,
) -> None:
    """Enter a way of sending: what was interrupted is dropped, and its memory with it."""

    @case(name, **needs)
    def rounds(scene: Scene) -> Rounds:
        while True:
            sent: dict[int, ofipy.Request] = {}
            perhaps = set()
            for _ in range(scene.random.randint(1, 8)):
                number, size = scene.new()
                data = memory(scene, message(number, size))
                request = scene.storm.attempt(lambda: post(scene, data))  # noqa: B023
                if request is INTERRUPTED:
                    perhaps.add(number)
                else:
                    sent[number] = request
                del data, request
                litter(size)
            drain(scene, sent, perhaps, tagged=tagged)
            for request in sent.values():
                assert scene.storm.until_done(request.wait) is request
            yield


def allocated(scene: Scene, data: bytes) -> ofipy.Region:
    """Memory of the domain's, with this in it."""
    array = scene.a.empty(len(data))
    array[:] = np.frombuffer(data, np.uint8)
    return scene.a.domain.region(array)


sends("tsend", lambda s, data: s.a.tsend(data, s.pair.to_b, tag=TAG))
sends("tsend-bytearray", lambda s, data: s.a.tsend(bytearray(data), s.pair.to_b, tag=TAG))
sends("tsend-array", lambda s, data: s.a.tsend(np.frombuffer(data, np.uint8).copy(), s.pair.to_b, tag=TAG))
sends("tsend-list", lambda s, data: s.a.tsend([data[:16], bytearray(data[16:])], s.pair.to_b, tag=TAG))
sends("tsend-region", lambda s, region: s.a.tsend(region, s.pair.to_b, tag=TAG), memory=allocated)
sends("tsend-data", lambda s, data: s.a.tsend(data, s.pair.to_b, tag=TAG, remote_data=5))
sends("tsend-delivery", lambda s, data: s.a.tsend(data, s.pair.to_b, tag=TAG, complete="delivery"))
sends("send", lambda s, data: s.a.send(data, s.pair.to_b), tagged=False)


@case("tsend-full", options=lambda _: {"tx_size": 4})
def full(scene: Scene) -> Rounds:
    """A call that waits for room is left with nothing sent, as often as one likes."""
    while True:
        sent: dict[int, ofipy.Request] = {}
        perhaps = set()
        while len(perhaps) < 3:
            number = next(scene.numbers)
            data = message(number, SIZES[-1])
            request = scene.storm.attempt(lambda: scene.a.tsend(data, scene.pair.to_b, tag=TAG))  # noqa: B023
            if request is INTERRUPTED:
                perhaps.add(number)
            else:
                sent[number] = request
        drain(scene, sent, perhaps, first=len(sent))
        for request in sent.values():
            assert scene.storm.until_done(request.wait) is request
        yield


def prepared_sends(
    name: str,
    prepare: Callable[[Scene, bytearray], ofipy.PreparedRequest],
    start: Callable[[list[ofipy.PreparedRequest]], Any],
    *,
    tagged: bool = True,
) -> None:
    """Enter a way of starting; one that was interrupted has started some of them, in their order."""

    @case(name)
    def rounds(scene: Scene) -> Rounds:
        buffers = [bytearray(size) for size in SIZES]
        requests = [prepare(scene, buffer) for buffer in buffers]
        while True:
            sent, perhaps, count = set(), set(), scene.random.randint(1, len(SIZES))
            numbers = [next(scene.numbers) for _ in range(count)]
            for number, buffer in zip(numbers, buffers, strict=False):
                buffer[:] = message(number, len(buffer))
            begun = scene.storm.attempt(lambda: start(requests[:count]))  # noqa: B023
            (perhaps if begun is INTERRUPTED else sent).update(numbers)
            drain(scene, sent, perhaps, tagged=tagged)
            for request in requests[:count]:
                try:
                    assert scene.storm.until_done(request.wait) is request
                except ofipy.InvalidArgument:
                    assert perhaps, "it was started"
            yield


def start_each(requests: list[ofipy.PreparedRequest]) -> None:
    for request in requests:
        request.start()


prepared_sends("prepared-tsend", lambda s, b: s.a.prepare_tsend(b, s.pair.to_b, tag=TAG), start_each)
prepared_sends("prepared-send", lambda s, b: s.a.prepare_send(b, s.pair.to_b), start_each, tagged=False)
prepared_sends(
    "start", lambda s, b: s.a.prepare_tsend(b, s.pair.to_b, tag=TAG), lambda requests: ofipy.start(*requests)
)
