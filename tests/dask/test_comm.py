# SPDX-License-Identifier: BSD-3-Clause
"""What Dask asks of any kind of connection, over each transport."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import dask.config
import numpy as np
import pytest
from both_ends import ANY_PORT, echo, pair, run
from distributed.comm import (
    CommClosedError,
    connect,
    get_address_host,
    listen,
    parse_address,
    resolve_address,
)
from distributed.comm.registry import backends
from distributed.protocol import Serialize, Serialized, deserialize, to_serialize
from hostile_pickle import HostilePickle, unpickled

from ofipy._base.errors import AccessDenied, IncompatiblePeer
from ofipy.cli.key import new_key
from ofipy.dask import wire

pytestmark = [pytest.mark.usefixtures("provider"), pytest.mark.timeout(60)]


# ---------------------------------------------------------------------------------------------------------- both ways


def test_client_and_server() -> None:
    async def test() -> None:
        served = []

        async def serve(comm: Any) -> None:
            assert parse_address(comm.peer_address)[0] == "ofi"
            served.append(await comm.read())
            await comm.write({"op": "pong", "data": served[-1]["data"]})
            await comm.close()

        # Arguments that a transport does not know are no fault.
        async with listen(ANY_PORT, serve, something="else") as listener:
            scheme, place = parse_address(listener.listen_address)
            assert scheme == "ofi"
            assert place.startswith("127.0.0.1:")
            assert listener.contact_address == listener.listen_address
            assert listener.prefix == "ofi://"

            async def ask(number: int) -> None:
                comm = await connect(listener.contact_address, other="thing")
                assert comm.peer_address == listener.contact_address
                await comm.write({"op": "ping", "data": number})
                assert await comm.read() == {"op": "pong", "data": number}
                with pytest.raises(CommClosedError):
                    await comm.read()
                await comm.close()

            await ask(1234)
            await asyncio.gather(*(ask(number) for number in range(20)))
        assert len(served) == 21

    run(test())


def test_addresses_of_both_ends() -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            assert here.peer_address == there.local_address
            assert here.local_address == there.peer_address
            assert here.same_host
            assert "ofi://" in repr(here)
            assert "closed" not in repr(here)
            here.abort()
            assert "closed" in repr(here)

    run(test())


def test_arrays_have_memory_of_their_own() -> None:
    async def test() -> None:
        arrays = [np.full(size, size % 251, np.uint8) for size in (10, 100_000, 1 << 20, 0, 200_000)]
        async with pair() as (here, there, _):
            await here.write({"x": [to_serialize(each) for each in arrays]}, serializers=["dask", "pickle"])
            got = (await there.read(deserializers=["dask", "pickle"]))["x"]
            for sent, received in zip(arrays, got, strict=True):
                assert np.array_equal(sent, received)
            large = [each for each in got if each.size > 65536]
            assert all(each.flags.writeable for each in large)
            assert not any(np.shares_memory(a, b) for a in large for b in large if a is not b)

    run(test())


@pytest.mark.parametrize("size", [10, 4_000_000, 40_000_000])
def test_writing_does_not_wait_for_the_reader(size: int) -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            sent = {"op": "update", "x": [to_serialize(bytes(size)) for _ in range(2)], "y": (1, "two")}
            await here.write(sent)
            got = await there.read()
            assert [len(each) for each in got["x"]] == [size, size]
            assert tuple(got["y"]) == (1, "two")

    run(test())


def test_a_full_queue_waits_for_the_reader() -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            here._limit = 1 << 20
            await here.write({"x": to_serialize(bytes(1 << 20))})
            second = asyncio.create_task(here.write({"x": to_serialize(bytes(8 << 20))}))
            await asyncio.sleep(0.2)
            assert not second.done()
            assert len((await there.read())["x"]) == 1 << 20
            assert len((await there.read())["x"]) == 8 << 20
            await second

    run(test())


@pytest.mark.parametrize("unpickles", [True, False])
def test_deserialize(unpickles: bool) -> None:
    async def test() -> None:
        async with pair(deserialize=unpickles) as (here, there, _):
            message = {"op": "update", "x": b"abc", "to": [to_serialize(123)], "kept": Serialize(456)}
            for writer, reader in ((here, there), (there, here)):
                await writer.write(message)
                got = await reader.read()
                assert got["x"] == b"abc"
                if unpickles:
                    assert (list(got["to"]), got["kept"]) == ([123], 456)
                    continue
                assert isinstance(got["to"][0], Serialize | Serialized)
                assert deserialize(got["kept"].header, got["kept"].frames) == 456
                # And it can be sent on as it is.
                await reader.write(got)
                back = await writer.read()
                assert deserialize(back["kept"].header, back["kept"].frames) == 456

    run(test())


def test_many_listeners() -> None:
    async def test() -> None:
        listeners = [await listen(ANY_PORT, echo) for _ in range(20)]
        assert len({each.contact_address for each in listeners}) == 20
        comms = [await connect(each.contact_address) for each in listeners]
        for number, comm in enumerate(comms):
            await comm.write(number)
        assert [await comm.read() for comm in comms] == list(range(20))
        for comm in comms:
            await comm.close()
        for each in listeners:
            each.stop()

    run(test())


def test_both_ends_write_much_at_once() -> None:
    async def test() -> None:
        async with pair() as (here, there, _):

            async def write(comm: Any) -> None:
                for number in range(30):
                    await comm.write(
                        {"n": number, "x": to_serialize(np.full(300_000, number % 256, np.uint8))}
                    )

            async def read(comm: Any) -> None:
                for number in range(30):
                    got = await comm.read()
                    assert got["n"] == number
                    assert (np.asarray(got["x"]) == number % 256).all()

            await asyncio.gather(write(here), write(there), read(here), read(there))

    run(test())


# ------------------------------------------------------------------------------------------------------ what is refused


def test_nobody_listens() -> None:
    async def test() -> None:
        async with listen(ANY_PORT, echo) as listener:
            address = listener.contact_address
        with pytest.raises(OSError, match="Timed out trying to connect"):
            await connect(address, timeout=1)

    run(test())


def test_a_listener_that_stops_leaves_nobody_waiting() -> None:
    async def test() -> None:
        listener = await listen(ANY_PORT, echo)
        backend = backends["ofi"]
        half = await backend.get_connector().connect(parse_address(listener.contact_address)[1])
        await asyncio.sleep(0.05)
        listener.stop()
        await half.read()  # its side of the handshake
        with pytest.raises(CommClosedError):
            await half.read()

    run(test())


def test_encryption_cannot_be_had() -> None:
    async def test() -> None:
        with pytest.raises(RuntimeError, match="encryption required"):
            await listen(ANY_PORT, echo, require_encryption=True)
        with pytest.raises(RuntimeError, match="encryption required"):
            await connect("ofi://127.0.0.1:1", require_encryption=True)

    run(test())


def test_encryption_is_had_where_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_key(tmp_path / "key")
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("OFIPY_ENCRYPTION", "required")

    async def test() -> None:
        async with listen(ANY_PORT, echo, require_encryption=True) as listener:
            comm = await connect(listener.contact_address, require_encryption=True)
            await comm.write("x")
            assert await comm.read() == "x"
            endpoint, peer = comm._hub.endpoint, comm._peer
            assert endpoint.security(peer).encrypted is (endpoint.way(peer) == "tcp")
            await comm.close()

    run(test())


def test_calls_that_are_none() -> None:
    async def test() -> None:
        async with pair() as (here, _, listener):
            endpoint, peer = here._hub.endpoint, here._peer
            for blob in (b"", b"\1" * 4, b"\xff" * 9, wire.pack_call(1, "x")[:8]):
                await endpoint.tsend(blob, peer, tag=wire.tag(wire.Kind.CALL))
            comm = await connect(listener.contact_address)
            comm.abort()

    run(test())


def test_a_call_of_another_release_is_told_by_its_version(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with pair() as (here, _, _listener):
            endpoint, peer = here._hub.endpoint, here._peer
            answer = endpoint.trecv(peer, tag=wire.tag(wire.Kind.ANSWER, 7))
            call = b"\3" + wire.pack_call(7, "ofi://there:1")[1:]
            await endpoint.tsend(call, peer, tag=wire.tag(wire.Kind.CALL))
            # What the caller reads: that it was refused, and what the listener speaks.
            said = bytes((await answer).data)
            assert said == b"\0" + (2).to_bytes(8, "little")
            with pytest.raises(IncompatiblePeer, match=r"version 3 of .*, and this side version 2 \(update"):
                wire.read_answer(b"\0" + (3).to_bytes(8, "little"), "ofi://there:1")

    run(test())
    assert "ofi://there:1: the peer speaks version 3 of the messages of Dask's connections" in caplog.text


@pytest.mark.parametrize("blob", [b"\1", b"\1\xff\xff\xff\xff\xff\xff\xff\xff", b""])
def test_heads_that_are_none(blob: bytes) -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            tag = wire.tag(wire.Kind.HEAD, here._far_number)
            await here._hub.endpoint.tsend(blob, here._peer, tag=tag)
            with pytest.raises(CommClosedError):
                await there.read()
            assert there.closed()

    run(test())


def test_compression_is_agreed_upon() -> None:
    async def test() -> None:
        with dask.config.set({"distributed.comm.compression": "zlib"}):
            async with pair() as (here, there, _):
                assert here.handshake_options["compression"] is None  # of one host
                assert here.handshake_options["pickle-protocol"] >= 5
                assert there.handshake_options == here.handshake_options

    run(test())


def test_host_of_an_address() -> None:
    backend = backends["ofi"]
    assert get_address_host("ofi://10.1.2.3:45") == "10.1.2.3"
    assert backend.get_address_host_port("10.1.2.3:45") == ("10.1.2.3", 45)
    assert resolve_address("ofi://127.0.0.1:789") == "ofi://127.0.0.1:789"
    assert backend.get_local_address_for("127.0.0.1:1").startswith("127.0.0.1")


# ------------------------------------------------------------------------------------------------------------- a key


def test_a_connection_that_is_older_than_the_key_reads_nothing(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpickled.clear()

    async def test() -> None:
        async with pair() as (here, there, _):
            await here.write("without a key")
            assert await there.read() == "without a key"
            await here.write({"x": to_serialize(HostilePickle())})
            key = tmp_path / "key"
            key.write_bytes(bytes(32))
            key.chmod(0o600)
            monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(key))
            if provider == "shm":  # whose peers are processes of the same user
                await there.read()
                assert unpickled
                return
            with pytest.raises(CommClosedError, match="OFIPY_AUTH_KEY_FILE") as caught:
                await there.read()
            assert isinstance(caught.value.__cause__, AccessDenied)
            assert there.closed()
            assert not unpickled
            with pytest.raises(CommClosedError):
                await here.read()

    monkeypatch.delenv("OFIPY_AUTH_KEY_FILE", raising=False)
    run(test())
