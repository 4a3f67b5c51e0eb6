# SPDX-License-Identifier: BSD-3-Clause
"""What the processes of the stress tests do; run as ``worker.py FUNCTION JSON-ARGUMENTS``."""

import contextlib
import gc
import json
import os
import resource
import sys
import time

import numpy as np

import ofipy


def tell(value: object) -> None:
    print(json.dumps(value), flush=True)


def hear() -> list:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def all_to_all(rank: int, size: int, rounds: int, length: int) -> None:
    """Send to every peer and receive from every peer, `rounds` times; contents say who sent what."""
    with ofipy.open(provider="shm") as ep:
        tell(bytes(ep.address).hex())
        peers = [ep.insert(ofipy.Address.from_bytes(bytes.fromhex(each))) for each in hear()]
        inboxes = np.zeros((size, length), dtype=np.uint8)
        for number in range(rounds):
            receives = [ep.trecv_into(inboxes[source], peers[source], tag=number) for source in range(size)]
            out = np.full(length, (rank * 7 + number) % 251, dtype=np.uint8)
            sends = [ep.tsend(out, peer, tag=number) for peer in peers]
            ofipy.wait_all([*receives, *sends], timeout=100)
            expected = (np.arange(size) * 7 + number) % 251
            assert (inboxes == expected[:, None]).all(), f"round {number}: wrong contents"
        usage = resource.getrusage(resource.RUSAGE_SELF)
        tell({"cpu": usage.ru_utime + usage.ru_stime, "descriptors": len(os.listdir("/proc/self/fd"))})
        hear()


def sink(tag: int) -> None:
    """Receive messages with the tag from anyone and tell of each; errors are told, too."""
    with ofipy.open(provider="shm") as ep:
        tell(bytes(ep.address).hex())
        while True:
            try:
                message = ep.trecv(tag=tag).wait(timeout=60)
                tell({"length": message.length, "first": message.data[0] if message.length else None})
            except ofipy.FabricError as error:
                tell({"error": type(error).__name__, "text": str(error)})


def source(address: str, tag: int, length: int, count: int) -> None:
    """Send messages and tell how each ended."""
    with ofipy.open(provider="shm") as ep:
        peer = ep.insert(ofipy.Address.from_bytes(bytes.fromhex(address)))
        data = np.full(length, 65, dtype=np.uint8)
        for _ in range(count):
            ep.tsend(data, peer, tag=tag).wait(timeout=60)
        tell("sent")
        hear()


def open_and_close(cycles: int) -> None:
    """Open and close endpoints; tell descriptors and resident memory early and late."""

    def measure() -> dict[str, int]:
        gc.collect()
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        return {"descriptors": len(os.listdir("/proc/self/fd")), "memory": pages * resource.getpagesize()}

    early: dict[str, int] = {}
    for cycle in range(cycles):
        if cycle == cycles // 5:
            early = measure()
        with ofipy.open(provider="shm") as ep:
            ep.tsend(b"x", ep.insert(ep.address), tag=1).wait(timeout=10)
            assert ep.trecv(tag=1).wait(timeout=10).data == b"x"
    tell([early, measure()])


def idle(seconds: float) -> None:
    """Wait on a completion queue for nothing; tell the processor time it took."""
    with ofipy.open(provider="shm") as ep:
        request = ep.trecv(tag=1)
        with contextlib.suppress(ofipy.TimedOut):
            request.wait(timeout=0.2)
        before = time.process_time()
        try:
            request.wait(timeout=seconds)
        except ofipy.TimedOut:
            tell(time.process_time() - before)


if __name__ == "__main__":
    globals()[sys.argv[1]](*json.loads(sys.argv[2]))
