# SPDX-License-Identifier: BSD-3-Clause
"""What RDM endpoints over a device do beside the conformance suite: see docs/explanation/verbs.md."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import ofipy
from ofipy._base.lifetime import CLOSE_TIMEOUT

TIMEOUT = 60
PEERS = 64
MEMORY_OF_A_PEER = 4096
LONG = 300_000
README = Path(__file__).parents[2] / "README.md"


def open_endpoint(**options: object) -> ofipy.Endpoint:
    return ofipy.open(provider="verbs", **options)  # type: ignore[arg-type]


@pytest.fixture
def ep() -> Iterator[ofipy.Endpoint]:
    with open_endpoint() as endpoint:
        yield endpoint


def pattern(size: int, seed: int = 1) -> np.ndarray:
    return ((np.arange(size, dtype=np.uint64) * 37 + seed) % 251).astype(np.uint8)


# ------------------------------------------------------------------------------------------------------------ two sides


def test_sizes_in_order(ep: ofipy.Endpoint) -> None:
    sizes = [0, 1, 255, 256, 257, 4000, 4096, 4097, 70_000, 9 << 20]
    with open_endpoint() as other:
        peer = ep.insert(other.address)
        rooms = [np.zeros(size, np.uint8) for size in sizes]
        receives = [other.trecv_into(room, tag=1) for room in rooms]
        ofipy.wait_all([ep.tsend(pattern(size, size), peer, tag=1) for size in sizes], timeout=TIMEOUT)
        for receive, room in zip(receives, rooms, strict=True):
            assert receive.wait(timeout=TIMEOUT).length == len(room)
            assert np.array_equal(room, pattern(len(room), len(room)))


def test_more_than_the_queues_hold(ep: ofipy.Endpoint) -> None:
    with open_endpoint() as other:
        peer = ep.insert(other.address)
        sends = [
            ep.tsend(number.to_bytes(4, "little") * (1 + number % 200), peer, tag=1) for number in range(1500)
        ]
        for number in range(1500):
            data = other.trecv(tag=1).wait(timeout=TIMEOUT).data
            assert bytes(data) == number.to_bytes(4, "little") * (1 + number % 200)
        ofipy.wait_all(sends, timeout=TIMEOUT)


def test_last_words_arrive() -> None:
    """What was sent leaves, although the endpoint closes at once."""
    with open_endpoint() as reader:
        for number in range(5):
            with open_endpoint() as writer:
                writer.tsend(b"last words", writer.insert(reader.address), tag=number).wait(timeout=TIMEOUT)
            assert bytes(reader.trecv(tag=number).wait(timeout=TIMEOUT).data) == b"last words"


def test_both_ends_of_a_path_that_close_at_once() -> None:
    """An endpoint that has sent to itself, or to another that closes too, waits for nobody who has left."""
    for _ in range(10):
        one, other = open_endpoint(progress="auto"), open_endpoint(progress="auto")
        peer = one.insert(other.address)
        for sender, to in (one, peer), (one, one.insert(one.address)):
            sender.tsend(b"last words", to, tag=1, complete="delivery").wait(timeout=TIMEOUT)
        closing = [threading.Thread(target=each.close) for each in (one, other)]
        started = time.monotonic()
        for each in closing:
            each.start()
        for each in closing:
            each.join()
        assert time.monotonic() - started < CLOSE_TIMEOUT


def test_a_key_of_the_program_s_own(ep: ofipy.Endpoint) -> None:
    with open_endpoint() as other:
        peer, memory = ep.insert(other.address), bytearray(100_000)
        region = other.register(memory, access="remote_write", key=0x1234)
        assert region.remote.key == 0x1234
        assert region.remote.offset == 0
        ep.write(pattern(50_000), peer, region.remote[10:50_010], complete="delivery").wait(timeout=TIMEOUT)
        assert memory[10:50_010] == pattern(50_000).tobytes()


def test_a_refused_access_and_what_follows(ep: ofipy.Endpoint) -> None:
    with open_endpoint() as other:
        peer, memory = ep.insert(other.address), bytearray(1000)
        region = other.register(memory, access="remote_write")
        wrong = ofipy.RemoteRegion(region.remote.key, region.remote.offset + 1000, 8, region.remote.access)
        with pytest.raises(ofipy.RemoteAccessError, match="remote access error"):
            ep.write(b"x" * 8, peer, wrong).wait(timeout=TIMEOUT)
        ep.write(b"y" * 8, peer, region.remote[:8], complete="delivery").wait(timeout=TIMEOUT)
        assert memory[:9] == b"y" * 8 + b"\0"


# ---------------------------------------------------------------------------------------------------------- many peers


class Mallinfo(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = tuple((name, ctypes.c_size_t) for name in names.split())


def allocated() -> int:
    """Bytes of malloc's that are in use."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
    found = mallinfo()
    return int(found.uordblks + found.hblkhd)


MANY = """
import sys
import ofipy

domain = ofipy.Fabric(ofipy.getinfo(provider="verbs", ep_type="rdm")[0]).domain(progress="auto")
peers = [domain.endpoint().enable() for _ in range(int(sys.argv[2]))]
for number, ep in enumerate(peers):
    ep.tsend(number.to_bytes(8, "little"), ep.insert(sys.argv[1]), tag=1).wait(timeout=60)
print("sent", flush=True)
sys.stdin.read()
"""


def test_many_peers_and_their_memory(ep: ofipy.Endpoint) -> None:
    def speak(count: int) -> int:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", MANY, str(ep.address), str(count)],
            env=os.environ | {"OFIPY_VERBS_PACKET_BUFFERS": "32"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        heard = {int.from_bytes(ep.trecv(tag=1).wait(timeout=200).data, "little") for _ in range(count)}
        assert heard == set(range(count))
        now = allocated()
        child.communicate(timeout=TIMEOUT)
        return now

    # What is made at the first one is not counted.
    few = speak(4)
    deadline = time.monotonic() + TIMEOUT
    while resources_of_pairs() and time.monotonic() < deadline:
        time.sleep(0.2)
    many = speak(PEERS)
    each = (many - few) / (PEERS - 4)
    print(f"{each:.0f} bytes for each of {PEERS} peers")
    assert each < MEMORY_OF_A_PEER


def resources_of_pairs() -> int:
    listing = subprocess.run(["rdma", "resource", "show"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\bqp (\d+)", listing)
    assert found is not None
    return int(found[1]) - 1  # that of the connection manager


def test_nothing_is_left() -> None:
    with open_endpoint():
        pass
    before = subprocess.run(["rdma", "resource", "show"], capture_output=True, text=True, check=True).stdout
    for _ in range(5):
        with open_endpoint() as hub:
            others = [open_endpoint() for _ in range(8)]
            for other in others:
                other.tsend(pattern(LONG), other.insert(hub.address), tag=1)
            for _ in others:
                assert len(hub.trecv(tag=1).wait(timeout=TIMEOUT).data) == LONG
            for other in others:
                other.close()
    after = subprocess.run(["rdma", "resource", "show"], capture_output=True, text=True, check=True).stdout
    assert after == before


# --------------------------------------------------------------------------------------------------------------- death

VICTIM = """
import os
import sys
import numpy as np
import ofipy

step, size = sys.argv[1], int(sys.argv[2])
ep = ofipy.open(provider="verbs")
region = ep.register(np.zeros(size, np.uint8), access="remote_read,remote_write")
print(str(ep.address), bytes(region.remote).hex(), flush=True)
survivor = ep.trecv(tag=1).wait(timeout=60).source
if step == "announced":
    ep.tsend(np.ones(size, np.uint8), survivor, tag=2)
elif step == "received":
    waiting = ep.trecv(tag=3)
elif step == "flood":
    for _ in range(200):
        ep.tsend(b"x" * 200, survivor, tag=2)
ep.tsend(b"ready", survivor, tag=9).wait(timeout=60)
sys.stdin.read()
"""

STEPS = (
    "idle",
    "announced",
    "received",
    "flood",
    "announced-to-it",
    "get",
    "read",
    "write",
    "atomic",
    "receive",
)


def begin(ep: ofipy.Endpoint, peer: ofipy.Peer, step: str, remote: ofipy.RemoteRegion) -> list[ofipy.Request]:
    """What is under way when the victim dies."""
    match step:
        case "announced-to-it":
            return [ep.tsend(pattern(LONG), peer, tag=7)]
        case "received":
            return [ep.tsend(pattern(LONG), peer, tag=3)]
        case "get":
            return [ep.trecv(tag=2)]
        case "read":
            return [ep.read(bytearray(remote.length), peer, remote) for _ in range(20)]
        case "write":
            return [ep.write(bytes(remote.length), peer, remote, complete="delivery") for _ in range(20)]
        case "atomic":
            return [ep.fetch_atomic(np.uint64(1), peer, remote[0:8], op="sum") for _ in range(50)]
        case "receive":
            return [ep.trecv(peer, tag=5)]
        case _:
            return []


@pytest.mark.parametrize("step", STEPS)
def test_a_peer_is_killed(ep: ofipy.Endpoint, step: str) -> None:
    """Everything ends, one way or the other, and the next one is spoken to as ever."""
    for delay in 0.0, 0.01:
        does = "announced" if step == "get" else step
        victim = subprocess.Popen(
            [sys.executable, "-P", "-c", VICTIM, does, str(LONG)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert victim.stdout is not None
        address, remote = victim.stdout.readline().split()
        peer = ep.insert(address)
        ep.tsend(b"hello", peer, tag=1)
        assert bytes(ep.trecv(tag=9).wait(timeout=TIMEOUT).data) == b"ready"
        requests = begin(ep, peer, step, ofipy.RemoteRegion.from_bytes(bytes.fromhex(remote)))
        time.sleep(delay)
        victim.send_signal(signal.SIGKILL)
        for request in requests:
            with suppress(ofipy.FabricError):
                request.wait(timeout=TIMEOUT)
            assert request.done
        victim.communicate()
        if step in ("idle", "flood"):
            request = ep.tsend(b"anybody?", peer, tag=1, complete="delivery")
            with pytest.raises(ofipy.FabricError):
                request.wait(timeout=TIMEOUT)
        ep.av.remove(peer)


# ------------------------------------------------------------------------------------------------------------ programs


def said_by(command: list[str], **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env=os.environ | {"OFIPY_PROVIDER": "verbs"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_pingpong_of_two_processes() -> None:
    command = [sys.executable, "-P", "-m", "ofipy", "pingpong", "--iterations", "20", "--sizes", "8,100k"]
    server = said_by([*command, "--listen"])
    time.sleep(8)
    client = said_by([*command, "localhost"])
    printed, _ = client.communicate(timeout=TIMEOUT)
    assert client.returncode == 0, printed
    assert re.search(r"100k|102400|100000", printed)
    printed, _ = server.communicate(timeout=TIMEOUT)
    assert server.returncode == 0, printed


def test_the_readme_s_example() -> None:
    server_text, client_text = re.findall(
        r"```python\n(# (?:server|client)\.py\n.*?)```", README.read_text(), re.DOTALL
    )
    server = said_by([sys.executable, "-P", "-c", server_text])
    time.sleep(8)
    client = said_by([sys.executable, "-P", "-c", client_text])
    printed, _ = client.communicate(timeout=TIMEOUT)
    assert client.returncode == 0, printed
    printed, _ = server.communicate(timeout=TIMEOUT)
    assert server.returncode == 0, printed
