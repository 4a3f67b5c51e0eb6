# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is registered for operations, and what is left registered: see docs/explanation/verbs.md."""

import array
import ctypes
import gc
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
from connected_pair import TIMEOUT, connected, pattern

LONG = 1 << 20

Pair = tuple[ofipy.Endpoint, ofipy.Endpoint]


@pytest.fixture
def pair() -> Iterator[Pair]:
    yield from connected()


def exchange(pair: Pair, buffer: object, room: np.ndarray) -> None:
    client, server = pair
    receive = server.recv_into(room)
    client.send(buffer, complete="transmit").wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)


def sent(pair: Pair, buffer: object, size: int) -> bytes:
    room = np.zeros(size, np.uint8)
    exchange(pair, buffer, room)
    return room.tobytes()


def counted(endpoint: ofipy.Endpoint) -> tuple[int, int]:
    stats = endpoint.stats()
    return stats.registrations, stats.registrations_reused


@pytest.mark.parametrize("size", [64 << 10, LONG])
def test_arrays_are_registered_once(pair: Pair, size: int) -> None:
    client, server = pair
    out, room = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    exchange(pair, out, room)
    before = counted(client), counted(server)
    for number in range(10):
        out[:] = pattern(size, number)
        exchange(pair, out, room)
        assert np.array_equal(out, room)
        # A view is of the same memory.
        exchange(pair, out[100:20_000], room[:20_000])
        assert np.array_equal(out[100:20_000], room[:19_900])
    for endpoint, (made, reused) in zip(pair, before, strict=True):
        assert counted(endpoint) == (made, reused + 20)


def test_arrays_of_writes_and_reads_are_registered_once(pair: Pair) -> None:
    client, server = pair
    target = server.empty(LONG, access="remote_read|remote_write")
    remote = server.domain.region(target).remote
    out, back = np.zeros(LONG, np.uint8), np.zeros(LONG, np.uint8)
    made = []
    for number in range(5):
        out[:] = pattern(LONG, number)
        client.write(out, client.peer, remote).wait(timeout=TIMEOUT)
        client.read(back, client.peer, remote).wait(timeout=TIMEOUT)
        assert np.array_equal(out, back)
        made.append(counted(client)[0])
    assert made[0] == made[-1]


def test_allocated_and_registered_memory_is_not_registered_again(pair: Pair) -> None:
    client, server = pair
    out, room = client.empty(LONG), np.zeros(LONG, np.uint8)
    region = server.register(room)
    before = counted(client), counted(server)
    for number in range(3):
        out[:] = pattern(LONG, number)
        receive = server.recv_into(region)
        client.send(out).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        assert np.array_equal(out, room)
    assert (counted(client), counted(server)) == before


def test_prepared_operations_use_what_is_registered(pair: Pair) -> None:
    client, server = pair
    out, room = np.zeros(LONG, np.uint8), np.zeros(LONG, np.uint8)
    send, receive = client.prepare_send(out), server.prepare_recv(room)
    for number in range(4):
        out[:] = pattern(LONG, number)
        ofipy.start(receive, send)
        receive.wait(timeout=TIMEOUT)
        send.wait(timeout=TIMEOUT)
        assert np.array_equal(out, room)
        if number == 0:
            before = counted(client)[0]
    assert counted(client)[0] == before


def test_new_arrays_at_the_same_address(pair: Pair) -> None:
    """The one before was registered; what lies there now is another page."""
    addresses = set()
    for number in range(20):
        out = pattern(LONG, number)
        addresses.add(out.ctypes.data)
        assert sent(pair, out, LONG) == pattern(LONG, number).tobytes()
        del out
    assert len(addresses) < 20


def test_a_registration_ends_with_its_array(pair: Pair) -> None:
    client, _ = pair
    out = np.zeros(LONG, np.uint8)
    assert sent(pair, out, LONG) == bytes(LONG)
    owned = client.domain._memory.owned._owned
    assert id(out) in owned
    part = out[5:]
    del out
    gc.collect()
    assert len(owned) == 1
    del part
    gc.collect()
    assert not owned


def test_an_array_in_a_circle(pair: Pair) -> None:
    class Holder:
        pass

    client, _ = pair
    holder = Holder()
    holder.array, holder.itself = np.zeros(LONG, np.uint8), holder  # type: ignore[attr-defined]
    sent(pair, holder.array, LONG)  # type: ignore[attr-defined]
    del holder
    gc.collect()
    assert not client.domain._memory.owned._owned


def test_an_array_that_is_resized(pair: Pair) -> None:
    out = pattern(LONG, 1)
    first = sent(pair, out, LONG)
    assert first == out.tobytes()
    # numpy refuses: somebody has a weak reference.
    with pytest.raises(ValueError, match="resize"):
        out.resize(2 * LONG, refcheck=False)
    out = np.resize(out, 2 * LONG)
    assert sent(pair, out, 2 * LONG) == out.tobytes()


def test_a_bytearray_that_is_resized(pair: Pair) -> None:
    out = bytearray(pattern(LONG, 2))
    for size in (LONG, 4 * LONG, LONG // 2, 3 * LONG):
        del out[size:]
        out.extend(bytes(size - len(out)))
        out[:] = pattern(size, size).tobytes()
        assert sent(pair, out, size) == bytes(out)


def test_an_array_of_the_standard_library_that_is_resized(pair: Pair) -> None:
    out = array.array("B", bytes(LONG))
    for number in range(5):
        out.extend(pattern(LONG, number))
        assert sent(pair, out, len(out)) == out.tobytes()
        del out[: LONG // 2]
        assert sent(pair, out, len(out)) == out.tobytes()


def libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    for name in ("malloc", "mmap", "mremap"):
        getattr(library, name).restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mremap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_void_p,
    ]
    return library


def at(address: int, size: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)


def test_malloc_and_free(pair: Pair) -> None:
    library, addresses = libc(), []
    for number in range(10):
        addresses.append(library.malloc(LONG))
        at(addresses[-1], LONG)[:] = pattern(LONG, number)
        assert sent(pair, at(addresses[-1], LONG), LONG) == pattern(LONG, number).tobytes()
        library.free(addresses[-1])
    assert len(set(addresses)) < 10


MAP = (mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def test_munmap_and_mmap(pair: Pair) -> None:
    library = libc()
    address = library.mmap(None, LONG, *MAP, -1, 0)
    for number in range(5):
        at(address, LONG)[:] = pattern(LONG, number)
        assert sent(pair, at(address, LONG), LONG) == pattern(LONG, number).tobytes()
        assert library.munmap(address, LONG) == 0
        assert library.mmap(address, LONG, MAP[0], MAP[1] | 0x10, -1, 0) == address


def test_mremap(pair: Pair) -> None:
    """Other pages come to the addresses that were sent from."""
    library = libc()
    address, other = (library.mmap(None, LONG, *MAP, -1, 0) for _ in range(2))
    for number in range(4):
        at(address, LONG)[:] = pattern(LONG, number)
        at(other, LONG)[:] = pattern(LONG, number + 100)
        assert sent(pair, at(address, LONG), LONG) == pattern(LONG, number).tobytes()
        # MREMAP_MAYMOVE | MREMAP_FIXED: what is at `other` takes the place.
        assert library.mremap(other, LONG, LONG, 3, address) == address
        assert sent(pair, at(address, LONG), LONG) == pattern(LONG, number + 100).tobytes()
        other = library.mmap(None, LONG, *MAP, -1, 0)
    library.munmap(address, LONG)
    library.munmap(other, LONG)


def test_a_mapping_that_is_resized(pair: Pair) -> None:
    with mmap.mmap(-1, LONG, flags=MAP[1]) as mapping:
        for number, size in enumerate((LONG, 2 * LONG, LONG // 2, 4 * LONG)):
            mapping.resize(size)
            mapping[:] = pattern(size, number).tobytes()
            assert sent(pair, mapping, size) == mapping[:]


def test_receives_into_memory_that_moves(pair: Pair) -> None:
    room = bytearray(LONG)
    for number, size in product(range(2), (LONG, 3 * LONG)):
        del room[:]
        room.extend(bytes(size))
        client, server = pair
        receive = server.recv_into(room)
        with pytest.raises(BufferError):
            room.extend(b"more")
        client.send(pattern(size, number)).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == size
        assert bytes(room) == pattern(size, number).tobytes()
        del receive


def test_what_is_kept_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_VERBS_CACHE_COUNT", "4")
    for pair in connected():
        client, _ = pair
        arrays = [pattern(100_000, number) for number in range(8)]
        for _ in range(2):
            for each in arrays:
                assert sent(pair, each, 100_000) == each.tobytes()
        stats = client.stats()
        assert stats.registrations_reused == 0
        assert stats.registrations_dropped >= 12


def test_nothing_is_kept_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_VERBS_CACHE_COUNT", "0")
    for pair in connected():
        client, _ = pair
        out = pattern(LONG, 1)
        for _ in range(3):
            assert sent(pair, out, LONG) == out.tobytes()
        assert client.stats().registrations >= 3
        out.resize(2 * LONG, refcheck=False)


@pytest.mark.parametrize("size", [10, 5000, 100_000, LONG])
def test_receives_of_unknown_size_use_their_buffers_again(pair: Pair, size: int) -> None:
    client, server = pair
    made = []
    for number in range(20):
        receive = server.recv()
        client.send(pattern(size, number)).wait(timeout=TIMEOUT)
        assert bytes(receive.wait(timeout=TIMEOUT).data) == pattern(size, number).tobytes()
        made.append(counted(server)[0])
    assert made[0] == made[-1]


def test_receives_of_unknown_size_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_VERBS_RECEIVE_MEMORY", "8m")
    for client, server in connected():
        receives = [server.recv() for _ in range(50)]
        # Four of 2 MiB, and a slab of slots.
        assert counted(server)[0] <= 5
        for number in range(50):
            client.send(pattern(100_000, number))
        # In any order: none of them keeps a buffer that another waits for.
        for number in reversed(range(50)):
            assert bytes(receives[number].wait(timeout=TIMEOUT).data) == pattern(100_000, number).tobytes()


def test_reliable_datagrams_register_arrays_once() -> None:
    info = ofipy.getinfo(provider="verbs", ep_type="rdm")[0]
    fabrics = [ofipy.Fabric(info) for _ in range(2)]
    one, two = (fabric.domain(progress="auto").endpoint().enable() for fabric in fabrics)
    peer = one.insert(two.address)
    out, room = np.zeros(LONG, np.uint8), np.zeros(LONG, np.uint8)
    made = []
    for number in range(5):
        out[:] = pattern(LONG, number)
        receive = two.trecv_into(room, tag=number)
        one.tsend(out, peer, tag=number).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        assert np.array_equal(out, room)
        made.append((counted(one)[0], counted(two)[0]))
    assert made[0] == made[-1] != (0, 0)
    # With its array a registration goes, and what has its addresses next is another.
    for number in range(20):
        out, room = pattern(LONG, number), np.zeros(LONG, np.uint8)
        receive = two.trecv_into(room, tag=number)
        one.tsend(out, peer, tag=number).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        assert np.array_equal(out, room)
    for fabric in fabrics:
        fabric.close()


def test_a_fork_in_between(pair: Pair) -> None:
    """The child writes to what the device knows of, and the parent goes on with the pages that it had."""
    client, server = pair
    out, room = pattern(LONG, 1), np.zeros(LONG, np.uint8)
    region = server.register(np.zeros(LONG, np.uint8), access="remote_write")
    exchange(pair, out, room)
    receive = server.recv_into(room)
    child = os.fork()
    if child == 0:
        try:
            out[:], room[:], region.array[:] = 200, 201, 202
            ok = (out == 200).all() and (room == 201).all() and (region.array == 202).all()
            gc.collect()
            os._exit(0 if ok else 1)
        finally:
            os._exit(2)
    out[:] = pattern(LONG, 2)
    client.send(out, complete="transmit").wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    assert np.array_equal(room, pattern(LONG, 2))
    out[:] = pattern(LONG, 3)
    client.write(out, client.peer, region.remote, complete="delivery").wait(timeout=TIMEOUT)
    assert np.array_equal(region.array, pattern(LONG, 3))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    exchange(pair, out, room)
    assert np.array_equal(room, out)


WITHOUT_POWERS = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
LIMITED = """
import resource, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import ofipy
from connected_pair import connected
for client, server in connected():
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (4 << 20, 4 << 20))
    for what in (
        lambda: client.register(np.zeros(8 << 20, np.uint8)),
        lambda: client.empty(8 << 20),
        lambda: client.send(np.zeros(8 << 20, np.uint8)).wait(timeout=30),
        lambda: client.recv_into(np.zeros(8 << 20, np.uint8)).wait(timeout=30),
    ):
        try:
            what()
        except ofipy.NoMemory as error:
            print(error)
        else:
            raise SystemExit("it was registered")
    # What is kept for arrays gives way.
    arrays = [np.full(1 << 20, number, np.uint8) for number in range(8)]
    for each in arrays:
        room = np.zeros(1 << 20, np.uint8)
        receive = server.recv_into(room)
        client.send(each, complete="transmit").wait(timeout=30)
        receive.wait(timeout=30)
        assert np.array_equal(room, each)
    region = client.register(np.zeros(2 << 20, np.uint8))
    print("dropped", client.stats().registrations_dropped + server.stats().registrations_dropped)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give up what root may")
def test_too_little_memory_can_be_locked() -> None:
    """Without CAP_IPC_LOCK the limit holds."""
    done = subprocess.run(
        [*WITHOUT_POWERS, sys.executable, "-P", "-c", LIMITED, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *said, dropped = done.stdout.splitlines()
    assert len(said) == 4
    for line in said:
        assert "RLIMIT_MEMLOCK is 4096 KiB: raise it" in line
    assert int(dropped.split()[1]) > 0
