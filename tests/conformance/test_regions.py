# SPDX-License-Identifier: BSD-3-Clause
"""Handles of remote memory, keys, revocation, and the memory of other array libraries."""

import pickle
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from remote import BOTH, TIMEOUT, forge, hear, refused, tell
from sides import Side, Sides

import ofipy
from ofipy import Access, RemoteRegion

OpenEndpoint = Callable[..., ofipy.Endpoint]

# ------------------------------------------------------------------------------------------------------------- handles


def test_handle_travels_as_bytes() -> None:
    remote = RemoteRegion(2**64 - 1, 2**63, 1000, Access.REMOTE_READ)
    blob = bytes(remote)
    assert len(blob) == 32
    assert RemoteRegion.from_bytes(blob) == RemoteRegion.from_bytes(bytearray(blob)) == remote
    assert pickle.loads(pickle.dumps(remote)) == remote
    assert len(remote) == remote.length == 1000
    with pytest.raises(AttributeError):
        remote.length = 5  # type: ignore[misc]


def test_names_of_devices_travel_along() -> None:
    ways = b"\5verbs" + struct.pack("<QQ", 7, 4096)
    remote = RemoteRegion(2**64 - 1, 8, 1000, BOTH, ways)
    blob = bytes(remote)
    assert blob[:5] == b"ofRR\2"
    assert RemoteRegion.from_bytes(blob) == pickle.loads(pickle.dumps(remote)) == remote
    assert remote[10:20] == RemoteRegion(2**64 - 1, 18, 10, BOTH, ways)
    assert remote != RemoteRegion(2**64 - 1, 8, 1000, BOTH)
    for wrong in (blob[:32], blob[:-1], blob + b"x", blob + bytes(17), blob[:4] + b"\1" + blob[5:]):
        with pytest.raises(ofipy.InvalidArgument):
            RemoteRegion.from_bytes(wrong)


def test_bytes_that_are_no_handle() -> None:
    blob = bytes(RemoteRegion(1, 2, 3, Access.REMOTE_READ))
    fields = struct.Struct("<4sBBHQQQ")
    for wrong in (
        b"",
        blob[:-1],
        blob + b"x",
        b"X" + blob[1:],
        blob[:5] + b"\1" + blob[6:],
        fields.pack(blob[:4], 1, 0, 0, 1, 2, 3),
        fields.pack(blob[:4], 1, 0, Access.SEND.value, 1, 2, 3),
        fields.pack(blob[:4], 1, 0, 0xFFFF, 1, 2, 3),
        fields.pack(blob[:4], 1, 0, Access.REMOTE_READ.value, 1, 2**64 - 1, 2),
    ):
        with pytest.raises(ofipy.InvalidArgument):
            RemoteRegion.from_bytes(wrong)
    with pytest.raises(
        ofipy.IncompatiblePeer, match=r"version 9 of remote regions .* versions 1 to 2.*update"
    ):
        RemoteRegion.from_bytes(blob[:4] + b"\t" + blob[5:])
    for changes in ({"key": -1}, {"key": 2**64}, {"offset": 1.5}, {"access": Access.SEND}, {"access": 16}):
        with pytest.raises(ofipy.InvalidArgument, match=next(iter(changes))):
            forge(RemoteRegion(1, 2, 3, Access.REMOTE_READ), **changes)


def test_slices_of_a_handle() -> None:
    remote = RemoteRegion(7, 100, 50, BOTH)
    for part in (slice(10, 20), slice(None), slice(-5, None), slice(40, 99), slice(20, 10), slice(99, None)):
        begin, end, _ = part.indices(50)
        piece = remote[part]
        assert (piece.key, piece.access) == (7, BOTH)
        assert piece.length == max(end - begin, 0)
        if piece.length:
            assert piece.offset == 100 + begin
    assert remote[10:40][5:10] == remote[15:20]
    for part in (slice(0, 10, 2), 5, "all"):
        with pytest.raises(ofipy.InvalidArgument, match="begin:end"):
            remote[part]  # type: ignore[index]


# ------------------------------------------------------------------------------------------------------ keys and rights


@pytest.mark.needs("rma")
def test_region_of_a_part(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = np.zeros(100, np.uint8)
    region = ep.register(memory, access=BOTH)
    part = region[20:60]
    assert part.remote == region.remote[20:60]
    ep.write(b"abc", me, part.remote[10:13], complete="delivery").wait(timeout=TIMEOUT)
    assert bytes(memory[30:33]) == b"abc"
    assert memory.sum() == sum(b"abc")


@pytest.mark.needs("rma")
def test_region_of_allocated_memory(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    array = ep.empty((10, 100), np.uint16, access=Access.LOCAL | Access.REMOTE_WRITE)
    remote = ep.domain.region(array[3:5]).remote
    assert (remote.length, remote.access) == (400, Access.REMOTE_WRITE)
    ep.write(np.full(200, 7, np.uint16), me, remote, complete="delivery").wait(timeout=TIMEOUT)
    assert (array[3:5] == 7).all()
    assert array.sum() == 1400


def test_region_without_remote_access(ep: ofipy.Endpoint) -> None:
    with pytest.raises(ofipy.InvalidArgument, match=r"no remote access.*remote_write"):
        ep.register(bytearray(8)).remote  # noqa: B018
    with pytest.raises(ofipy.InvalidArgument, match="peers may not reach"):
        ep.register(bytearray(8), key=5)
    region = ep.register(bytearray(8), access=BOTH)
    region.close()
    with pytest.raises(ofipy.Closed):
        region.remote  # noqa: B018


@pytest.mark.needs("rma")
def test_keys(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    me = ep.insert(ep.address)
    keys = {ep.register(bytearray(8), access=BOTH).key for _ in range(100)}
    assert len(keys) == 100
    assert 0 not in keys
    for key in (0, 1, 2**32, 2 ** (8 * ep.info.mr_key_size) - 1):
        with ep.register(bytearray(8), access=BOTH, key=key) as region:
            assert region.remote.key == key
            with pytest.raises(ofipy.InvalidArgument, match="in use"):
                ep.register(bytearray(8), access=BOTH, key=key)
            ep.write(b"by a key", me, region.remote, complete="delivery").wait(timeout=TIMEOUT)
            assert bytes(region.array) == b"by a key"
            # Keys are a domain's own.
            other = open_endpoint()
            other.register(bytearray(8), access=BOTH, key=key).close()
    for wrong in (-1, 2**64, "one"):
        with pytest.raises(ofipy.InvalidArgument, match="key="):
            ep.register(bytearray(8), access=BOTH, key=wrong)  # type: ignore[arg-type]


@pytest.mark.needs("rma")
def test_region_outlives_its_object(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """Who holds the handle may use it until the region is closed, so the memory stays as long."""
    remote = ep.register(bytearray(b"kept" * 1000), access=BOTH).remote
    churn = [bytearray(4000) for _ in range(50)]
    into = bytearray(4000)
    ep.read(into, me, remote).wait(timeout=TIMEOUT)
    assert into == b"kept" * 1000
    assert not any(map(any, churn))


# ---------------------------------------------------------------------------------------------------------- revocation


@pytest.mark.needs("rma")
def test_closing_revokes(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = bytearray(8)
    region = ep.register(memory, access=BOTH, key=77)
    remote = region.remote
    ep.write(b"welcome!", me, remote, complete="delivery").wait(timeout=TIMEOUT)
    region.close()
    refused(ep.write(bytes(8), me, remote, complete="delivery"))
    error = refused(ep.read(bytearray(8), me, remote))
    # The provider's own code comes along, and what the provider says about it.
    assert f"provider code {error.provider_error}" in str(error)
    if ":" not in str(error.provider):
        assert "no region of the peer has this key; it may have been closed" in str(error)
    local = ep.register(bytearray(8))
    ep.post_read(local, me, remote)
    told = ep.cq.exception(ep.cq.wait(timeout=TIMEOUT)[0])
    assert told is not None
    assert (told.provider_error, told.remedy) == (error.provider_error, error.remedy)
    local.close()
    assert memory == b"welcome!"
    # The key is free again: another region, another memory.
    with ep.register(bytearray(b"new here"), access=BOTH, key=77):
        into = bytearray(8)
        ep.read(into, me, remote).wait(timeout=TIMEOUT)
        assert into == b"new here"


def write_until_revoked(side: Side, rounds: int, size: int) -> int:
    ep, source, total = side.ep, np.full(size, 1, np.uint8), 0
    for _ in range(rounds):
        remote, ended = hear(side), False
        while not ended:
            writes = [ep.write(source, side.peer, remote, complete="delivery") for _ in range(4)]
            for write in writes:
                try:
                    write.wait(timeout=TIMEOUT)
                    total += 1
                except ofipy.RemoteAccessError:
                    ended = True
    side.sync()
    return total


def revoke(side: Side, rounds: int, size: int) -> None:
    for number in range(rounds):
        memory = np.zeros(size, np.uint8)
        region = side.ep.register(memory, access="remote_write")
        tell(side, region)
        # In the middle of the first write, and in every other round behind it: else none may ever be carried out.
        arrived = memory.all if number % 2 else memory.any
        while not arrived():
            side.ep.domain.progress()
        for _ in range(number % 5):
            side.ep.domain.progress()
        region.close()
        # From here on the memory is this side's alone.
        memory[:] = 2
        for _ in range(20):
            side.ep.domain.progress()
            assert (memory == 2).all()
    side.sync()


@pytest.mark.needs("rma", "lone_refusals")
@pytest.mark.parametrize("size", [8, 300_000])
def test_revocation_under_load(sides: Sides, size: int) -> None:
    total, _ = sides.run(write_until_revoked, revoke, 25, size, progress="auto")
    assert total > 0


@pytest.mark.needs("rma")
def test_revocation_meets_local_threads(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """One thread writes through a handle, another registers and closes the region behind it."""
    stop, failures = threading.Event(), []
    with ep.register(bytearray(4096), access=BOTH, key=5) as region:
        remote = region.remote

    def write() -> None:
        try:
            while not stop.is_set():
                request = ep.write(bytes(4096), me, remote, complete="delivery")
                try:
                    request.wait(timeout=TIMEOUT)
                except ofipy.RemoteAccessError:
                    continue
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(200):
            ep.register(bytearray(4096), access=BOTH, key=5).close()
    finally:
        stop.set()
        thread.join(TIMEOUT)
    assert not failures


# ------------------------------------------------------------------------------------- memory of other array libraries


class Foreign:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(
        self, array: np.ndarray, *, versioned: bool = True, device: tuple[int, int] = (1, 0)
    ) -> None:
        self.array = array
        self.versioned = versioned
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versioned and options:
            raise TypeError("no options in this version")
        return self.array.__dlpack__(**options)


class OnCuda:
    """What a CUDA library shows of its arrays."""

    __cuda_array_interface__ = {"shape": (8,), "typestr": "|u1", "data": (4096, False), "version": 3}  # noqa: RUF012


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack(ep: ofipy.Endpoint, me: ofipy.Peer, versioned: bool) -> None:
    source, target = np.arange(24.0).reshape(4, 6), np.zeros((4, 12))
    receive = ep.trecv_into(Foreign(target[:, 3:9], versioned=versioned), me, tag=1)
    ep.tsend(Foreign(source, versioned=versioned), me, tag=1).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == source.nbytes
    assert np.array_equal(target[:, 3:9], source)
    assert not target[:, :3].any()
    region = ep.register(Foreign(source, versioned=versioned))
    region.array[:8] = 0
    assert source[0, 0] == 0
    region.close()


def test_dlpack_read_only(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    frozen = np.arange(8)
    frozen.flags.writeable = False
    target = np.zeros(8, int)
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        # Such an exporter has no way to say that memory is read-only, so it gives none.
        with pytest.raises(ofipy.BufferTypeError, match="Foreign does not give its memory"):
            ep.tsend(Foreign(frozen), me, tag=1)
        return
    receive = ep.trecv_into(target, me, tag=1)
    ep.tsend(Foreign(frozen), me, tag=1).wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    assert np.array_equal(frozen, target)
    with pytest.raises(ofipy.BufferTypeError, match="Foreign is read-only"):
        ep.trecv_into(Foreign(frozen), me, tag=1)


def test_device_memory_is_refused_by_name(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    array = np.zeros(8)
    for device, name in (((2, 1), "CUDA 1"), ((10, 0), "ROCm 0"), ((99, 3), "type 99 3")):
        for use in (ep.tsend, ep.trecv_into):
            with pytest.raises(ofipy.BufferTypeError, match=rf"\({name}\).*copy it to the host"):
                use(Foreign(array, device=device), me, tag=1)
        with pytest.raises(ofipy.BufferTypeError, match=name):
            ep.register(Foreign(array, device=device))
    with pytest.raises(ofipy.BufferTypeError, match="OnCuda is in the memory of a device"):
        ep.tsend(OnCuda(), me, tag=1)
    with pytest.raises(ofipy.BufferTypeError, match="CUDA"):
        ep.register(OnCuda())
    # Pinned memory is host memory.
    receive = ep.trecv_into(bytearray(64), me, tag=1)
    ep.tsend(Foreign(array, device=(1, 0)), me, tag=1).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 64
