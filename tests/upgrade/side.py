# SPDX-License-Identifier: BSD-3-Clause
"""One side of a pair of releases: ``side.py server|client PROVIDER``, or ``side.py rank`` of a job.

It uses what every release has, and imports nothing of the tests: each side runs with a Python of its own. Its last line
is "done", or the name of an exception and what it said.
"""

import os
import sys

import numpy as np

import ofipy

SIZE = 1 << 20
TIMEOUT = float(os.environ.get("SECONDS", "60"))


def serve(ep: ofipy.Endpoint, client: ofipy.Peer) -> None:
    """Receive short and long messages, and let the client read, write and count in memory."""
    memory, counter = np.zeros(SIZE, np.uint8), np.zeros(1, np.uint64)
    # It names the client: without a common version it is to end, too.
    assert bytes(ep.trecv(client, tag=1).wait(timeout=TIMEOUT).data) == b"hello"
    long = np.empty(SIZE, np.uint8)
    ep.trecv_into(long, client, tag=2).wait(timeout=TIMEOUT)
    assert (long == 7).all()
    for region in [ep.register(each, access=["remote_read", "remote_write"]) for each in (memory, counter)]:
        ep.tsend(bytes(region.remote), client, tag=3).wait(timeout=TIMEOUT)
    assert bytes(ep.trecv(client, tag=4).wait(timeout=TIMEOUT).data) == b"written"
    assert (memory == 9).all()
    assert counter[0] == 5
    ep.tsend(b"goodbye", client, tag=5).wait(timeout=TIMEOUT)


def call(ep: ofipy.Endpoint, server: ofipy.Peer) -> None:
    """The other side of it."""
    ep.tsend(b"hello", server, tag=1).wait(timeout=TIMEOUT)
    ep.tsend(np.full(SIZE, 7, np.uint8), server, tag=2).wait(timeout=TIMEOUT)
    memory, counter = (
        ofipy.RemoteRegion.from_bytes(bytes(ep.trecv(server, tag=3).wait(timeout=TIMEOUT).data))
        for _ in range(2)
    )
    ep.write(np.full(SIZE, 9, np.uint8), server, memory).wait(timeout=TIMEOUT)
    got = np.empty(SIZE, np.uint8)
    ep.read(got, server, memory).wait(timeout=TIMEOUT)
    assert (got == 9).all()
    ep.atomic(np.array([5], np.uint64), server, counter, op="sum").wait(timeout=TIMEOUT)
    ep.tsend(b"written", server, tag=4).wait(timeout=TIMEOUT)
    assert bytes(ep.trecv(server, tag=5).wait(timeout=TIMEOUT).data) == b"goodbye"


def meet(role: str, provider: str) -> None:
    """Say the own address, read the other's, and play the role."""
    with ofipy.open(provider=provider) as ep:
        print(ep.address, flush=True)
        peer = ep.insert(input())
        print("ready", flush=True)
        input()
        (serve if role == "server" else call)(ep, peer)


def join() -> None:
    """Meet the others of the job, and exchange blocks."""
    with ofipy.job() as job:
        assert len(job.exchange(b"block of %d" % job.rank)) == job.size


try:
    if sys.argv[1] == "rank":
        join()
    else:
        meet(*sys.argv[1:])
except ofipy.FabricError as error:
    print(type(error).__name__, error, flush=True)
else:
    print("done", flush=True)
