# SPDX-License-Identifier: BSD-3-Clause
"""What type checkers make of the public interface; read by them, never run."""

import asyncio
from array import array
from typing import assert_type

import numpy as np

import ofipy
import ofipy.typing


def messages(ep: ofipy.Endpoint, peer: ofipy.Peer) -> None:
    sent = ep.tsend(b"x", peer, tag=1)
    assert_type(sent, ofipy.Request)
    assert_type(ep.send(b"x").wait(timeout=1).source, ofipy.Peer | None)
    received = ep.trecv_into(bytearray(1), peer).wait()
    assert_type(received.source, ofipy.Peer | None)
    assert_type(received.remote_data, int | None)
    assert_type(ep.trecv(tag=1).wait(), ofipy.Message)
    assert_type(ep.recv(peer), ofipy.MessageRequest)
    assert_type(ep.prepare_tsend(b"", peer).start().wait(), ofipy.PreparedRequest)
    assert_type(ep.connect("localhost:1").wait(), bytes)
    assert_type(ep.fetch_atomic(np.int64(1), peer, [], op="sum").wait(), np.int64)
    for view in ep.trecv_many(bytearray(1 << 20)):
        assert_type(view, ofipy.MessageView)


def memory(
    ep: ofipy.Endpoint, peer: ofipy.Peer, remote: ofipy.RemoteRegion, kept: ofipy.typing.Memory
) -> None:
    region = ep.register(np.zeros(8))
    pieces = (
        b"x",
        bytearray(1),
        memoryview(b"x"),
        array("d"),
        np.zeros(8),
        np.zeros(8)[::2],
        np.float64(1),
        region,
    )
    for piece in pieces:
        ep.tsend(piece, peer)
        ep.send([piece, b"more"], peer)
        ep.write(piece, peer, remote)
    ep.trecv_into([bytearray(1), region[:1]], peer)
    ep.tsend(kept, peer)


def no_memory(ep: ofipy.Endpoint, peer: ofipy.Peer, remote: ofipy.RemoteRegion) -> None:
    """A strict checker fails where one of these ignores is not needed."""
    ep.tsend("text", peer)  # type: ignore[arg-type]
    ep.tsend(7, peer)  # type: ignore[arg-type]
    ep.send([1, 2], peer)  # type: ignore[list-item]
    ep.send(["text"], peer)  # type: ignore[list-item]
    ep.trecv_into("text", peer)  # type: ignore[arg-type]
    ep.recv_into(7, peer)  # type: ignore[arg-type]
    ep.write("text", peer, remote)  # type: ignore[arg-type]
    ep.read(7, peer, remote)  # type: ignore[arg-type]
    ep.prepare_tsend("text", peer)  # type: ignore[arg-type]
    ep.trecv_many("text")  # type: ignore[arg-type]
    ep.register("text")  # type: ignore[arg-type]


def several(ep: ofipy.Endpoint) -> None:
    assert_type(ofipy.wait_all([ep.trecv(), ep.recv()]), list[ofipy.Message])
    assert_type(ofipy.wait_any([ep.trecv(), ep.recv()]), ofipy.MessageRequest)
    assert_type(ofipy.wait_any([ep.trecv_into(bytearray(1))]).wait().length, int)


def holds(request: ofipy.Request[ofipy.Message]) -> ofipy.Message:
    return request.wait()


async def awaited(ep: ofipy.Endpoint) -> None:
    assert_type(await ep.trecv(tag=1), ofipy.Message)
    assert_type((await ep.trecv_into(bytearray(1))).length, int)
    assert_type(await asyncio.gather(ep.trecv(), ep.recv()), tuple[ofipy.Message, ofipy.Message])
    async for message in ep.messages(tag=7):
        assert_type(message, ofipy.Message)
        assert_type(message.source, ofipy.Peer | None)


def opened() -> None:
    with ofipy.open(7471, provider="shm") as ep:
        assert_type(ep, ofipy.Endpoint[ofipy.Domain])
        assert_type(ep.insert(ep.address), ofipy.Peer)
        assert_type(ep.domain.cq(), ofipy.CompletionQueue[ofipy.Domain])
