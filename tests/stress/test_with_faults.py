# SPDX-License-Identifier: BSD-3-Clause
"""The other programs of this suite, with operations that fail: each ends, in time, with an error that names the hook.

They run as in their own tests, in processes with the hooks `debug` and `fault`. The first error that a process meets
tells why it ends, and only this may be one: what the hook failed, or a peer whose process has ended so. A wait that
runs out of time is a hang, wrong contents are damage, and a second completion ends the process in `debug`.
"""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
import test_shm
import test_tcp

STRESS = bool(os.environ.get("OFIPY_STRESS"))
SEEDS = range(1, 4) if STRESS else (1,)
PATIENCE = 30.0
# What the loss of a peer looks like, whose process has ended.
CONSEQUENCES = ("PeerLost: ", "ConnectionRefused: ", "NotConnected: ")
# Programs of so few operations that all of them may succeed.
LUCKY = ("test_receiver_killed", "test_idle_wait_takes_no_processor_time", "test_no_descriptors_are_left")

Program = Callable[..., None]


def programs(module: ModuleType) -> Iterator[Any]:
    """The tests of a module with each of their parameters; at full size those whose processes take seconds to start."""
    for name, test in vars(module).items():
        if not name.startswith("test_") or ("all_to_all" in name and not STRESS):
            continue
        marks = {mark.name: mark for mark in getattr(test, "pytestmark", [])}
        skip = [marks["skipif"]] if "skipif" in marks else []
        names, values = marks["parametrize"].args if "parametrize" in marks else ("", [None])
        for value in values:
            given = {names: value} if names else {}
            yield pytest.param(partial(test, **given), id=f"{name}{value or ''}", marks=skip)


def name_of(program: Program) -> str:
    return str(program.func.__name__) if isinstance(program, partial) else program.__name__


def interrupt(group: list[Any]) -> bool:
    """Those that wait for anyone end, the others do not notice. Whether some are left."""
    left = [worker for worker in group if worker.process.poll() is None]
    for worker in left:
        # What has said nothing has not begun yet.
        if worker.told:
            worker.process.send_signal(signal.SIGINT)
    return bool(left)


def run(
    program: Program, start: Callable[..., Any], inject: Callable[[int], None]
) -> tuple[list[Any], Exception | None]:
    """All processes of a program when all have ended, and what its own process has met."""
    group: list[Any] = []
    failure: Exception | None = None
    over = threading.Event()

    def start_one(*arguments: Any, **options: Any) -> Any:
        inject(len(group) + 1)
        group.append(start(*arguments, **options))
        return group[-1]

    def watch() -> None:
        while not over.wait(0.2):
            # One that the program itself has killed is part of it.
            if any(worker.process.poll() and not worker.killed for worker in list(group)):
                interrupt(list(group))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        program(start_one)
    except (AssertionError, ofipy.FabricError) as error:
        failure = error
    finally:
        over.set()
        watcher.join()
    for worker in group:
        worker.process.stdin.close()
    deadline = time.monotonic() + PATIENCE
    while interrupt(group):
        assert time.monotonic() < deadline, [
            worker.function for worker in group if worker.process.poll() is None
        ]
        time.sleep(0.1)
    return group, failure


def first_errors(group: list[Any], failure: Exception | None) -> list[str]:
    """Why processes have ended. The program's own assertions follow from those."""
    errors = [f"{type(failure).__name__}: {failure}"] if isinstance(failure, ofipy.FabricError) else []
    for worker in group:
        errors += [
            f"{told['error']}: {told['text']}"
            for told in worker.told
            if isinstance(told, dict) and "error" in told
        ]
        ended = worker.process.returncode
        assert not re.search("^AssertionError", worker.errors(), re.MULTILINE), f"damage in {worker.function}"
        if worker.killed or ended in (0, -signal.SIGINT):
            continue
        assert ended == 1, f"{worker.function} ended with {ended}"
        errors.append(worker.errors().splitlines()[-1])
    return errors


def all_to_all_of_8(workers: Callable[..., Any]) -> None:
    test_shm.run_all_to_all(workers, 8, 4, 5_000)


@pytest.mark.timeout(150)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("program", [all_to_all_of_8, *programs(test_shm), *programs(test_tcp)])
def test_it_ends_and_names_the_hook(
    program: Program, seed: int, workers: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def inject(number: int) -> None:
        """Each process draws others."""
        monkeypatch.setenv("OFIPY_HOOKS", f"debug;fault:fail=0.02,seed={1000 * seed + number}")

    group, failure = run(program, workers, inject)
    errors = first_errors(group, failure)
    named = [error for error in errors if "hook fault: " in error]
    for error in errors:
        assert error in named or error.startswith(CONSEQUENCES), errors
    lucky = name_of(program) in LUCKY and failure is None and not errors
    assert named or lucky, failure or errors
