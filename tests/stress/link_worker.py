# SPDX-License-Identifier: BSD-3-Clause
"""What the processes of test_link.py do, each on one of the hosts "here" and "far"; run as worker.py is."""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import numpy as np

import ofipy
from ofipy import Op

sys.path.insert(0, str(Path(__file__).parent))
from worker import echo_by, for_anyone, hear, hub_by, main, tell

# Tags: of what the neighbour floods with, its acknowledgements, the end of its round, the wish for that, the clock.
FLOOD, ACKNOWLEDGED, ENDED, END, CLOCK = range(1, 6)
# Messages of the flood between two acknowledgements, which are what a round of progress can find at most twice over.
WINDOW = 8
# Between a message of the clock and the next, ns.
PERIOD = 10**6


def open_on(host: str, progress: str = "manual") -> ofipy.Endpoint:
    os.environ |= {"OFIPY_HOST_ID": host, "OFIPY_INTERFACE": "lo"}
    return ofipy.open(provider="link", progress=progress, caps="msg|tagged")


def echo() -> None:
    echo_by(lambda: open_on("here"))


def greet(ep: ofipy.Endpoint, far: ofipy.Endpoint) -> tuple[ofipy.Peer, ofipy.Peer]:
    """Connect an endpoint of another host, driven by this thread too; each as the other knows it."""
    sender, there = ep.insert(bytes(far.address)), far.insert(bytes(ep.address))
    greeting = [ep.trecv_into(bytearray(8), sender, tag=CLOCK), far.tsend(bytes(8), there, tag=CLOCK)]
    while not greeting[0].done or not greeting[1].done:
        for request in greeting:
            request.test()
    return sender, there


def hub(echo_address: str) -> None:
    """As that of tcp; each of the two endpoints has one idle peer by tcp at least, so both have both ways open."""
    visitors = [open_on("far"), open_on("far")]
    idle = iter(visitors)

    def open_visited() -> ofipy.Endpoint:
        ep = open_on("here")
        greet(ep, next(idle))
        return ep

    hub_by(open_visited, echo_address)


def meet(ep: ofipy.Endpoint) -> list[ofipy.Peer]:
    """Tell the address, hear those of the peers."""
    tell(bytes(ep.address).hex())
    return [ep.insert(ofipy.Address.from_bytes(bytes.fromhex(each))) for each in hear()]


# --------------------------------------------------------------------------------------- a neighbour and the network


def flood() -> None:
    """Round by round, until the peer has had enough: send it small messages (1), or only take a processor (0)."""
    ep = open_on("here")
    (peer,) = meet(ep)
    word = np.zeros(1, np.uint64)
    while True:
        (busy,) = hear()
        enough = ep.trecv_into(bytearray(8), peer, tag=END)
        acknowledgements = []
        while not enough.test():
            if not busy:
                continue
            sends = [ep.tsend(word, peer, tag=FLOOD) for _ in range(WINDOW)]
            acknowledgements.append(ep.trecv_into(bytearray(8), peer, tag=ACKNOWLEDGED))
            # One window ahead, so that the peer always has something to do. Nobody sleeps, or needs to be woken.
            if len(acknowledgements) > 1:
                sends.append(acknowledgements.pop(0))
            while not all(request.test() for request in sends):
                pass
        ofipy.wait_all([ep.tsend(word, peer, tag=ENDED), *acknowledgements], timeout=60)


def clock() -> None:
    """As told, take so many messages by tcp, one every millisecond, and all of a neighbour's.

    Tell how long each took, by the wall and in this thread's own processor time (ns): whoever else wants the processor
    is part of the first only. The far endpoint is in this thread too, or nobody would know the second.
    """
    ep, far = open_on("here"), open_on("far")
    (neighbour,) = meet(ep)
    sender, there = greet(ep, far)
    region, far_region = ep.register(bytearray(16)), far.register(bytearray(8))
    batch, sent = ep.cq.batch(2 * WINDOW), far.cq.batch(1)

    def receives(count: int, peer: ofipy.Peer, tag: int, offset: int = 0) -> np.ndarray:
        made = ep.domain.operations(count)
        made["op"], made["peer"], made["tag"], made["context"] = Op.TRECV, peer, tag, tag
        made["region"], made["offset"], made["length"] = region.id, offset, 8
        return made

    # A call for many, so that the program is back at its queue soon, as a fast one is.
    floods, clocks = receives(2 * WINDOW, neighbour, FLOOD), receives(1, sender, CLOCK, offset=8)
    ep.post(floods)
    while True:
        (count,) = hear()
        took: list[tuple[int, int]] = []
        flooded, left, ended = 0, (0, 0), False
        ep.post_trecv(region, neighbour, tag=ENDED, length=8, context=ENDED)
        due = time.monotonic_ns() + PERIOD
        while not ended:
            rows = batch.read()
            for row in rows[rows["error"] != 0]:
                raise ep.cq.exception(row)
            contexts = rows["context"].tolist()
            if CLOCK in contexts:
                now, used = time.monotonic_ns(), time.thread_time_ns()
                took.append((now - left[0], used - left[1]))
                due = now + PERIOD
                sent.wait(timeout=60)
                # A completion that is there already drives nothing: take the credit that the receiver has returned.
                far.domain.progress()
                if len(took) == count:
                    ep.post_tsend(region, neighbour, tag=END, length=8)
            if came := contexts.count(FLOOD):
                ep.post(floods[:came])
                for _ in range(flooded // WINDOW, (flooded + came) // WINDOW):
                    ep.post_tsend(region, neighbour, tag=ACKNOWLEDGED, length=8)
                flooded += came
            ended = ENDED in contexts
            if len(took) < count and time.monotonic_ns() > due:
                ep.post(clocks)
                due += 60 * 10**9
                left = time.monotonic_ns(), time.thread_time_ns()
                far.post_tsend(far_region, there, tag=CLOCK)
        tell([flooded, took, [ep.way(neighbour), ep.way(sender)]])


# ------------------------------------------------------------------------------------------------ idle, and the dead


def visit(host: str) -> None:
    """Send one message and do nothing more."""
    ep = open_on(host)
    (peer,) = meet(ep)
    ep.tsend(b"here", peer, tag=1).wait(timeout=60)
    tell("here")
    hear()


def idle(how: str, seconds: float) -> None:
    """Wait for nothing beside two visitors; tell their ways and the processor time it took."""
    ep = open_on("here", "auto" if how == "nobody" else "manual")
    tell(bytes(ep.address).hex())
    with for_anyone():
        visitors = [ep.trecv(tag=1).wait(timeout=60).source for _ in range(2)]

    async def awaited(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ep.trecv(tag=2), seconds)

    def pause(seconds: float) -> None:
        if how == "nobody":
            time.sleep(seconds)
        elif how == "await":
            asyncio.run(awaited(seconds))
        else:
            with contextlib.suppress(ofipy.TimedOut):
                ep.trecv(tag=2).wait(timeout=seconds)

    pause(0.2)
    before = time.process_time()
    pause(seconds)
    tell([sorted(ep.way(peer) for peer in visitors if peer is not None), time.process_time() - before])


def sink(host: str) -> None:
    """Receive messages from anyone and tell of each."""
    ep = open_on(host)
    tell(bytes(ep.address).hex())
    while True:
        with for_anyone():
            message = ep.trecv(tag=1).wait(timeout=60)
        tell(message.length)
        ep.tsend(b"thanks", message.source, tag=3).wait(timeout=60)


def caller(address: str) -> None:
    """Send one message to another host, without listening there."""
    os.environ |= {"OFIPY_HOST_ID": "far", "OFIPY_INTERFACE": ""}
    ep = ofipy.open(provider="link", caps="msg|tagged")
    ep.tsend(b"here I am", ep.insert(bytes.fromhex(address)), tag=1).wait(timeout=60)
    with for_anyone():
        ep.trecv(tag=1).wait(timeout=60)


if __name__ == "__main__":
    main(globals())
