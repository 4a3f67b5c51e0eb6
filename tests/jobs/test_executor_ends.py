# SPDX-License-Identifier: BSD-3-Clause
"""How an executor ends: shutdown, the interpreter's end, Ctrl-C, forks."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import executor_tasks as tasks
import pytest
from meeting import Meeting
from started import SECONDS, is_running, wait_until

import ofipy

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("shared_memory")]

HEAD = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import executor_tasks as tasks
import ofipy
"""


def run(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(HEAD + textwrap.dedent(text))
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS)


def test_no_task_after_shutdown() -> None:
    executor = ofipy.Executor(1)
    future = executor.submit(tasks.square, 2)
    executor.shutdown(wait=False)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            executor.submit(tasks.square, 3)
        executor.shutdown()
    assert future.result(timeout=0) == 4
    assert "shut down" in repr(executor)
    assert not executor._pool._children.running


def test_shutdown_waits_for_what_was_submitted() -> None:
    with ofipy.Executor(1) as executor:
        futures = [executor.submit(tasks.square, number) for number in range(200)]
    assert [future.result(timeout=0) for future in futures] == [number**2 for number in range(200)]


def test_shutdown_that_cancels(meeting: Callable[[], Meeting]) -> None:
    executor = ofipy.Executor(1)
    first = meeting()
    running = first.submit(executor)
    first.pid()
    waiting = [executor.submit(tasks.square, number) for number in range(100)]
    executor.shutdown(wait=False, cancel_futures=True)
    wait_until(lambda: all(future.cancelled() for future in waiting))
    first.end()
    executor.shutdown()
    assert running.result(timeout=0)


def test_one_that_is_dropped_ends_its_tasks_and_workers() -> None:
    executor = ofipy.Executor(1)
    future, pool = executor.submit(tasks.square, 7), executor._pool
    del executor
    gc.collect()
    assert future.result(timeout=60) == 49
    wait_until(lambda: not pool._children.running and not pool._thread.is_alive())


def test_the_end_of_the_interpreter_waits_for_tasks(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        if __name__ == "__main__":
            executor = ofipy.Executor(2)
            for number in range(50):
                executor.submit(tasks.square, number).add_done_callback(lambda future: print(future.result()))
        """,
    )
    assert ran.returncode == 0, ran.stderr
    assert sorted(map(int, ran.stdout.split())) == [number**2 for number in range(50)]
    assert ran.stderr == ""


@pytest.mark.parametrize("end", ["raise SystemExit(3)", "raise LookupError", "pass"])
def test_the_end_of_the_interpreter_with_idle_workers(tmp_path: Path, end: str) -> None:
    ran = run(
        tmp_path,
        f"""
        if __name__ == "__main__":
            executors = [ofipy.Executor(1), ofipy.Executor(listen=0)]
            print(executors[0].submit(tasks.pid).result())
            {end}
        """,
    )
    assert ran.returncode == {"raise SystemExit(3)": 3, "raise LookupError": 1, "pass": 0}[end]
    wait_until(lambda: not is_running(ran.stdout.strip()))


AT_THE_END = """
if __name__ == "__main__":
    executor = ofipy.Executor(1{listen})
    executor.submit(tasks.meet, {there!r}, "meeting-0")
    executor.submit(tasks.square, 1)
    print(os.getpid(), flush=True)
"""
IN_A_RESULT = """
if __name__ == "__main__":
    with ofipy.Executor(1) as executor:
        future = executor.submit(tasks.meet, {there!r}, "meeting-0")
        executor.submit(tasks.square, 1)
        try:
            future.result()
        finally:
            print(os.getpid(), flush=True)
"""


@pytest.mark.parametrize("listen", ["", ", listen=0"])
def test_an_interrupt_ends_the_wait_at_the_end(
    tmp_path: Path, meeting: Callable[[], Meeting], listen: str
) -> None:
    endless = meeting()
    script = tmp_path / "script.py"
    script.write_text(HEAD + AT_THE_END.format(listen=listen, there=str(tmp_path)))
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        worker = endless.pid()
        process.stdout.readline()
        wait_until(lambda: is_at_exit(process.pid))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        wait_until(lambda: not is_running(worker))
    finally:
        process.kill()
        process.communicate()


def is_at_exit(process: int) -> bool:
    """Whether the main thread sleeps, which it does behind its last line only while it waits for the tasks."""
    return Path(f"/proc/{process}/task/{process}/wchan").read_text().startswith("futex")


def test_an_interrupt_cancels_what_has_not_begun(tmp_path: Path, meeting: Callable[[], Meeting]) -> None:
    """The first one, in the middle of a ``with``, waits for what runs; the second one does not."""
    endless = meeting()
    script = tmp_path / "script.py"
    script.write_text(HEAD + IN_A_RESULT.format(there=str(tmp_path)))
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        worker = endless.pid()
        wait_until(lambda: is_at_exit(process.pid))
        process.send_signal(signal.SIGINT)
        process.stdout.readline()
        assert is_running(worker)
        wait_until(lambda: is_at_exit(process.pid))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
        assert "KeyboardInterrupt" in errors
        wait_until(lambda: not is_running(worker))
    finally:
        process.kill()
        process.communicate()


def test_a_forked_child() -> None:
    with ofipy.Executor(1) as executor:
        child = multiprocessing.get_context("fork").Process(target=use_in_child, args=(executor,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert executor.submit(tasks.square, 8).result(timeout=60) == 64


def use_in_child(executor: ofipy.Executor) -> None:
    for use in (lambda: executor.submit(tasks.square, 1), executor.bootup, executor.shutdown):
        try:
            use()
        except ofipy.ForkedError:
            continue
        os._exit(1)
    with ofipy.Executor(1) as own:
        assert own.submit(tasks.square, 9).result(timeout=60) == 81
