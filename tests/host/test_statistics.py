# SPDX-License-Identifier: BSD-3-Clause
"""Statistics pages: who reads them, who cannot, what they say, and what is left when their process is gone."""

import ast
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy.statistics import Endpoint, Process, Reader, Snapshot
from ofipy.statistics.page import PAGE_SIZE, UnknownPage, read_endpoints, read_header

SENDER = """
import json, os, resource, sys, ofipy
from ofipy._base.record import Record
exec(sys.argv[2])
ep = ofipy.open(provider=sys.argv[1])
me = ep.insert(ep.address)
def exchange(*sizes):
    for size in sizes:
        received = ep.trecv(tag=1)
        ep.tsend(bytes(size), me, tag=1).wait(timeout=60)
        received.wait(timeout=60)
def tell():
    stats = ep.stats()
    print(json.dumps({name: getattr(stats, name) for name in stats.__match_args__}), flush=True)
exchange(0, 1, 8, 5000, 100_000, 3_000_000)
tell()
for line in sys.stdin:
    exec(line)
"""
SIZES = (0, 1, 8, 5000, 100_000, 3_000_000)
NOBODY = 65534
# What the domain counts on while somebody only looks.
GROWS = {"sleeps", "wakeups", "progress_calls"}


class Program:
    """A process that exchanges messages with itself, and says what it has counted."""

    def __init__(self, provider: str, first: str = "", **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", SENDER, provider, first],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        self.pid = self._process.pid

    def hear(self) -> Any:
        """The next line that it says."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def tell(self, line: str) -> None:
        """Have it execute a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def end(self, *, kill: bool = False) -> None:
        """Let it end, or kill it."""
        if kill:
            self._process.send_signal(signal.SIGKILL)
        self._process.communicate(timeout=60)


@pytest.fixture
def reader() -> Iterator[Reader]:
    with Reader() as opened:
        yield opened


def process_of(snapshot: Snapshot, pid: int) -> Process:
    return next(each for each in snapshot.processes if each.pid == pid)


def sums(endpoints: tuple[Endpoint, ...]) -> dict[str, int]:
    return {name: sum(endpoint.counters[name] for endpoint in endpoints) for name in endpoints[0].counters}


def page_path(pid: int) -> str:
    paths = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
    return next(path for path in paths if os.readlink(path).startswith("/memfd:ofipy-stats"))


@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
def test_pages_say_what_endpoints_say(reader: Reader, provider: str) -> None:
    program = Program(provider)
    said = program.hear()
    process = process_of(reader.scan(), program.pid)
    program.end()
    (endpoint,) = process.endpoints
    assert (process.program, process.job, process.rank, process.ended) == ("python", "", -1, False) or (
        process.program.startswith("python")
    )
    assert endpoint.provider == provider
    assert set(said) == set(endpoint.counters)
    for name in set(endpoint.counters) - GROWS:
        assert endpoint.counters[name] == said[name], name
    assert said["sends"] == said["receives"] == len(SIZES)
    assert said["bytes_sent"] == said["bytes_received"] == sum(SIZES)
    (peer,) = endpoint.peers
    assert (peer.messages_sent, peer.messages_received) == (len(SIZES), len(SIZES))
    assert (peer.bytes_sent, peer.bytes_received) == (sum(SIZES), sum(SIZES))
    assert peer.way == ("shm" if provider == "link" else provider)
    assert peer.address == endpoint.name != ""
    now = time.monotonic()
    assert now - 60 < endpoint.opened <= endpoint.last_progress <= now


@pytest.mark.parametrize("asleep", ["helper", "loop"])
def test_what_arrived_last_is_written_before_the_sleep(reader: Reader, asleep: str) -> None:
    """Nothing makes progress after the last message: what the page lacks then, it lacks for ever."""
    look = "import asyncio; asyncio.run(asyncio.wait_for(ep.trecv(tag=5), 60))" if asleep == "loop" else ""
    program = Program("tcp")
    program.hear()
    program.tell("print(json.dumps(str(ep.address)), flush=True)")
    with ofipy.open(provider="tcp") as ep:
        there = ep.insert(program.hear())
        program.tell(look)
        for count in range(1, 21):
            # The second message arrives shortly after the levels were written for the first.
            for _ in range(2):
                ep.tsend(b"unexpected", there, tag=3).wait(timeout=60)
            end = time.monotonic() + 60
            while True:
                (endpoint,) = process_of(reader.scan(), program.pid).endpoints
                if endpoint.counters["unexpected_messages"] == 2 * count:
                    break
                assert time.monotonic() < end, endpoint.counters
        if look:
            ep.tsend(b"end", there, tag=5).wait(timeout=60)
        program.end()


def test_messages_by_protocol_and_size(reader: Reader) -> None:
    program = Program("shm", 'os.environ["OFIPY_SHM_ATTACH"] = "no"')
    program.hear()
    (endpoint,) = process_of(reader.scan(), program.pid).endpoints
    program.end()

    def of(*sizes: int) -> tuple[dict[int, int], int]:
        found: dict[int, int] = {}
        for size in sizes:
            found[max(size, 1).bit_length() - 1] = found.get(max(size, 1).bit_length() - 1, 0) + 1
        return found, sum(sizes)

    assert {
        key: ({place: count for place, count in enumerate(each.counts) if count}, each.bytes)
        for key, each in endpoint.messages.items()
    } == {
        ("sent", "eager"): of(0, 1, 8),
        ("sent", "bounce"): of(5000),
        ("sent", "announced"): of(100_000, 3_000_000),
        ("received", "eager"): of(0, 1, 8),
        ("received", "bounce"): of(5000),
        ("received", "pipelined"): of(100_000, 3_000_000),
    }


def test_closed_endpoints_stay_in_the_sum(reader: Reader) -> None:
    program = Program("tcp")
    program.hear()
    program.tell(
        "ep.close(); ep = ofipy.open(provider='tcp'); me = ep.insert(ep.address); exchange(8); tell()"
    )
    said = program.hear()
    endpoints = process_of(reader.scan(), program.pid).endpoints
    program.end()
    assert [(each.number, each.name == "") for each in endpoints] == [(0, True), (2, False)]
    assert sums(endpoints)["sends"] == len(SIZES) + said["sends"]
    assert sums(endpoints)["peers_up"] == 1
    assert all(endpoints[0].counters[name] == 0 for name in ("peers_up", "pending", "posted_receives"))


def test_the_last_values_of_a_killed_process(reader: Reader) -> None:
    program = Program("shm")
    program.hear()
    reader.scan()
    program.tell("exchange(8, 8); tell()")
    said = program.hear()
    program.end(kill=True)
    process = process_of(reader.scan(), program.pid)
    assert process.ended
    assert {name: sums(process.endpoints)[name] for name in ("sends", "bytes_received")} == {
        name: said[name] for name in ("sends", "bytes_received")
    }
    assert all(each.pid != program.pid for each in reader.scan().processes)


def test_nobody_else_writes() -> None:
    program = Program("shm")
    said = program.hear()
    descriptor = os.open(page_path(program.pid), os.O_RDWR)
    with pytest.raises(PermissionError):
        mmap.mmap(descriptor, PAGE_SIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    with pytest.raises(PermissionError):
        os.pwrite(descriptor, b"x", 0)
    for size in (0, 2 * PAGE_SIZE):
        with pytest.raises(PermissionError):
            os.truncate(descriptor, size)
    with mmap.mmap(descriptor, PAGE_SIZE, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
        assert mapped[:8] == b"ofipystp"
    os.close(descriptor)
    program.tell("tell()")
    assert program.hear()["sends"] == said["sends"]
    program.end()


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_another_user_is_refused() -> None:
    program = Program("shm")
    program.hear()
    path = page_path(program.pid)
    pid = os.fork()
    if pid == 0:
        result = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            snapshot = Reader().scan()
            seen = any(each.pid == program.pid for each in snapshot.processes)
            try:
                os.open(path, os.O_RDONLY)
            except PermissionError:
                result = 0 if not seen and snapshot.unreadable else 2
        finally:
            os._exit(result)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    program.end()


def test_forked_children_count_for_themselves(reader: Reader) -> None:
    program = Program("tcp")
    before = program.hear()
    program.tell(
        "exec('import time\\nparent, pid = os.getpid(), os.fork()\\nif not pid:\\n"
        ' ep = ofipy.open(provider="tcp"); me = ep.insert(ep.address)\\n exchange(8); tell()\\n'
        # It does not read what the parent is told, and ends with the parent at the latest.
        " while os.getppid() == parent: time.sleep(0.05)\\n os._exit(0)')"
    )
    of_child = program.hear()
    program.tell("print(pid, flush=True); tell()")
    child = program.hear()
    after = program.hear()
    snapshot = reader.scan()
    assert after["sends"] == before["sends"] == sums(process_of(snapshot, program.pid).endpoints)["sends"]
    assert of_child["sends"] == 1 == sums(process_of(snapshot, child).endpoints)["sends"]
    os.kill(child, signal.SIGKILL)
    program.end()


def test_a_child_leaves_its_parents_page_alone(reader: Reader) -> None:
    """It has neither the mapping nor the descriptor, and its calls are refused without touching either."""
    program = Program("shm")
    before = program.hear()
    program.tell(
        "exec('import subprocess\\npid = os.fork()\\nif not pid:\\n"
        ' maps = open("/proc/self/maps").read()\\n'
        ' links = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if n.isdigit()'
        ' and os.path.islink(f"/proc/self/fd/{n}")]\\n'
        " try: ep.stats()\\n except ofipy.ForkedError: refused = True\\n"
        ' print(json.dumps(["ofipy-stats" in maps, any("ofipy-stats" in l for l in links), refused]), flush=True)\\n'
        " os._exit(0)\\nos.waitpid(pid, 0)')"
    )
    assert program.hear() == [False, False, True]
    program.tell("tell()")
    assert program.hear()["sends"] == before["sends"]
    program.end()


@pytest.mark.parametrize(
    ("first", "environment"),
    [
        ("", {"OFIPY_STATS": "no"}),
        # Files, also those in memory, may not be made so long.
        ("resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))", {}),
    ],
    ids=["off", "no memory file"],
)
def test_ordinary_memory_counts_as_well(reader: Reader, first: str, environment: dict[str, str]) -> None:
    program = Program("tcp", first, **environment)
    said = program.hear()
    assert all(each.pid != program.pid for each in reader.scan().processes)
    program.end()
    assert (said["sends"], said["bytes_received"]) == (len(SIZES), sum(SIZES))


RANK = """
import os, ofipy
from ofipy.statistics import Reader
with ofipy.job() as job, ofipy.open() as ep:
    pids = [int(each) for each in job.exchange(str(os.getpid()).encode())]
    found = {each.pid: each for each in Reader().scan().processes}
    if job.rank == 0:
        print([(found[pid].job, found[pid].rank) for pid in pids], flush=True)
    job.barrier()
"""


def test_ranks_of_a_job_are_named() -> None:
    run = [sys.executable, "-P", "-m", "ofipy", "run", "-n", "2", sys.executable, "-P", "-c", RANK]
    told = subprocess.run(run, capture_output=True, text=True, check=True, timeout=120).stdout
    (first, zero), (second, one) = ast.literal_eval(told[told.index("[(") :])
    assert first == second != ""
    assert (zero, one) == (0, 1)


FAKES = """
import ctypes, fcntl, os, sys
descriptor = os.memfd_create("ofipy-stats", os.MFD_ALLOW_SEALING)
os.truncate(descriptor, int(sys.argv[1]))
os.pwrite(descriptor, bytes.fromhex(sys.argv[2]), 0)
fcntl.fcntl(descriptor, 1033, int(sys.argv[3]))
print(1, flush=True)
sys.stdin.read()
"""
SEAL_SHRINK = 2
GOOD_HEADER = b"ofipystp" + (2).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("size", "header", "seals"),
    [
        (PAGE_SIZE, b"ofipystp" + (3).to_bytes(4, "little"), SEAL_SHRINK),
        (PAGE_SIZE, b"something else", SEAL_SHRINK),
        (PAGE_SIZE, GOOD_HEADER, 0),
        (PAGE_SIZE - 4096, GOOD_HEADER, SEAL_SHRINK),
        (0, b"", SEAL_SHRINK),
    ],
    ids=["another version", "no page", "can shrink", "short", "empty"],
)
def test_a_page_that_is_none(reader: Reader, size: int, header: bytes, seals: int) -> None:
    fake = [sys.executable, "-c", FAKES, str(size), header.hex(), str(seals)]
    for _ in range(20):  # others that cannot be read come and go meanwhile
        before = reader.scan().unreadable
        with subprocess.Popen(fake, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            snapshot = reader.scan()
            assert all(each.pid != process.pid for each in snapshot.processes)
            process.communicate()
        if snapshot.unreadable > before:
            return
    pytest.fail("what is no page is not counted")


def test_bytes_of_any_kind_are_read() -> None:
    rng = random.Random(7)
    page = rng.randbytes(PAGE_SIZE)
    with pytest.raises(UnknownPage):
        read_header(page)
    for _ in range(4):
        copy = bytearray(rng.randbytes(PAGE_SIZE))
        for block in range(16):  # entries that are in use
            for place in range(16):
                at = 4096 + block * 11 * 4096 + 10 * 4096 + place * 256
                copy[at : at + 4] = rng.choice((0, 1, 2, 3, 1 << 31)).to_bytes(4, "little")
        assert all(len(each.provider) <= 28 and len(each.name) <= 88 for each in read_endpoints(bytes(copy)))


def test_nothing_of_it_is_imported_with_ofipy() -> None:
    code = "import sys, ofipy; sys.exit(any(name.startswith('ofipy.statistics') for name in sys.modules))"
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=60)


def test_the_reader_holds_no_descriptor_of_an_ended_process(reader: Reader) -> None:
    program = Program("tcp")
    program.hear()
    page = os.stat(page_path(program.pid)).st_ino

    def held() -> int:
        """Descriptors of this page: the reader has those of other programs too, which come and go."""
        links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
        pages = [link for link in links if os.path.islink(link) and "ofipy-stats" in os.readlink(link)]
        return sum(link.stat().st_ino == page for link in pages)

    assert held() == 0
    reader.scan()
    assert held() == 1
    program.end()
    reader.scan()
    assert held() == 0
    assert ofipy.__version__
