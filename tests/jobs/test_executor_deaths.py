# SPDX-License-Identifier: BSD-3-Clause
"""An executor whose workers die, leave and join; and workers whose executor dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path

import executor_tasks as tasks
import pytest
from meeting import Meeting
from started import is_running, wait_until

import ofipy

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("shared_memory")]

WORKER = (sys.executable, "-m", "ofipy", "worker")


class Workers:
    """Processes of ``ofipy worker``."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, executor: ofipy.Executor, *options: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*WORKER, str(executor.address), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


# workers die


def test_the_death_of_a_worker_ends_its_task_alone(meeting: Callable[[], Meeting]) -> None:
    with ofipy.Executor(2) as executor:
        lost, safe = meeting(), meeting()
        dying = lost.submit(executor)
        victim = lost.pid()
        living = safe.submit(executor)
        safe.pid()
        waiting = executor.submit(tasks.pid)
        os.kill(victim, signal.SIGKILL)
        error = dying.exception(timeout=60)
        assert isinstance(error, ofipy.WorkerLost)
        assert isinstance(error, ofipy.PeerLost)
        assert error.task is not None
        assert error.task.startswith("meet (task ")
        assert error.worker is not None
        assert error.worker.startswith(f"{victim} on ")
        assert "retries" in str(error)
        assert isinstance(error.__cause__, ofipy.PeerLost)
        wait_until(lambda: executor.num_workers == 1)
        safe.end()
        survivor = living.result(timeout=60)
        assert waiting.result(timeout=60) == survivor


def test_a_task_runs_again_on_another_worker(meeting: Callable[[], Meeting]) -> None:
    with ofipy.Executor(2, retries=1) as executor:
        again = meeting()
        future = again.submit(executor)
        victim = again.pid()
        again.forget_pid()
        os.kill(victim, signal.SIGKILL)
        other = again.pid()
        assert other != victim
        assert future.running()
        again.end()
        assert future.result(timeout=60) == other


def test_a_task_is_lost_after_its_last_retry(tmp_path: Path) -> None:
    folder = tmp_path / "begun"
    folder.mkdir()
    with ofipy.Executor(4, retries=2) as executor:
        error = executor.submit(tasks.die_until, str(folder), 10).exception(timeout=60)
        assert isinstance(error, ofipy.WorkerLost)
        assert len(list(folder.iterdir())) == 3
        assert executor.submit(tasks.square, 3).result(timeout=60) == 9


def test_the_last_death_ends_what_waits(meeting: Callable[[], Meeting]) -> None:
    with ofipy.Executor(1, retries=3) as executor:
        running = meeting()
        futures = [
            running.submit(executor),
            executor.submit(tasks.square, 1),
            executor.submit(tasks.square, 2),
        ]
        os.kill(running.pid(), signal.SIGKILL)
        for future in futures:
            error = future.exception(timeout=60)
            assert isinstance(error, ofipy.WorkerLost)
            assert "no worker is left" in str(error)
        for refused in (lambda: executor.submit(tasks.square, 3), lambda: executor.bootup(timeout=60)):
            with pytest.raises(BrokenExecutor, match="no worker is left"):
                refused()
        assert executor.num_workers == 0


def test_workers_that_cannot_begin(tmp_path: Path) -> None:
    """The script that makes an executor without asking whether it is the main one."""
    script = tmp_path / "script.py"
    script.write_text("import ofipy\nwith ofipy.Executor(2) as executor:\n    executor.bootup(timeout=60)\n")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert "NotSupported" in ran.stderr
    assert 'if __name__ == "__main__":' in ran.stderr
    assert "BrokenExecutor" in ran.stderr
    assert "ended with status 1" in ran.stderr


# workers join and leave


def test_workers_join_later(workers: Workers, meeting: Callable[[], Meeting]) -> None:
    with ofipy.Executor(listen=0) as executor:
        assert executor.num_workers == 0
        first = meeting()
        future = first.submit(executor)
        assert not future.running()
        workers.start(executor)
        assert executor.bootup(timeout=60).num_workers == 1
        victim = first.pid()
        os.kill(victim, signal.SIGKILL)
        assert isinstance(future.exception(timeout=60), ofipy.WorkerLost)
        # What is submitted while there is no worker waits for the next one.
        waiting = executor.submit(tasks.pid)
        process = workers.start(executor, "--name", "the second")
        assert waiting.result(timeout=60) == process.pid
        second = meeting()
        lost = second.submit(executor)
        os.kill(second.pid(), signal.SIGKILL)
        error = lost.exception(timeout=60)
        assert isinstance(error, ofipy.WorkerLost)
        assert error.worker == "the second"


def test_an_executor_ends_its_workers(workers: Workers) -> None:
    with ofipy.Executor(1, listen=0) as executor:
        processes = [workers.start(executor) for _ in range(2)]
        assert executor.bootup(workers=3, timeout=60).num_workers == 3
    for process in processes:
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_busy_worker_finishes_its_task_and_leaves(
    workers: Workers, meeting: Callable[[], Meeting], number: signal.Signals
) -> None:
    with ofipy.Executor(listen=0) as executor:
        process = workers.start(executor)
        last = meeting()
        future, behind = last.submit(executor), executor.submit(tasks.pid)
        assert last.pid() == process.pid
        process.send_signal(number)
        last.end()
        assert future.result(timeout=60) == process.pid
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0
        assert executor.num_workers == 0
        assert not behind.done()
        other = workers.start(executor)
        assert behind.result(timeout=60) == other.pid


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_worker_leaves(workers: Workers, number: signal.Signals) -> None:
    with ofipy.Executor(1, listen=0) as executor:
        process = workers.start(executor)
        executor.bootup(workers=2, timeout=60)
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0
        assert executor.num_workers == 1
        assert executor.submit(tasks.square, 4).result(timeout=60) == 16


def test_no_task_is_lost_while_workers_come_and_go(workers: Workers) -> None:
    """Whatever a leaving worker was sent and had not begun is given to another one."""
    with ofipy.Executor(1, listen=0) as executor:
        futures = [executor.submit(tasks.square, number) for number in range(3000)]
        for _ in range(4):
            process = workers.start(executor)
            executor.bootup(workers=2, timeout=60)
            process.terminate()
            assert process.wait(timeout=60) == 0
        assert [future.result(timeout=60) for future in futures] == [number**2 for number in range(3000)]


def test_a_second_interrupt_ends_the_worker_at_once(workers: Workers, meeting: Callable[[], Meeting]) -> None:
    with ofipy.Executor(listen=0) as executor:
        process = workers.start(executor)
        endless = meeting()
        future = endless.submit(executor)
        endless.pid()
        process.terminate()
        wait_until(lambda: "SigCgt" in status(process.pid) and not catches(process.pid, signal.SIGTERM))
        process.terminate()
        assert process.wait(timeout=60) == -signal.SIGTERM
        assert isinstance(future.exception(timeout=60), ofipy.WorkerLost)


def status(process: int) -> str:
    return Path(f"/proc/{process}/status").read_text()


def catches(process: int, number: signal.Signals) -> bool:
    """Whether the process has a handler of its own for a signal."""
    return bool(int(status(process).partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1)


# the executor dies

SCRIPT = """
import os, sys
sys.path.insert(0, {folder!r})
import executor_tasks as tasks
import ofipy

if __name__ == "__main__":
    executor = ofipy.Executor(2, listen=0)
    executor.bootup(workers=3)
    futures = [executor.submit(tasks.meet, {there!r}, name) for name in ("meeting-0", "meeting-1")]
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_death_of_the_executor_ends_its_workers(
    tmp_path: Path, meeting: Callable[[], Meeting], number: signal.Signals
) -> None:
    busy = [meeting(), meeting()]
    script = tmp_path / "script.py"
    text = SCRIPT.format(folder=str(Path(__file__).parent), there=str(tmp_path))
    script.write_text(
        text.replace("    executor.bootup", "    print(executor.address, flush=True)\n    executor.bootup")
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    third = subprocess.Popen([*WORKER, address], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        pids = [third.pid, *(each.pid() for each in busy)]
        children = [
            int(each) for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        ]
        process.send_signal(number)
        process.wait(timeout=60)
        wait_until(lambda: not any(map(is_running, {*pids, *children})))
        _, errors = third.communicate(timeout=60)
        assert third.returncode == 1
        assert "the executor is lost" in errors
    finally:
        process.kill()
        process.communicate()
        third.kill()
        third.wait()
