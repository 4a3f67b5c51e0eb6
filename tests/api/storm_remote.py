# SPDX-License-Identifier: BSD-3-Clause
"""Remote memory in a storm: an access that was interrupted has happened whole, or not at all."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numbered import canary, is_untouched, message
from pair import eventually
from storm import INTERRUPTED
from storm_cases import Rounds, Scene, case

import ofipy

SLOT, SLOTS = 60_000, 16
Write = Callable[[Scene, bytes, ofipy.RemoteRegion], ofipy.Request]
Read = Callable[[Scene, bytearray, ofipy.RemoteRegion], ofipy.Request]


def all_is_over(scene: Scene) -> None:
    """No operation is under way, not even one that nobody knows of."""
    if scene.counts_receives:
        eventually("no operation is in flight", lambda: scene.a.stats().pending == 0)
        eventually("no operation waits for room", lambda: scene.a.stats().backlog == 0)


def check(slot: memoryview, written: bytes, surely: bool) -> None:
    """What was written is there, or, where it was interrupted, maybe nothing; and nothing is beside it."""
    place, rest = slot[: len(written)], slot[len(written) :]
    eventually(
        f"a slot holds {'' if surely else 'nothing or '}what was written",
        lambda: place == written or (not surely and is_untouched(place)),
    )
    assert is_untouched(rest), "beyond the end of what was written"


def writes(name: str, write: Write) -> None:
    """Enter a way of writing."""

    @case(name, needs="rma")
    def rounds(scene: Scene) -> Rounds:
        target = bytearray(SLOT * SLOTS)
        region = scene.b.register(target, access="remote_write")
        while True:
            target[:] = canary(len(target))
            held: list[ofipy.Request] = []
            expected: dict[int, tuple[bytes, bool]] = {}
            for slot in range(0, SLOTS, scene.random.randint(1, 4)):
                number, size = scene.new()
                size = min(size, SLOT)
                data = message(number, size)
                remote = region.remote[slot * SLOT : slot * SLOT + size]
                request = scene.storm.attempt(lambda: write(scene, bytearray(data), remote))  # noqa: B023
                if request is not INTERRUPTED:
                    held.append(request)
                expected[slot] = data, request is not INTERRUPTED
                del request
            for request in held:
                assert scene.storm.until_done(request.wait) is request
            all_is_over(scene)
            for slot in range(SLOTS):
                check(memoryview(target)[slot * SLOT : (slot + 1) * SLOT], *expected.get(slot, (b"", True)))
            yield


def reads(name: str, read: Read) -> None:
    """Enter a way of reading."""

    @case(name, needs="rma")
    def rounds(scene: Scene) -> Rounds:
        source = message(1, SLOT)
        region = scene.b.register(source, access="remote_read")
        while True:
            held: list[tuple[ofipy.Request, bytearray, int]] = []
            kept: list[bytearray] = []
            for _ in range(scene.random.randint(1, 6)):
                size = min(scene.new()[1], SLOT)
                into = canary(size)
                request = scene.storm.attempt(lambda: read(scene, into, region.remote[:size]))  # noqa: B023
                if request is INTERRUPTED:
                    # Its memory is freed, or still the library's; what comes there next is nobody's.
                    del into
                    kept.append(canary(size))
                else:
                    held.append((request, into, size))
                del request
            for request, into, size in held:
                assert scene.storm.until_done(request.wait) is request
                assert into == source[:size]
            all_is_over(scene)
            assert all(map(is_untouched, kept)), "memory of an interrupted read was written"
            yield


writes("write", lambda s, data, remote: s.a.write(data, s.pair.to_b, remote))
writes("write-delivery", lambda s, data, remote: s.a.write(data, s.pair.to_b, remote, complete="delivery"))
writes("prepared-write", lambda s, data, remote: s.a.prepare_write(data, s.pair.to_b, remote).start())
reads("read", lambda s, into, remote: s.a.read(into, s.pair.to_b, remote))
reads("prepared-read", lambda s, into, remote: s.a.prepare_read(into, s.pair.to_b, remote).start())


def adds(name: str, add: Callable[[Scene, ofipy.RemoteRegion], Any], *, fetches: bool) -> None:
    """Enter a way of adding one."""

    @case(name, needs="atomic")
    def rounds(scene: Scene) -> Rounds:
        cell = np.zeros(3, np.uint64)
        region = scene.b.register(cell, access="remote_read|remote_write")
        least = most = 0
        while True:
            held = []
            for _ in range(scene.random.randint(1, 8)):
                request = scene.storm.attempt(lambda: add(scene, region.remote[8:16]))
                most += 1
                if request is not INTERRUPTED:
                    least += 1
                    held.append(request)
                del request
            seen = [scene.storm.until_done(request.wait) for request in held]
            all_is_over(scene)
            if fetches:
                assert len(set(map(int, seen))) == len(seen), "two have read the same"
            eventually("what was added arrived", lambda: least <= int(cell[1]) <= most)  # noqa: B023
            assert cell[0] == cell[2] == 0
            least = most = int(cell[1])
            yield


ONE = np.uint64(1)
adds("atomic", lambda s, remote: s.a.atomic(ONE, s.pair.to_b, remote, op="sum"), fetches=False)
adds("fetch_atomic", lambda s, remote: s.a.fetch_atomic(ONE, s.pair.to_b, remote, op="sum"), fetches=True)


@case("compare_atomic", needs="atomic")
def compare(scene: Scene) -> Rounds:
    """One that was interrupted has replaced the value, or not."""
    cell = np.zeros(3, np.uint64)
    region = scene.b.register(cell, access="remote_read|remote_write")
    here = 0
    while True:
        value, before = np.uint64(here + 1), np.uint64(here)
        request = scene.storm.attempt(
            lambda: scene.a.compare_atomic(value, before, scene.pair.to_b, region.remote[8:16])  # noqa: B023
        )
        if request is not INTERRUPTED:
            assert scene.storm.until_done(request.wait) == before
        del request
        all_is_over(scene)
        here = int(cell[1])
        assert here in (value, before)
        assert cell[0] == cell[2] == 0
        yield
