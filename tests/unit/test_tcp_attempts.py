# SPDX-License-Identifier: BSD-3-Clause
"""Attempts of tcp to connect that are under way when nobody waits for them any more."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ofipy
from tests.ports import free_port

HOST = "127.0.0.1"
SYN_SENT = "02"


@contextmanager
def dropping_calls(port: int) -> Iterator[None]:
    """Linux drops the SYN of whoever calls a listener whose queue is full."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(0)
        callers = [socket.socket() for _ in range(3)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex((HOST, port))
        yield
        for caller in callers:
            caller.close()


def is_calling(port: int) -> bool:
    """Whether a socket waits for the answer to its SYN; the kernel sends one that was dropped again after 1 s."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(f":{port:04X}") and row[3] == SYN_SENT for row in rows)


@pytest.mark.parametrize("waits_for", ["insert", "send"])
def test_a_refusal_that_comes_when_nobody_waits_is_the_last(waits_for: str) -> None:
    """The endpoint would have asked for OFIPY_CONNECT_TIMEOUT, and met whoever opened there."""
    port = free_port()
    with ofipy.open(provider="tcp", node=HOST) as ep:
        with dropping_calls(port):
            if waits_for == "insert":
                with pytest.raises(ofipy.TimedOut):
                    ep.insert(f"{HOST}:{port}", wait=0.2)
            else:
                sent = ep.tsend(b"in vain", ep.insert(f"{HOST}:{port}"), tag=1)
                assert sent.cancel()
            assert is_calling(port)
        while is_calling(port):
            ep.domain.progress()
        with ofipy.open(provider="tcp", node=HOST, service=str(port)) as other:
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                ep.domain.progress()
                other.domain.progress()
            assert other.stats().peers_up == 0
            # It asks again as soon as somebody wants it to.
            peer = ep.insert(other.address)
            receive = other.trecv(tag=1)
            ep.tsend(b"now", peer, tag=1).wait(timeout=20)
            assert receive.wait(timeout=20).data == b"now"
