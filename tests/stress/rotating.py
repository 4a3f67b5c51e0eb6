# SPDX-License-Identifier: BSD-3-Clause
"""What the processes of rotation.py do; run as worker.py is."""

import os
import random
import select
import sys
from pathlib import Path

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
from worker import hear, main, tell

TIMEOUT = 150
"""Seconds; more than a handshake may take, OFIPY_CONNECT_TIMEOUT."""


def read_generation(folder: Path, rank: int) -> tuple[int, str]:
    """How often a process has begun or ended to be replaced, odd in between; and its address."""
    count, address = (folder / str(rank)).read_text().split()
    return int(count), address


def is_told_to_end(seconds: float) -> bool:
    """Wait for so long at most."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def send(address: str, place: dict[str, str]) -> bool:
    """A message over a connection of its own, so with a handshake; whether the connection has a proven peer after it.

    A peer that has ended since has proven nothing any more.
    """
    with ofipy.open(**place) as ep:
        peer = ep.insert(address)
        ep.tsend(b"load", peer, tag=1, complete="delivery").wait(timeout=TIMEOUT)
        return ep.security(peer).proven


def member(folder: str, count: int, period: float, place: dict[str, str]) -> None:
    """Serve, and send to the others, until told to end.

    First it sends to each of the others, at once, and tells when all were reached. From then on it sends to one after
    the other at random, once in `period` seconds. All processes together load the machine by as many handshakes as it
    completes, so the time of a replacement does not grow with the square of their number.
    """
    tell("started")
    rank, service, settings = hear()
    os.environ |= settings
    others = [other for other in range(count) if other != rank]
    missing = random.sample(others, len(others))
    failures: list[str] = []
    sent = interrupted = 0
    with ofipy.open(**place, service=service) as server:
        tell(str(server.address))
        receive = server.trecv(tag=1)
        hear()  # the addresses of the others are known from here on
        while not is_told_to_end(0 if missing else random.uniform(0, 2 * period)):
            other = missing[-1] if missing else random.choice(others)
            before = read_generation(Path(folder), other)
            try:
                failure = "" if send(before[1], place) else "the peer has not proven the key"
            except ofipy.FabricError as error:
                failure = str(error)
            if failure:
                # A process that ends in the middle of a handshake cannot be told from one that refuses.
                if before[0] % 2 == 0 and read_generation(Path(folder), other) == before:
                    failures.append(f"{rank} to {other}: {failure}")
                interrupted += 1
                random.shuffle(missing)  # the one that is being replaced comes later
            else:
                sent += 1
                if missing:
                    missing.pop()
                    if not missing:
                        tell("all reached")
            while receive.done:
                receive.wait()
                receive = server.trecv(tag=1)
    tell([sent, interrupted, failures])


if __name__ == "__main__":
    main(globals())
