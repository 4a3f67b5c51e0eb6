# SPDX-License-Identifier: BSD-3-Clause
"""A job whose ranks in LEAVE leave it early, in the way HOW; the others say what they hear of it.

HOW is what the process does: `ends`, `raises`, `exits`, `kills`; `sends` gives every other rank messages first,
long ones that are waited for and short ones that nobody has asked for yet. With SLOW, those who leave greet their
neighbours that many seconds late.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

import ofipy
from ofipy.jobs.farewell import Farewell

leave, how = {int(rank) for rank in os.environ["LEAVE"].split(",")}, os.environ["HOW"]
listed = os.environ.get("ADDRESSES")


def be_slow(greet: Callable[[Farewell], None], seconds: float) -> Callable[[Farewell], None]:
    def greet_late(farewell: Farewell) -> None:
        if farewell._rank in leave:
            time.sleep(seconds)
        greet(farewell)

    return greet_late


if "SLOW" in os.environ:
    Farewell._serve = be_slow(Farewell._serve, float(os.environ["SLOW"]))  # type: ignore[method-assign]
job = ofipy.job(addresses=listed.split(","), rank=int(os.environ["NUMBER"])) if listed else ofipy.job()
options = {"threading": "domain", "progress": "manual"} if os.environ.get("THREADING") == "domain" else {}
ep = ofipy.open(**options)
peers = job.peers(ep)
LONG, SHORT = (100_000, 3_000_000), 200


def say(*words: object) -> None:
    # In one piece: launchers mix what comes in several.
    sys.stdout.write(" ".join(map(str, (job.rank, *words))) + "\n")
    sys.stdout.flush()


def hear(what: str, request: ofipy.Request) -> None:
    begun = time.monotonic()
    try:
        request.wait(timeout=15)
        say(what, "done")
    except ofipy.PeerLost as error:
        say(what, error.reason, "after" if time.monotonic() - begun < 5 else "late", error)


stay = [rank for rank in range(job.size) if rank not in leave]
if job.rank in leave:
    # Those who stay have posted their receives.
    for rank in stay:
        ep.trecv(peers[rank], tag=5).wait(timeout=15)
    if how == "sends":
        for rank in stay:
            sent = [ep.tsend(b"%d" % number, peers[rank], tag=2) for number in range(SHORT)]
            sent += [ep.tsend(b"\1" * length, peers[rank], tag=length) for length in LONG]
            ofipy.wait_all(sent, timeout=15)
    if how == "raises":
        raise RuntimeError("on purpose")
    if how == "exits":
        sys.exit(3)
    if how == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
else:
    from_anyone = ep.trecv(tag=4)
    before = {rank: ep.trecv(peers[rank], tag=1) for rank in sorted(leave)}
    rooms = {rank: [bytearray(length) for length in LONG] for rank in leave if how == "sends"}
    asked = {
        rank: [ep.trecv_into(each, peers[rank], tag=len(each)) for each in room]
        for rank, room in rooms.items()
    }
    for rank in leave:
        ep.tsend(b"go", peers[rank], tag=5)
    for rank, request in before.items():
        hear(f"before {rank}", request)
        if how == "sends":
            ofipy.wait_all(asked[rank], timeout=15)
            assert rooms[rank] == [b"\1" * length for length in LONG]
            for number in range(SHORT):
                assert bytes(ep.trecv(peers[rank], tag=2).wait(timeout=15).data) == b"%d" % number
        hear(f"receive {rank}", ep.trecv(peers[rank], tag=2))
        hear(f"send {rank}", ep.tsend(b"x", peers[rank], tag=1))
    say("anyone", from_anyone.done)
    if len(stay) > 1:
        # Those who are left go on.
        number = stay.index(job.rank)
        ep.tsend(b"on", peers[stay[(number + 1) % len(stay)]], tag=3).wait(timeout=15)
        say("on", bytes(ep.trecv(peers[stay[number - 1]], tag=3).wait(timeout=15).data).decode())
