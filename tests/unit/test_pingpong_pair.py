# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of worker processes: calls, failures, deaths, and that nothing outlives its parent."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from ofipy.pingpong.pair import Pair, PairError, PairTimeout
from ofipy.pingpong.pipe import Failure, pick_cores

TARGET = """
import mmap, os, threading

class Target:
    def __init__(self, first, *, word="none"):
        if word == "refuse":
            raise ValueError("refused")
        self.first, self.word = first, word
    def state(self):
        return self.first, self.word, os.getpid(), os.sched_getaffinity(0)
    def add(self, number, *, more=0):
        return number + more
    def fail_second(self):
        if not self.first:
            raise KeyError("broken")
        threading.Event().wait()
    def die_second(self):
        if not self.first:
            os._exit(3)
        threading.Event().wait()
    def leave(self, stranger):
        names = [f"{os.getpid()}:7:7", f"{os.getpid()}:7", f"mpich_shm_{os.getpid()}_0", stranger]
        for name in names:
            with open(f"/dev/shm/{name}", "ab") as file:
                file.truncate(4096)
        with open(f"/dev/shm/{names[2]}") as file:
            self.mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        return names
    def hang(self):
        threading.Event().wait()
    def close(self):
        pass
"""

# Starts a pair, prints the workers' process ids and is then killed.
ORPHAN_MAKER = """
from ofipy.pingpong.pair import Pair
from ofipy.pingpong.pipe import pick_cores
pair = Pair("pair_target:Target", cores=pick_cores())
print(*(state[2] for state in pair.call("state")), flush=True)
pair.call("hang")
"""


@pytest.fixture(autouse=True)
def target_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pair_target.py").write_text(TARGET)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    )


def make_pair(**options: str) -> Pair:
    return Pair("pair_target:Target", cores=pick_cores(), **options)


def wait_gone(pid: int) -> None:
    """Return when the process has ended; the descriptor is readable then."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    import select

    try:
        assert select.select([descriptor], [], [], 20)[0], f"process {pid} lives on"
    finally:
        os.close(descriptor)


def test_both_workers_answer_pinned_to_their_cores() -> None:
    with make_pair(word="hello") as pair:
        first, second = pair.call("state")
        assert first[:2] == (True, "hello")
        assert second[:2] == (False, "hello")
        assert first[2] != second[2]
        assert (first[3], second[3]) == tuple({core} for core in pick_cores())
        assert pair.call("add", 1, more=2) == [3, 3]
        assert pair.call_each("add", [(1,), (2,)]) == [1, 2]


def test_many_workers_share_the_second_core() -> None:
    cores = pick_cores()
    with Pair("pair_target:Target", cores=cores, count=4) as pair:
        states = pair.call("state")
        assert [state[0] for state in states] == [True, False, False, False]
        assert [state[3] for state in states] == [{cores[0]}, *[{cores[1]}] * 3]


def test_closing_ends_the_workers() -> None:
    with make_pair() as pair:
        pids = [state[2] for state in pair.call("state")]
    for pid in pids:
        assert not Path(f"/proc/{pid}").exists()


def test_one_failure_ends_the_pair_although_the_other_waits() -> None:
    pair = make_pair()
    with pytest.raises(PairError, match="broken") as caught:
        pair.call("fail_second")
    assert caught.value.kind == "KeyError"
    assert caught.value.exit_code == 1
    with pytest.raises(PairError, match="have ended"):
        pair.call_each("add", [(1,), (2,)])  # nobody is left


def test_a_death_is_noticed() -> None:
    pair = make_pair()
    with pytest.raises(PairError, match="died"):
        pair.call("die_second")


def test_a_worker_that_does_not_answer_is_a_timeout() -> None:
    pair = make_pair()
    with pytest.raises(PairTimeout, match=r"0\.2 s") as caught:
        pair.call("hang", timeout=0.2)
    assert caught.value.exit_code == 124


def test_a_refusal_at_start_comes_through() -> None:
    with pytest.raises(PairError, match="refused") as caught:
        make_pair(word="refuse")
    assert caught.value.kind == "ValueError"


def test_a_launcher_that_fails_is_noticed() -> None:
    with pytest.raises(PairError, match="ended while starting"):
        Pair("pair_target:Target", cores=pick_cores(), launcher=["false"])


def test_workers_die_with_a_killed_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", ORPHAN_MAKER], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.kill()
    for pid in pids:
        wait_gone(pid)


def test_what_libraries_leave_of_killed_workers_is_removed() -> None:
    """Files that libfabric and MPICH name after the workers or their job, and no others."""
    folder, stranger = Path("/dev/shm"), f"mpich_shm_{secrets.token_hex(8)}_0"
    pair = make_pair()
    files: list[Path] = []
    try:
        files += [folder / name for names in pair.call("leave", stranger) for name in names]
        with pytest.raises(PairTimeout):
            pair.call("hang", timeout=0.1)
        assert {file.name for file in files if file.exists()} == {files[1].name, files[5].name, stranger}
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def test_a_failure_has_text_and_exit_code() -> None:
    class Refused(Exception):
        code = 61

    assert Failure.of(KeyError("x")) == Failure("KeyError", "KeyError: 'x'", 1)
    assert Failure.of(TimeoutError("late")) == Failure("TimeoutError", "late", 124)
    assert Failure.of(Refused("no"), plain=(Refused,)) == Failure("Refused", "no", 61)
