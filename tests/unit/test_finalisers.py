# SPDX-License-Identifier: BSD-3-Clause
"""What nobody closed goes without a word to standard error: in a forked child, without memory, at the end."""

import subprocess
import sys

import pytest

import ofipy
from tests.command import environment_without_coverage

OBJECTS = """
import gc, os, resource, sys
import ofipy
ep = ofipy.open(provider=sys.argv[1])
me = ep.insert(ep.address)
kept = [ep.empty(100), ep.register(bytearray(10)), ep.alias(), ep.domain.counter(), ep.domain.event_queue(),
        ep.domain.receive_context(), ep.cq.batch(4), ep.domain.av()]
"""
REQUESTS = """
kept += [ep.trecv_into(bytearray(8), tag=1), ep.trecv(tag=2), ep.prepare_trecv(bytearray(8), tag=3).start(),
         ep.trecv_many(bytearray(100), tag=4)]
kept += [ep.trecv_into(bytearray(8), tag=5) for _ in range(3000)]
"""
IN_A_CHILD = """
child = os.fork()
if child:
    sys.exit(os.waitpid(child, 0)[1])
kept.clear()
del ep, me
gc.collect()
"""
WITHOUT_MEMORY = """
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 20),) * 2)
eaten = []
def eat():
    piece = 1 << 20
    while piece > 16:
        try:
            eaten.append(bytearray(piece))
        except MemoryError:
            piece //= 2
eat()
kept.clear()
eat()
del ep, me
gc.collect()
eaten.clear()
"""
HELPER = """
import resource, sys
import ofipy
fabric = ofipy.Fabric(ofipy.getinfo(provider=sys.argv[1])[0])
kept = [fabric.domain(progress="auto")]
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20),) * 2)
try:
    while True:
        kept.append(fabric.domain(progress="auto"))
except ofipy.NoMemory as error:
    print(error)
kept.append(fabric.domain(progress="manual"))
"""
LOCKED = """
import sys, threading, time
import ofipy
ep = ofipy.open(provider=sys.argv[1])
array = ep.empty(100)
holder = threading.Thread(target=ep.domain._memory._lock.acquire)
holder.start()
holder.join()
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
"""


def run(script: str, provider: str) -> tuple[str, str]:
    """Both outputs of a program that ends well."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", script, provider],
        env=environment_without_coverage(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(params=["shm", "tcp"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("where", [IN_A_CHILD, WITHOUT_MEMORY], ids=["fork", "memory"])
@pytest.mark.parametrize("requests", ["", REQUESTS], ids=["objects", "requests"])
def test_nothing_is_said(provider: str, where: str, requests: str) -> None:
    assert run(OBJECTS + requests + where, provider) == ("", "")


def test_a_helper_thread_that_cannot_start_names_the_limits(provider: str) -> None:
    said, _ = run(HELPER, provider)
    assert "cannot start the helper thread: a limit on threads (RLIMIT_NPROC" in said
    assert "RLIMIT_AS" in said
    assert 'progress "manual" needs no thread' in said
    assert not issubclass(ofipy.NoMemory, BlockingIOError)


def test_an_array_outlives_a_daemon_thread_that_holds_its_lock(provider: str) -> None:
    run(LOCKED, provider)
