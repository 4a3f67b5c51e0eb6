# SPDX-License-Identifier: BSD-3-Clause
"""Memory of ``domain.empty`` that lies where freed memory lay: operations on it take the fast way, as on the first."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ofipy
from ofipy._memory.buffers import local_memory

TIMEOUT = 30
SIZE = 1 << 16


@contextlib.contextmanager
def general_way_counted() -> Iterator[list[Any]]:
    """What operations called for whose memory C did not know; one entry for each."""
    called: list[Any] = []

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is local_memory.__code__:
            called.append(frame.f_back.f_code.co_name)

    sys.setprofile(look)
    try:
        yield called
    finally:
        sys.setprofile(None)


@pytest.fixture
def ep() -> Iterator[ofipy.Endpoint]:
    with ofipy.open(provider="shm", caps=["tagged", "rma", "atomic"]) as ep:
        yield ep


def test_the_general_way_is_counted(ep: ofipy.Endpoint) -> None:
    me = ep.insert(ep.address)
    with general_way_counted() as called:
        ep.tsend([b"in", b" pieces"], me)
    assert len(called) == 1


@pytest.mark.parametrize("side", ["sent", "received into"])
def test_messages(ep: ofipy.Endpoint, side: str) -> None:
    me, places = ep.insert(ep.address), []
    plain = bytearray(SIZE)  # the last array that was looked up is remembered, and this is none
    for _ in range(3):
        memory = ep.empty(SIZE, np.uint8)
        places.append(memory.ctypes.data)
        with general_way_counted() as called:
            receive = ep.trecv_into(memory if side == "received into" else plain, me)
            ep.tsend(memory if side == "sent" else plain, me).wait(timeout=TIMEOUT)
            receive.wait(timeout=TIMEOUT)
        assert not called
        del memory, receive
    assert places == places[:1] * 3


@pytest.mark.parametrize("call", ["write", "read", "atomic", "fetch_atomic"])
def test_remote_memory(ep: ofipy.Endpoint, call: str) -> None:
    me, places = ep.insert(ep.address), []
    there = ep.register(np.zeros(SIZE // 8, np.uint64), access="remote_read|remote_write")
    for _ in range(3):
        local = ep.empty(SIZE // 8, np.uint64)
        places.append(local.ctypes.data)
        options = {"op": "sum"} if "atomic" in call else {}
        with general_way_counted() as called:
            getattr(ep, call)(local, me, there.remote, **options).wait(timeout=TIMEOUT)
        assert not called
        del local
    assert places == places[:1] * 3
