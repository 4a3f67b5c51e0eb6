# SPDX-License-Identifier: BSD-3-Clause
"""Buffers of collectives that are no arrays, and such as lie in regions."""

from typing import Any

import numpy as np
import pytest
from team import TIMEOUT, Open, make_team, together

import ofipy

pytestmark = pytest.mark.needs("groups")


def as_memory(kind: str, group: ofipy.Group, content: bytes) -> Any:
    memory = bytearray(content)
    if kind == "region":
        return group.endpoint.register(memory, access="send|recv")
    wrap = {"bytearray": bytearray, "memoryview": memoryview, "array": lambda each: np.frombuffer(each, "u1")}
    return wrap[kind](memory)


def content_of(memory: Any) -> bytes:
    return bytes(memory.array if isinstance(memory, ofipy.Region) else memory)


KINDS = ["array", "bytearray", "memoryview", "region"]


@pytest.mark.parametrize("given", KINDS)
@pytest.mark.parametrize("got", KINDS)
def test_memory_of_every_kind(open_endpoint: Open, given: str, got: str) -> None:
    size = 4
    team = make_team(open_endpoint, size)
    own = [bytes([rank] * 3) for rank in range(size)]
    everything = b"".join(own)

    def work(group: ofipy.Group) -> None:
        is_root = group.rank == 1
        for _ in range(2):
            whole = as_memory(got, group, bytes(3 * size))
            block = as_memory(given, group, own[group.rank])
            group.allgather(block, whole).wait(timeout=TIMEOUT)
            assert content_of(whole) == everything
            whole = as_memory(got, group, bytes(3 * size))
            group.gather(block, whole if is_root else None, root=1).wait(timeout=TIMEOUT)
            assert content_of(whole) == (everything if is_root else bytes(3 * size))
            part = as_memory(got, group, bytes(3))
            whole = as_memory(given, group, everything)
            group.scatter(whole if is_root else None, part, root=1).wait(timeout=TIMEOUT)
            assert content_of(part) == own[group.rank]
            # In place: the root's block stays where it is.
            part = as_memory(got, group, bytes(3))
            result = group.scatter(whole, root=1) if is_root else group.scatter(None, part, root=1)
            assert result.wait(timeout=TIMEOUT) is (whole if is_root else part)
            assert is_root or content_of(part) == own[group.rank]
            a = as_memory(got, group, everything if is_root else bytes(3 * size))
            assert group.broadcast(a, root=1).wait(timeout=TIMEOUT) is a
            assert content_of(a) == everything

    together(team, work)
