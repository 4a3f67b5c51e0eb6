# SPDX-License-Identifier: BSD-3-Clause
"""Python objects between two sides: what comes out is what went in, and nothing damaged is believed."""

import asyncio
import errno
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_pickle import HostilePickle, unpickled
from sides import Side, Sides, Target

import ofipy
from ofipy._operations import objects

OpenEndpoint = Callable[..., ofipy.Endpoint]
pytestmark = pytest.mark.connected
TIMEOUT = 30


class Json:
    """A serializer."""

    @staticmethod
    def dumps(obj: Any, /) -> bytes:
        return json.dumps(obj).encode()

    loads = staticmethod(json.loads)


def examples() -> list[Any]:
    """Without and with arrays: small, large, read-only, many, in another order, empty, not in one piece."""
    read_only = np.arange(5000)
    read_only.flags.writeable = False
    return [
        None,
        {"a": [1, 2.5, "text"], "b": (b"bytes", {3, 4})},
        np.arange(10),
        {"large": np.arange(100_000, dtype=np.float64), "name": "x"},
        [np.full(1000 + number, number, np.uint8) for number in range(40)],
        [np.full(40_000 * number, number, np.int32) for number in range(12)],
        (read_only, np.asfortranarray(np.arange(12_000).reshape(100, 120)), np.empty(0)),
        np.arange(20_000)[::2],
        bytearray(100_000),
    ]


def assert_equal(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.flags.writeable == other.flags.writeable
        assert np.array_equal(one, other)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for each in zip(one, other, strict=True):
            assert_equal(*each)
    elif isinstance(one, dict):
        assert_equal(list(one.items()), list(other.items()))
    else:
        assert one == other


def send_examples(side: Side) -> None:
    for number, each in enumerate(examples()):
        side.ep.tsend_obj(each, side.peer, tag=number).wait(timeout=TIMEOUT)
    side.ep.tsend_obj({"x": [1]}, side.peer, tag=99, serializer=Json).wait(timeout=TIMEOUT)
    side.sync()


def receive_examples(side: Side) -> None:
    for number, each in enumerate(examples()):
        request = side.ep.trecv_obj(side.peer, tag=number)
        assert_equal(request.wait(timeout=TIMEOUT), each)
        assert request.wait() is request.wait()
        assert (request.source, request.tag) == (side.peer, number)
    assert side.ep.trecv_obj(tag=99, serializer=Json).wait(timeout=TIMEOUT) == {"x": [1]}
    side.sync()


def test_what_goes_in_comes_out(sides: Sides) -> None:
    sides.run(send_examples, receive_examples)


def send_plain(side: Side) -> None:
    async def main() -> None:
        for number in range(5):
            await side.ep.send_obj({"number": number}, side.peer)

    asyncio.run(main())
    side.sync()


def receive_plain(side: Side) -> None:
    async def main() -> None:
        for number in range(5):
            assert await side.ep.recv_obj(side.peer) == {"number": number}

    asyncio.run(asyncio.wait_for(main(), TIMEOUT))
    side.sync()


@pytest.mark.untagged
def test_awaited_and_without_tags(sides: Sides) -> None:
    sides.run(send_plain, receive_plain)


def to_itself(ep: ofipy.Endpoint) -> ofipy.Peer:
    return ep.insert(ep.address)


def test_arrays_lie_in_the_memory_of_the_message(ep: ofipy.Endpoint) -> None:
    ep.tsend_obj([np.arange(3000), np.arange(5000.0)], to_itself(ep), tag=1)
    first, second = ep.trecv_obj(tag=1).wait(timeout=TIMEOUT)
    whole = [each.__array_interface__["data"][0] for each in (first, second)]
    assert whole[1] - whole[0] == first.nbytes
    assert all(address % 16 == 0 for address in whole)
    first += 1


def test_arrays_leave_from_where_they_are(ep: ofipy.Endpoint) -> None:
    arrays = [np.arange(10_000 + number) for number in range(4)]
    pieces = objects._pieces(ep, arrays, None)
    views = [each for each in pieces if isinstance(each, memoryview)]
    here = [np.frombuffer(each, np.uint8).__array_interface__["data"][0] for each in views]
    assert here == [each.__array_interface__["data"][0] for each in arrays][: len(here)]
    assert len(views) == min(4, (min(ep.info.segment_limit, 16) - 1) // 2)


def test_cancelled_and_dropped_receives_lose_none(ep: ofipy.Endpoint) -> None:
    me = to_itself(ep)
    receive = ep.trecv_obj(tag=1)
    assert receive.cancel()
    with pytest.raises(ofipy.Canceled):
        receive.wait()
    ep.tsend_obj("kept", me, tag=1)
    dropped = ep.trecv_obj(tag=1)
    while not dropped.test():
        pass
    del dropped
    assert ep.trecv_obj(tag=1).wait(timeout=TIMEOUT) == "kept"


def damaged() -> list[bytes]:
    head = struct.Struct("<4sBBHIIQ")
    return [
        b"",
        b"no object at all, but long enough",
        head.pack(b"OFPO", 0, 0, 0, 0, 0, 0),
        head.pack(b"OFPO", 1, 7, 0, 0, 0, 0),
        head.pack(b"OFPO", 1, 0, 0, 0, 0, 1),
        head.pack(b"OFPO", 1, 0, 0, 0, 0, 2**64 - 1),
        head.pack(b"OFPO", 1, 0, 0, 2**32 - 1, 0, 0),
        head.pack(b"OFPO", 1, 0, 0, 1, 0, 0) + struct.pack("<Q", 2**63 - 1),
        head.pack(b"OFPO", 1, 0, 0, 1, 0, 0) + struct.pack("<Q", 2**64 - 1),
        head.pack(b"OFPO", 1, 0, 0, 0, 0, 2) + b"N.and more",
        head.pack(b"OFPO", 1, 1, 0, 0, 0, 2) + b"{}",
    ]


def test_what_is_damaged_is_not_believed(ep: ofipy.Endpoint) -> None:
    me = to_itself(ep)
    for each in damaged():
        ep.tsend(each, me, tag=1)
        receive = ep.trecv_obj(tag=1)
        with pytest.raises(ofipy.FabricError) as caught:
            receive.wait(timeout=TIMEOUT)
        assert caught.value.errno == errno.EBADMSG
        assert caught.value.peer is not None
        assert isinstance(receive.exception(), ofipy.FabricError)
    ep.tsend(struct.pack("<4sBBHIIQ", b"OFPO", 2, 7, 0, 0, 0, 0), me, tag=1)
    with pytest.raises(
        ofipy.IncompatiblePeer, match=r"version 2 of objects .*update ofipy on this side"
    ) as told:
        ep.trecv_obj(tag=1).wait(timeout=TIMEOUT)
    assert told.value.peer is not None
    ep.tsend_obj([1], me, tag=1)
    with pytest.raises(ofipy.FabricError, match="as a pickle"):
        ep.trecv_obj(tag=1, serializer=Json).wait(timeout=TIMEOUT)


def test_with_a_key_only_who_proves_it(
    target: Target, open_endpoint: OpenEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(tmp_path / "key"))
    ep = open_endpoint()
    proves = ep.info.peer_proof is not ofipy.PeerProof.NONE
    ep.tsend_obj("hello", to_itself(ep), tag=1)
    receive = ep.trecv_obj(tag=1)
    if proves:
        assert receive.wait(timeout=TIMEOUT) == "hello"
        return
    with pytest.raises(ofipy.AccessDenied, match="OFIPY_AUTH_KEY_FILE"):
        receive.wait(timeout=TIMEOUT)


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """Set a key, from then on."""

    def set_key(byte: bytes) -> None:
        path = tmp_path / byte.hex()
        path.write_bytes(byte * 32)
        path.chmod(0o600)
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(path))

    monkeypatch.delenv("OFIPY_AUTH_KEY_FILE", raising=False)
    monkeypatch.setenv("OFIPY_ENCRYPTION", "off")
    unpickled.clear()
    yield set_key
    monkeypatch.undo()


def ways_to_read(request: ofipy.ObjectRequest) -> Iterator[Callable[[], Any]]:
    async def awaited() -> Any:
        return await request

    yield lambda: request.wait(timeout=TIMEOUT)
    yield lambda: asyncio.run(awaited())
    yield lambda: request.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("tagged", [True, False])
def test_an_endpoint_that_is_older_than_the_key_takes_no_object(
    target: Target, open_endpoint: OpenEndpoint, key: Callable[[bytes], None], tagged: bool
) -> None:
    ep = open_endpoint()
    peer = to_itself(ep)

    def receive(what: Any) -> ofipy.ObjectRequest:
        if tagged:
            ep.tsend_obj(what, peer, tag=1)
            return ep.trecv_obj(tag=1)
        ep.send_obj(what, peer)
        return ep.recv_obj()

    assert receive("without a key").wait(timeout=TIMEOUT) == "without a key"
    request = receive(HostilePickle())
    key(b"a")
    if ep.info.peer_proof is ofipy.PeerProof.USER:
        request.wait(timeout=TIMEOUT)
        assert unpickled == ["code of the sender"]
        return
    for read in ways_to_read(request):
        with pytest.raises(ofipy.AccessDenied, match="OFIPY_AUTH_KEY_FILE") as caught:
            read()
        assert caught.value.peer == str(peer.address)
        assert "trecv()" in str(caught.value.remedy)
        assert unpickled == []
    ep.tsend(b"bytes", peer, tag=2)  # the refused message is consumed, and others come
    assert bytes(ep.trecv(tag=2).wait(timeout=TIMEOUT).data) == b"bytes"


def test_a_key_that_was_exchanged_is_not_the_one_that_peers_have_proven(
    target: Target, open_endpoint: OpenEndpoint, key: Callable[[bytes], None], tmp_path: Path
) -> None:
    if target.info().peer_proof is not ofipy.PeerProof.KEY:
        pytest.skip("its peers prove no key")
    key(b"a")
    ep = open_endpoint()
    peer = to_itself(ep)
    ep.tsend_obj("proven", peer, tag=1)
    (tmp_path / b"a".hex()).rename(tmp_path / "kept")
    assert ep.trecv_obj(tag=1).wait(timeout=TIMEOUT) == "proven"  # its file is gone, and no other key is set
    key(b"b")
    ep.tsend_obj(HostilePickle(), peer, tag=1)
    with pytest.raises(ofipy.AccessDenied, match="another key is set"):
        ep.trecv_obj(tag=1).wait(timeout=TIMEOUT)
    assert unpickled == []
    key(b"a")  # the same in another file
    ep.tsend_obj("proven", peer, tag=1)
    assert ep.trecv_obj(tag=1).wait(timeout=TIMEOUT) == "proven"
