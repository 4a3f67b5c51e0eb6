# SPDX-License-Identifier: BSD-3-Clause
"""fork() beside threads that are anywhere within ofipy: the child opens anew, free of locks that nobody releases."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import faulthandler, os, signal, sys, threading, time, warnings
import ofipy
from ofipy._base import process_lock
from ofipy._completion import aio_counter
from ofipy._discovery import hooks
from ofipy.jobs import join

warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads: that is the point
provider = sys.argv[1]
HANGS = 60  # seconds; reached by a child that hangs only

def use():
    fabric = ofipy.Fabric(ofipy.getinfo(provider=provider)[0])
    with fabric, fabric.domain() as domain, ofipy.open(provider=provider) as ep:
        peer = ep.insert(ep.address)
        received = ep.trecv(tag=1)
        ep.tsend(b"to itself", peer, tag=1).wait(timeout=HANGS)
        assert bytes(received.wait(timeout=HANGS).data) == b"to itself"

def child_uses():
    pid = os.fork()
    if pid == 0:
        try:
            faulthandler.dump_traceback_later(HANGS - 5, exit=True)
            use()
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + HANGS
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hangs"
        time.sleep(0.002)
"""

HELD = """
for each in process_lock.every:
    held, done = threading.Event(), threading.Event()
    def hold():
        with each.lock:
            held.set()
            done.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    result = child_uses()
    done.set()
    thread.join()
    print(each.name, result)
with process_lock.every[0].lock:
    print("own", child_uses())
"""

BUSY = """
def everything():
    try:
        use()
        ofipy.parameters()
        for name in ("shm", "tcp", "link", "ofi", "verbs"):
            ofipy.getinfo(provider=name, explain=True)
        ofipy.open(provider=provider, hooks="trace:file=" + sys.argv[2] + ";profile").close()
    except ofipy.FabricError as error:
        print(error)

def loop():
    while not stop.is_set():
        everything()

stop = threading.Event()
threads = [threading.Thread(target=loop) for _ in range(2)]
for each in threads:
    each.start()
results = [child_uses() for _ in range(25)]
stop.set()
for each in threads:
    each.join()
print("results", set(results))
"""


def run(program: str, *arguments: str, before: str = "") -> str:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", before + PROGRAM + program, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_child_is_free_of_the_locks_that_threads_of_its_parent_hold() -> None:
    results = dict(line.rsplit(" ", 1) for line in run(HELD, "shm").splitlines())
    assert set(results) >= {
        "providers",
        "hooks",
        "the configuration file",
        "the job",
        "waits for counters",
        "own",
    }
    assert set(results.values()) == {"0"}


@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
def test_a_child_opens_anew_beside_threads_that_do(provider: str, tmp_path: Path) -> None:
    assert run(BUSY, provider, str(tmp_path / "trace.json")) == "results {0}\n"


# -------------------------------------------------------------------------------------------- nothing beside the lists

KIND = r"(?:pthread_(?:mutex|rwlock|spinlock|cond)_t|struct ofpi_lock|atomic_flag|mtx_t|sem_t)"
VARIABLE = re.compile(rf"^[ \t]*static (?:_Atomic )?{KIND} (\w+)|^{KIND} (\w+)", re.MULTILINE)
WITHIN = re.compile(rf"^static (?:_\w+\(\w+\) )?struct [^;{{]*\{{[^}}]*{KIND} [^}}]*\}} (\w+)", re.MULTILINE)
THE_LIST = "native/src/base/process_lock.c"
# Freed in the child, by a function that native/src/object/fork.c calls.
FREED = {"stripes": "ofpi_atomic_forked"}


FREE_AFTERWARDS = """
def free():
    busy = []
    def look():
        for each in process_lock.every:
            if each.lock.acquire(blocking=False):
                each.lock.release()
            else:
                busy.append(each.name)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return busy

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(len(free()))
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
"""

NESTED = """
import os, signal

def signalled():
    if signal.getsignal(signal.SIGUSR1) is handle:
        signal.raise_signal(signal.SIGUSR1)

def handle(number, frame):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print("within", flush=True)

# Registered before ofipy's, so it runs after it: the signal comes while the locks are held.
os.register_at_fork(before=signalled)
"""

INTERRUPTED = """
def handle(number, frame):
    raise KeyboardInterrupt

class Interrupted:
    # A lock for which a fork waits when the signal comes.
    def __init__(self, lock):
        self.lock = lock
    def acquire(self, *limits):
        signal.raise_signal(signal.SIGUSR1)
        raise AssertionError("not interrupted")
    def __getattr__(self, name):
        return getattr(self.lock, name)

signal.signal(signal.SIGUSR1, handle)
sys.unraisablehook = lambda told: print(told.exc_type.__name__)
held = process_lock._locks_to_hold
assert len(held) > 1
real = held[-1]
held[-1] = Interrupted(real)
code = fork()
held[-1] = real
print(code, free())
"""

COMES_WHILE_FORKING = """
# What registers hooks of fork, before the one below.
import _thread, functools, logging, os, random, signal, threading

def handle(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGUSR1, handle)
# Registered before ofipy's, so it runs before it. Its signal waits for the next instruction of Python's.
os.register_at_fork(after_in_parent=functools.partial(_thread.interrupt_main, signal.SIGUSR1))
"""

RELEASED = """
sys.unraisablehook = lambda told: print(told)
try:
    fork()
except KeyboardInterrupt:
    print("interrupted", free())
"""


def test_a_fork_of_a_handler_within_a_fork_leaves_no_lock_held() -> None:
    program = FREE_AFTERWARDS + "signal.signal(signal.SIGUSR1, handle)\nprint(fork(), free())"
    assert run(program, "none", before=NESTED) == "within\n0 []\n"


def test_a_signal_that_interrupts_a_fork_leaves_no_lock_held() -> None:
    assert run(FREE_AFTERWARDS + INTERRUPTED, "none").split() == ["KeyboardInterrupt", "0", "[]"]


def test_a_signal_that_comes_while_a_process_forks_leaves_no_lock_held() -> None:
    assert run(FREE_AFTERWARDS + RELEASED, "none", before=COMES_WHILE_FORKING) == "interrupted []\n"


def locks_in_c(source: str) -> Iterator[str]:
    """Names of what is a lock, or has one, and is there once a process."""
    for found in (*VARIABLE.finditer(source), *WITHIN.finditer(source)):
        yield next(filter(None, found.groups()))


def locks_in_python(source: str) -> Iterator[int]:
    """Lines in which a module or a class makes a lock as it is imported."""
    kinds = {
        "Lock",
        "RLock",
        "Condition",
        "Semaphore",
        "BoundedSemaphore",
        "Event",
        "Barrier",
        "allocate_lock",
    }
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            continue
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in kinds:
                yield node.lineno
        if not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def test_every_lock_of_the_process_in_c_is_in_the_list() -> None:
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for part in ("native", "providers", "ofipy")
        for path in (ROOT / part).rglob("*.[ch]")
    }
    registered = {
        name for source in sources.values() for name in re.findall(r"hold_in_fork\(&(\w+)\)", source)
    }
    found = {(path, name) for path, source in sources.items() for name in locks_in_c(source)}
    assert {name for _, name in found} >= {"own", "stripes", "trace_files_lock", "bridge_library_lock"}
    for path, name in sorted(found):
        assert path == THE_LIST or name in FREED or name in registered, (
            f"{path}: {name} is a lock of the whole process: make it one of native/src/base/process_lock.h, "
            "or, of a provider or a hook, register it by hold_in_fork()"
        )
    fork = sources["native/src/object/fork.c"]
    assert all(f"{function}();" in fork for function in FREED.values())


def test_every_lock_of_the_process_in_python_is_in_the_list() -> None:
    for part in ("ofipy", "fabtests"):
        for path in sorted((ROOT / part).rglob("*.py")):
            lines = list(locks_in_python(path.read_text()))
            assert not lines, f"{path.relative_to(ROOT)}:{lines[0]}: make it a process_lock()"


@pytest.mark.parametrize(
    "source",
    [
        "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;",
        "static struct ofpi_lock lock;",
        "int f(void)\n{\n    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n}",
        "pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;",
        "static atomic_flag lock = ATOMIC_FLAG_INIT;",
        "static struct {\n    struct ofpi_lock guard;\n    int value;\n} lock;",
        "static pthread_mutex_t lock[4];",
    ],
)
def test_the_judge_finds_a_new_lock_in_c(source: str) -> None:
    assert set(locks_in_c(source)) == {"lock"}
    assert not list(
        locks_in_c("struct thing {\n    pthread_mutex_t lock;\n};\nextern pthread_mutex_t other;")
    )


@pytest.mark.parametrize(
    "source",
    [
        "_lock = threading.Lock()",
        "from threading import RLock\n_lock = RLock()",
        "from _thread import allocate_lock\n_lock = allocate_lock()",
        "class A:\n    lock = threading.Condition()",
        "def f(lock=threading.Lock()): pass",
    ],
)
def test_the_judge_finds_a_new_lock_in_python(source: str) -> None:
    assert list(locks_in_python(source))
    assert not list(
        locks_in_python("class A:\n    def __init__(self):\n        self.lock = threading.Lock()")
    )
