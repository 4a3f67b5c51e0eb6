# SPDX-License-Identifier: BSD-3-Clause
"""What the processes of the stress tests do; run as ``worker.py FUNCTION JSON-ARGUMENTS``.

Where an operation fails, the process ends with the first error that it met on the last line of standard error.
"""

import contextlib
import ctypes
import gc
import json
import os
import queue
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import ofipy
from ofipy.pingpong.leftovers import count_descriptors


def tell(value: object) -> None:
    print(json.dumps(value), flush=True)


def hear() -> list:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


@contextlib.contextmanager
def for_anyone() -> Iterator[None]:
    """Wait within for whoever comes: only here the process may be interrupted, since nobody tells that no one will."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def finish(requests: Sequence[ofipy.Request], timeout: float) -> None:
    """Wait for all, but not long for those that may depend, by way of other processes, on one that has failed."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with contextlib.suppress(ofipy.TimedOut):
            ofipy.wait_all(requests, timeout=1)
            return
        for request in requests:
            if request.done:
                request.wait()
    ofipy.wait_all(requests, timeout=0)


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
            finish([*receives, *sends], timeout=100)
            expected = (np.arange(size) * 7 + number) % 251
            assert (inboxes == expected[:, None]).all(), f"round {number}: wrong contents"
        usage = resource.getrusage(resource.RUSAGE_SELF)
        tell({"cpu": usage.ru_utime + usage.ru_stime, "descriptors": count_descriptors()})
        hear()


def sink(tag: int) -> None:
    """Receive messages with the tag from anyone and tell of each; errors are told, too."""
    with ofipy.open(provider="shm") as ep:
        tell(bytes(ep.address).hex())
        while True:
            try:
                with for_anyone():
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
        return {"descriptors": count_descriptors(), "memory": pages * resource.getpagesize()}

    early: dict[str, int] = {}
    hooks = os.environ.get("OFIPY_HOOKS")
    for cycle in range(cycles):
        if cycle == cycles // 5:
            early = measure()
        # Each is the first endpoint of a domain, which would draw the same faults of one seed, the last of the options.
        with ofipy.open(provider="shm", hooks=hooks and f"{hooks}{cycle}") as ep:
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


def run_threads(functions: list[Callable[[], None]]) -> None:
    """Run them at the same time; the first failure is raised here at once, since others may wait for that thread."""
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def guard(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            # Damage is told, whoever was first.
            if isinstance(error, AssertionError):
                traceback.print_exc()
            ended.put(error)
        else:
            ended.put(None)

    threads = [threading.Thread(target=guard, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for _ in threads:
        error = ended.get()
        if error is not None:
            raise error
    for thread in threads:
        thread.join()


def exchange(
    ep: ofipy.Endpoint, peer: ofipy.Peer, counter: ofipy.RemoteRegion, thread: int, rounds: int
) -> None:
    """One thread's messages to and from the thread of this number on the other side; each kind waits in its own way."""
    kind = thread % 5
    for number in range(rounds):
        size = (8, 5_000, 100_000)[(thread + number) % 3]
        out = np.full(size, (thread * 7 + number) % 251, np.uint8)
        room = np.zeros(size, np.uint8)
        if kind == 0:
            send = ep.tsend(out, peer, tag=thread)
            room = np.frombuffer(ep.trecv(peer, tag=thread).wait(timeout=60).data, np.uint8)
            send.wait(timeout=60)
        else:
            receive = ep.trecv_into(room, peer, tag=thread)
            send = ep.tsend(out, peer, tag=thread, complete="delivery" if kind == 1 else None)
            if kind == 2:
                while not receive.test():
                    pass
            ofipy.wait_all([receive, send], timeout=60)
        assert np.array_equal(room, out), f"thread {thread}, round {number}: wrong contents"
        if kind == 3:
            never = ep.trecv_into(bytearray(8), peer, tag=2**32 + thread)
            if not never.cancel():
                raise never.exception() or AssertionError("a message that nobody sent")
        if kind == 4:
            assert ep.probe(peer, tag=2**32 + thread) is None
        ep.atomic(np.uint64(1), peer, counter, op="sum", complete="delivery").wait(timeout=60)


def many_threads(rank: int, threads: int, rounds: int) -> None:
    """Many threads use one endpoint."""
    with ofipy.open(provider="shm", caps="msg|tagged|rma|atomic") as ep:
        count = np.zeros(1, np.uint64)
        region = ep.register(count, access="remote_read|remote_write")
        tell([bytes(ep.address).hex(), bytes(region.remote).hex()])
        address, remote = (bytes.fromhex(each) for each in hear())
        peer, counter = ep.insert(ofipy.Address.from_bytes(address)), ofipy.RemoteRegion.from_bytes(remote)

        def one(thread: int) -> Callable[[], None]:
            return lambda: exchange(ep, peer, counter, thread, rounds)

        run_threads([one(thread) for thread in range(threads)])
        tell("finished")
        hear()
        stats = ep.stats()
        tell({"count": int(count[0]), "pending": stats.pending, "posted": stats.posted_receives})
        hear()


def one_queue(posters: int, readers: int, each: int) -> None:
    """Threads post to one endpoint while others read its queue: every completion is read once."""
    seen: list[list[int]] = [[] for _ in range(readers)]
    with ofipy.open(provider="shm") as ep:
        me, region = ep.insert(ep.address), ep.register(bytearray(8))

        def post(poster: int) -> None:
            for number in range(each):
                context = poster * each + number
                for work in (ep.post_trecv, ep.post_tsend):
                    while True:
                        try:
                            work(region, me, tag=poster, context=2 * context + (work == ep.post_tsend))
                            break
                        except ofipy.Again:
                            time.sleep(0)

        def read(reader: int) -> None:
            batch = ep.cq.batch(16)
            while sum(map(len, seen)) < 2 * posters * each:
                with contextlib.suppress(ofipy.TimedOut):
                    rows = batch.wait(timeout=0.05)
                    for row in rows[rows["error"] != 0]:
                        raise ep.cq.exception(row)
                    seen[reader] += [int(context) for context in rows["context"]]

        posting = [lambda poster=poster: post(poster) for poster in range(posters)]
        run_threads(posting + [lambda reader=reader: read(reader) for reader in range(readers)])
    contexts = sorted(context for contexts in seen for context in contexts)
    tell(contexts == list(range(2 * posters * each)))


def open_tcp() -> ofipy.Endpoint:
    """An endpoint on the loopback interface that nobody but its caller drives."""
    infos = ofipy.getinfo(provider="tcp", ep_type="rdm")
    info = next(info for info in infos if info.domain == "lo")
    return ofipy.Fabric(info).domain(progress="manual").endpoint().enable()


def many_descriptors() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def idle_peers(hub: str) -> None:
    """As told, add so many endpoints that send one message to the hub and then do nothing."""
    many_descriptors()
    first, kept = open_tcp(), []
    while (count := hear()[0]) > 0:
        for _ in range(count):
            ep = first.domain.endpoint().enable()
            kept.append(ep)
            ep.tsend(b"here", ep.insert(hub), tag=1).wait(timeout=60)
        tell(count)


def echo() -> None:
    echo_by(open_tcp)


def echo_by(open_one: Callable[[], ofipy.Endpoint]) -> None:
    """Send everything back."""
    with contextlib.suppress(ofipy.FabricError):
        ep = open_one()
        tell(str(ep.address))
        room = np.zeros(8, np.uint8)
        while True:
            with for_anyone():
                source = ep.trecv_into(room, tag=2).wait(timeout=60).source
            ep.tsend(room, source, tag=3).wait(timeout=60)


def allocated() -> int:
    """Bytes that malloc has handed out, in all its arenas."""

    class Information(ctypes.Structure):
        names = (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
        )
        _fields_ = tuple((name, ctypes.c_size_t) for name in (*names, "keepcost"))

    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Information
    information = mallinfo()
    return int(information.uordblks + information.hblkhd)


def resident() -> int:
    """Bytes of this process in memory; those of its sockets are the kernel's and do not count."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def tcp_hub(echo_address: str) -> None:
    hub_by(open_tcp, echo_address)


def hub_by(open_one: Callable[[], ofipy.Endpoint], echo_address: str) -> None:
    """Take in idle peers as told, tell memory after each lot, at last the latency beside an endpoint without them."""
    many_descriptors()
    crowded, lonely = open_one(), open_one()
    room = np.zeros(8, np.uint8)
    friends = [ep.insert(echo_address) for ep in (crowded, lonely)]
    tell(str(crowded.address))

    def times(ep: ofipy.Endpoint, peer: ofipy.Peer, count: int) -> list[float]:
        result = []
        for _ in range(count):
            started = time.perf_counter()
            ep.tsend(room, peer, tag=2)
            ep.trecv_into(room, peer, tag=3).wait(timeout=60)
            result.append(time.perf_counter() - started)
        return result

    while (count := hear()[0]) > 0:
        with for_anyone():
            for _ in range(count):
                crowded.trecv_into(room, tag=1).wait(timeout=60)
        gc.collect()
        tell([crowded.stats().peers_up, allocated(), resident()])
    quick: list[list[float]] = [[], []]
    with for_anyone():
        turns = list(zip((crowded, lonely), friends, quick, strict=True))
        for turn in range(40):
            # Who comes first is not always the same.
            for ep, friend, kept in turns[:: 1 if turn % 2 else -1]:
                # A cost that grows with the peers is in the quick round trips too; what others' processes cost is not.
                kept.append(float(np.quantile(times(ep, friend, 100), 0.1)))
    tell(quick)
    hear()


def tcp_without_descriptors() -> None:
    """Receive with room for ten more descriptors, then with enough; tell how many came each time."""
    many_descriptors()
    ep = open_tcp()
    tell(str(ep.address))
    room, count = bytearray(4), hear()[0]
    ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    taken = max(int(each) for each in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 10, ceiling))
    tell("few")
    came = [0, 0]
    request = ep.trecv_into(room, tag=1)
    with contextlib.suppress(ofipy.TimedOut):
        while True:
            request.wait(timeout=2)
            came[0] += 1
            request = ep.trecv_into(room, tag=1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, ceiling))
    with for_anyone():
        while sum(came) < count:
            request.wait(timeout=20)
            came[1] += 1
            request = ep.trecv_into(room, tag=1)
    tell(came)
    hear()


def open_connected() -> ofipy.Domain:
    many_descriptors()
    infos = ofipy.getinfo(provider="tcp", ep_type="msg")
    info = next(info for info in infos if info.domain == "lo")
    return ofipy.Fabric(info).domain(progress="manual")


def cost_of(endpoints: list[ofipy.Endpoint]) -> list[int]:
    gc.collect()
    return [len(endpoints), allocated(), count_descriptors()]


def connected_server() -> None:
    """As told, accept so many connections in one domain and receive a message from each; tell what they cost."""
    domain = open_connected()
    listener, cq, kept = domain.passive_endpoint(), domain.cq(), []
    listener.listen()
    tell(str(listener.address))
    room = np.zeros(8, np.uint8)
    while (count := hear()[0]) > 0:
        for _ in range(count):
            with for_anyone():
                ep = listener.wait(timeout=60).accept(cq=cq)
            ep.recv_into(room, None).wait(timeout=60)
            ep.send(room, ep.peer).wait(timeout=60)
            kept.append(ep)
        tell(cost_of(kept))
    requests = [ep.recv_into(room, None) for ep in kept]
    deadline = time.monotonic() + 60
    with for_anyone():
        while sum(request.done for request in requests) < 4 and time.monotonic() < deadline:
            domain.progress()
    tell([number for number, request in enumerate(requests) if request.done])
    hear()


def connected_clients(address: str) -> None:
    """The other side."""
    domain = open_connected()
    cq, kept = domain.cq(), []
    room = np.zeros(8, np.uint8)
    while (count := hear()[0]) > 0:
        for _ in range(count):
            ep = domain.endpoint(cq=cq).enable()
            ep.connect(address).wait(timeout=60)
            ep.send(room, ep.peer).wait(timeout=60)
            ep.recv_into(room, None).wait(timeout=60)
            kept.append(ep)
        tell(cost_of(kept))
    # One that ends, the first of them, does not take the others with it.
    kept[0].close()
    for ep in (kept[1], kept[-1], kept[len(kept) // 2]):
        ep.send(room, ep.peer, complete="delivery").wait(timeout=60)
    hear()


def main(functions: Mapping[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        functions[sys.argv[1]](*json.loads(sys.argv[2]))
    except Exception as error:
        traceback.print_exc()
        first: BaseException = error
        while (earlier := first.__cause__ or first.__context__) is not None:
            first = earlier
        sys.exit(" ".join(f"{type(first).__name__}: {first}".split()))


if __name__ == "__main__":
    main(globals())
