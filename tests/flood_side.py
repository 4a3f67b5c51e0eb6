# SPDX-License-Identifier: BSD-3-Clause
"""What the processes of ``python -m tests.flood`` do."""

import contextlib
import os
import select
import socket
import sys
import time

import ofipy

TIMEOUT = 60
# Connections of the flood at a time. An endpoint keeps 256 that have proven nothing.
AT_ONCE = 128
HELLO_MAX = 4096


def pin(core: str) -> None:
    """Stay on one processor, if this process may use it."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(core) % len(cores)]})


def serve(core: str) -> None:
    """Answer each message."""
    pin(core)
    with ofipy.open(provider="tcp", node="127.0.0.1", progress="manual") as ep:
        print(ep.address, flush=True)
        buffer = bytearray(8)
        while not select.select([sys.stdin], [], [], 0)[0]:
            receive = ep.trecv_into(buffer, tag=1)
            deadline = time.monotonic() + 1
            while not receive.test() and time.monotonic() < deadline:
                pass
            if not receive.done:
                receive.cancel()
                continue
            ep.tsend(buffer, receive.wait().source, tag=2).wait(timeout=TIMEOUT)


def measure(core: str, address: str, count: str) -> None:
    """For each line of input, print what percentiles of so many round trips take, in microseconds."""
    pin(core)
    with ofipy.open(provider="tcp", node="127.0.0.1", progress="manual") as ep:
        peer, buffer, answer = ep.insert(address), bytes(8), bytearray(8)

        def time_round_trip() -> float:
            begin = time.perf_counter()
            receive = ep.trecv_into(answer, tag=2)
            ep.tsend(buffer, peer, tag=1)
            while not receive.test():
                pass
            return (time.perf_counter() - begin) * 1e6

        for _ in range(1000):
            time_round_trip()
        assert ep.security(peer).encrypted
        print("ready", flush=True)
        for _ in sys.stdin:
            times = sorted(time_round_trip() for _ in range(int(count)))
            print(times[len(times) // 2], times[len(times) * 99 // 100], times[-1], flush=True)


def record_hello() -> bytes:
    """The first message of a member's handshake, whose binder is valid: the server works for it as for a member."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()[:2]
        ep = ofipy.open(provider="tcp", node="127.0.0.1")
        send = ep.tsend(b"x", ep.insert(f"tcp://{host}:{port}"), tag=1)
        taken, _ = listener.accept()
        with taken:
            hello = taken.recv(HELLO_MAX)
        with contextlib.suppress(ofipy.FabricError):
            send.wait(timeout=TIMEOUT)  # nobody answers
        ep.close()
        return hello


def flood(core: str, address: str) -> None:
    """Send that message over new connections, as fast as they are answered, until the input ends; print how many."""
    pin(core)
    hello = record_hello()
    host, _, port = address.partition("//")[2].rpartition(":")
    answered, poll, sockets = 0, select.epoll(), {}
    print("ready", flush=True)
    sys.stdin.readline()
    poll.register(sys.stdin, select.EPOLLIN)
    ended = False
    while not ended:
        while len(sockets) < AT_ONCE:
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex((host, int(port)))
            sockets[one.fileno()] = one
            poll.register(one, select.EPOLLOUT)
        for fd, events in poll.poll():
            if fd == sys.stdin.fileno():
                ended = True
                break
            try:
                if events & select.EPOLLOUT:
                    sockets[fd].send(hello)
                    poll.modify(fd, select.EPOLLIN)
                    continue
                answered += len(sockets[fd].recv(HELLO_MAX)) > 0
            except OSError:
                pass  # the server has closed it, to take others
            poll.unregister(fd)
            sockets.pop(fd).close()
    print(answered, flush=True)


if __name__ == "__main__":
    {"serve": serve, "measure": measure, "flood": flood}[sys.argv[1]](*sys.argv[2:])
