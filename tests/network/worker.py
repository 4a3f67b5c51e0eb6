# SPDX-License-Identifier: BSD-3-Clause
"""A process on one host of a test: it is told what to do, a line of JSON each, and answers with a line each."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

import ofipy
from ofipy._objects.group import join_group

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))
import adder

TIMEOUT = 60
JOIN_TAG = 1 << 40
LARGEST = 1 << 20
WINDOW, WINDOW_BYTES = 16, 2 << 20
# Message number n is the part of this that begins at n % 251.
PATTERN = (np.arange(LARGEST + 251) % 251).astype(np.uint8)


def payload(number: int, length: int) -> np.ndarray:
    start = number % 251
    return PATTERN[start : start + length]


def describe(error: BaseException) -> dict[str, Any]:
    return {"error": type(error).__name__, "text": str(error), "errno": getattr(error, "errno", None)}


class Source:
    """Numbered messages to one peer until it is told to stop, or one fails."""

    def __init__(self, ep: ofipy.Endpoint, peer: ofipy.Peer, tag: int, lengths: list[int]) -> None:
        self._arguments = (ep, peer, tag)
        self._lengths = lengths
        self._stop = threading.Event()
        self.sent = 0
        self.failures: list[dict[str, Any]] = []
        self.ended = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _finish(self, request: ofipy.Request) -> None:
        try:
            request.wait(timeout=TIMEOUT)
            self.sent += 1
        except ofipy.FabricError as error:
            self.failures.append(describe(error))

    def _run(self) -> None:
        ep, peer, tag = self._arguments
        posted: deque[ofipy.Request] = deque()
        window = min(WINDOW, WINDOW_BYTES // max(self._lengths))
        number = 0
        while not self._stop.is_set() and not self.failures:
            length = self._lengths[number % len(self._lengths)]
            posted.append(ep.tsend(payload(number, length), peer, tag=tag, remote_data=number))
            number += 1
            if len(posted) == window:
                self._finish(posted.popleft())
        if not self.failures:
            posted.append(ep.tsend(b"", peer, tag=tag, remote_data=number))
        while posted:
            self._finish(posted.popleft())
        self.ended = time.monotonic()

    def stop(self) -> None:
        self._stop.set()

    def result(self) -> dict[str, Any]:
        self._thread.join(TIMEOUT)
        return {"sent": self.sent, "failures": self.failures, "ended": self.ended}


class Sink:
    """The messages of a source, each checked: number, length, contents. An empty one is the last."""

    def __init__(self, ep: ofipy.Endpoint, peer: ofipy.Peer | None, tag: int, lengths: list[int]) -> None:
        self._arguments = (ep, peer, tag)
        self._lengths = lengths
        self.received = 0
        self.failures: list[dict[str, Any]] = []
        self.more = threading.Condition()
        self._thread = threading.Thread(target=self._guard, daemon=True)
        self._thread.start()

    def _guard(self) -> None:
        try:
            self._run()
        except Exception as error:
            self.failures.append(describe(error))
        with self.more:
            self.more.notify_all()

    def _run(self) -> None:
        ep, peer, tag = self._arguments
        rooms = [np.zeros(max(self._lengths), np.uint8) for _ in range(4)]
        posted = deque(ep.trecv_into(room, peer, tag=tag) for room in rooms)
        while True:
            number, request = self.received, posted.popleft()
            request.wait(timeout=TIMEOUT)
            assert request.remote_data == number, f"message {request.remote_data} in place of {number}"
            if request.length == 0:
                break
            length, room = self._lengths[number % len(self._lengths)], rooms[number % len(rooms)]
            assert request.length == length, f"message {number} has {request.length} bytes, not {length}"
            assert np.array_equal(room[:length], payload(number, length)), (
                f"message {number} is not what was sent"
            )
            posted.append(ep.trecv_into(room, peer, tag=tag))
            with self.more:
                self.received += 1
                self.more.notify_all()
        for request in posted:
            assert request.cancel(), "there is a message behind the last one"

    def wait_for(self, count: int, seconds: float) -> int:
        """Wait until so many more have come."""
        with self.more:
            wanted = self.received + count
            self.more.wait_for(lambda: self.received >= wanted or self.failures, seconds)
            return self.received - wanted + count

    def result(self) -> dict[str, Any]:
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive(), "the last message has not come"
        return {"received": self.received, "failures": self.failures}


class Warnings(logging.Handler):
    """What the library warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        logging.getLogger("ofipy").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Node:
    """What can be asked for."""

    def __init__(self) -> None:
        self._warnings = Warnings()
        self._sources: dict[int, Source] = {}
        self._sinks: dict[int, Sink] = {}
        self._posted: dict[int, ofipy.Request] = {}
        self._groups: list[ofipy.Group] = []  # those before: they answer who is late

    def domains(self) -> list[str]:
        return [info.domain for info in ofipy.getinfo(provider="tcp", ep_type="rdm")]

    def why_not(self) -> str:
        found = ofipy.getinfo(provider="tcp", ep_type="rdm", explain=True)
        return next(each.reason for each in found if each.provider == "tcp") or ""

    def open(
        self, domain: str = "", service: int | None = None, provider: str = "tcp", **variables: object
    ) -> str:
        """Open an endpoint on that interface, or on the preferred one, with these settings; its address."""
        os.environ.update({f"OFIPY_{name}": str(value) for name, value in variables.items()})
        infos = ofipy.getinfo(provider=provider, ep_type="rdm", caps="msg|tagged|rma|atomic")
        info = next(info for info in infos if domain in ("", info.domain))
        self.ep = ofipy.Fabric(info).domain(progress="auto").endpoint(service=service).enable()
        return str(self.ep.address)

    def listen(self, domain: str) -> str:
        """Listen for connected endpoints on that interface; the address."""
        infos = ofipy.getinfo(provider="tcp", ep_type="msg")
        info = next(info for info in infos if info.domain == domain)
        self._listener = ofipy.Fabric(info).domain(progress="auto").passive_endpoint()
        self._listener.listen()
        return str(self._listener.address)

    def warnings(self) -> list[str]:
        """What the library has warned of so far."""
        return self._warnings.texts

    def become(self, user: int) -> None:
        """Go on as this user, who may not read what providers are loaded from."""
        ofipy.getinfo(explain=True)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)

    def blob(self) -> str:
        """Bytes of the address."""
        return bytes(self.ep.address).hex()

    def way(self, address: str) -> str:
        """By which provider that peer is reached."""
        return self.ep.way(self.ep.insert(bytes.fromhex(address)))

    def unexpected(self) -> int:
        """Messages that nobody has received."""
        return self.ep.stats().unexpected_messages

    def count_here(self) -> str:
        """A number in which everybody may count; its handle."""
        self._number = np.zeros(1, np.uint64)
        self._region = self.ep.register(self._number, access="remote_read|remote_write")
        return bytes(self._region.remote).hex()

    def count(self, address: str, remote: str, times: int) -> int:
        """Add one to that number so often; the sum of what it was before."""
        return int(adder.add(self.ep, bytes.fromhex(address), bytes.fromhex(remote), times).sum())

    def counted(self) -> int:
        return int(self._number[0])

    def close(self) -> None:
        self.ep.fabric.close()

    def meet(self, address: str) -> None:
        """That endpoint is the peer of the messages, RMA and atomics that follow."""
        self.peer = self.ep.insert(address)

    def source(self, address: str, tag: int, lengths: list[int]) -> None:
        self._sources[tag] = Source(self.ep, self.ep.insert(address), tag, lengths)

    def sink(self, address: str, tag: int, lengths: list[int]) -> None:
        self._sinks[tag] = Sink(self.ep, self.ep.insert(address), tag, lengths)

    def wait_for(self, tag: int, count: int, seconds: float) -> int:
        return self._sinks[tag].wait_for(count, seconds)

    def stop(self, tag: int) -> None:
        self._sources[tag].stop()

    def source_result(self, tag: int) -> dict[str, Any]:
        return self._sources[tag].result()

    def sink_result(self, tag: int) -> dict[str, Any]:
        return self._sinks[tag].result()

    def send(self, address: str, tag: int, text: str, complete: str | None = None) -> None:
        self.ep.tsend(text.encode(), self.ep.insert(address), tag=tag, complete=complete).wait(
            timeout=TIMEOUT
        )

    def receive(self, address: str | None, tag: int) -> dict[str, str]:
        peer = None if address is None else self.ep.insert(address)
        message = self.ep.trecv(peer, tag=tag).wait(timeout=TIMEOUT)
        return {"text": message.data.decode(), "source": str(self.ep.av.address(message.source))}

    def post_receive(self, address: str, tag: int) -> None:
        """Post a receive for that peer's message alone, to be asked for later."""
        self._posted[tag] = self.ep.trecv(self.ep.insert(address), tag=tag)

    def posted(self, tag: int) -> bool:
        """Whether that receive still waits."""
        return not self._posted[tag].done

    def received(self, tag: int) -> str:
        """The message of a receive that was posted before."""
        return self._posted[tag].wait(timeout=TIMEOUT).data.decode()

    def wait_for_loss(self, seconds: float) -> dict[str, int]:
        """Wait, without posting anything, until a peer is lost."""
        deadline = time.monotonic() + seconds
        while not self.ep.stats().peers_lost and time.monotonic() < deadline:
            time.sleep(0.01)
        stats = self.ep.stats()
        return {"lost": stats.peers_lost, "up": stats.peers_up}

    # ------------------------------------------------------------------------------------------------------- a group

    def join(self, rank: int, addresses: list[str]) -> None:
        """Make a group of these endpoints, of which the own one is number `rank`; all do this at the same time."""
        peers = [self.ep.insert(address) for address in addresses]

        def exchange(block: bytes) -> list[bytes]:
            received = [self.ep.trecv(peer, tag=JOIN_TAG) for peer in peers]
            sent = [self.ep.tsend(block, peer, tag=JOIN_TAG) for peer in peers]
            for request in sent:
                request.wait(timeout=TIMEOUT)
            return [bytes(request.wait(timeout=TIMEOUT).data) for request in received]

        self._group = join_group(self.ep, rank, peers, exchange)

    def agree(self) -> list[int]:
        """Agree with the others; the ranks of those that are dead."""
        return list(self._group.agree().wait(timeout=TIMEOUT)[1])

    def shrink(self) -> list[int]:
        """Go on with those that live; the rank there, and the sum of all numbers 1."""
        self._groups.append(self._group)
        self._group = self._group.shrink().wait(timeout=TIMEOUT)
        return [self._group.rank, int(self._group.allreduce(np.array([1])).wait(timeout=TIMEOUT)[0])]

    # ----------------------------------------------------------------------------- everything, between two of them

    def offer(self) -> str:
        """Memory for the peer: what it may read, write and count in."""
        self._memory = np.zeros(LARGEST + 16, np.uint8)
        self._memory[:LARGEST] = payload(7, LARGEST)
        self._region = self.ep.register(self._memory, access="remote_read|remote_write")
        return bytes(self._region.remote).hex()

    def messages(self, seed: int) -> int:
        """Messages of many lengths both ways at once, with and without tags; how many have come."""
        lengths = [0, 1, 64, 1000, 4096, 4097, 16_384, 65_536, 300_001, LARGEST]
        rooms = [np.zeros(length + 1, np.uint8) for length in lengths * 2]
        half = len(lengths)
        receives = [self.ep.recv_into(room, self.peer) for room in rooms[:half]]
        receives += [self.ep.trecv_into(room, self.peer, tag=n) for n, room in enumerate(rooms[half:])]
        sends = [self.ep.send(payload(seed + n, length), self.peer) for n, length in enumerate(lengths)]
        # Tagged ones in the other order: tags find their receives.
        sends += [
            self.ep.tsend(
                payload(seed + n, length), self.peer, tag=n, remote_data=2**64 - 1 - n, complete="delivery"
            )
            for n, length in reversed(list(enumerate(lengths)))
        ]
        ofipy.wait_all([*receives, *sends], timeout=TIMEOUT)
        other = 1000 - seed
        for n, (request, room) in enumerate(zip(receives, rooms, strict=True)):
            length = lengths[n % half]
            assert request.length == length
            assert np.array_equal(room[:length], payload(other + n % half, length)), f"message {n}"
            assert request.remote_data == (None if n < half else 2**64 - 1 - n % half)
        return len(receives)

    def remote(self, remote: str) -> list[int]:
        """Read all of the peer's memory, write half of it, read that, and count behind it; what was counted."""
        there = ofipy.RemoteRegion.from_bytes(bytes.fromhex(remote))
        got = np.zeros(LARGEST, np.uint8)
        self.ep.read(got, self.peer, there[:LARGEST]).wait(timeout=TIMEOUT)
        assert np.array_equal(got, payload(7, LARGEST))
        half = LARGEST // 2
        self.ep.write(payload(100, half), self.peer, there[:half], complete="delivery").wait(timeout=TIMEOUT)
        self.ep.read(got, self.peer, there[:LARGEST]).wait(timeout=TIMEOUT)
        assert np.array_equal(got[:half], payload(100, half))
        assert np.array_equal(got[half:], payload(7, LARGEST)[half:])
        counter, place = there[LARGEST : LARGEST + 8], there[LARGEST + 8 : LARGEST + 16]
        old = [
            int(self.ep.fetch_atomic(np.uint64(n), self.peer, counter, op="sum").wait(timeout=TIMEOUT))
            for n in range(10)
        ]
        swapped = self.ep.compare_atomic(np.uint64(5), np.uint64(0), self.peer, place).wait(timeout=TIMEOUT)
        self.ep.atomic(np.uint64(2), self.peer, place, op="prod", complete="delivery").wait(timeout=TIMEOUT)
        return [*old, int(swapped)]

    def memory(self) -> list[int]:
        """What the peer has left in the memory: whether it wrote its half, and both numbers."""
        half = LARGEST // 2
        written = np.array_equal(self._memory[:half], payload(100, half))
        return [int(written), *(int(value) for value in self._memory[LARGEST:].view(np.uint64))]


def main() -> None:
    node = Node()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"result": getattr(node, name)(**arguments)}
        except Exception as error:
            answer = describe(error)
        answer["now"] = time.monotonic()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
