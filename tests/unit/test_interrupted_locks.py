# SPDX-License-Identifier: BSD-3-Clause
"""A signal's handler that raises in whoever takes a lock, at any instruction: afterwards the lock is free."""

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ofipy._requests import Hold

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 200
SOON = 1e-6  # seconds of this process's time; the kernel rounds up to its tick


@contextmanager
def handler_that_raises() -> Iterator[None]:
    """For the timer of the process's own time: the other one is pytest-timeout's."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def interrupt_often(call: Callable[[], None], check: Callable[[], None]) -> None:
    """Call again and again until it is interrupted, and check what is left, many times."""
    with handler_that_raises():
        for _ in range(ROUNDS):
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, SOON)
                while True:
                    call()
            except KeyboardInterrupt:
                check()


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock])
def test_a_lock_that_is_held_for_a_block(kind: Callable[[], Any], blocking: bool) -> None:
    lock = kind()

    def take() -> None:
        with Hold(lock, blocking=blocking) as is_taken:
            assert is_taken

    def check() -> None:
        """From another thread: this one could take a lock again that it has."""
        free: list[bool] = []

        def look() -> None:
            with Hold(lock, blocking=False) as is_taken:
                free.append(is_taken)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert free == [True]

    interrupt_often(take, check)


def test_a_lock_that_another_has_is_not_taken() -> None:
    lock = threading.Lock()
    with Hold(lock):
        with Hold(lock, blocking=False) as is_taken:
            assert not is_taken
        assert lock.locked()
    assert not lock.locked()


def test_a_block_that_raises_releases_the_lock() -> None:
    lock = threading.Lock()
    with pytest.raises(ValueError, match="from the block"), Hold(lock):
        raise ValueError("from the block")
    assert not lock.locked()


def test_a_hold_is_for_one_block() -> None:
    hold = Hold(threading.RLock())
    with hold, pytest.raises(RuntimeError, match="one block"):
        hold.__enter__()
    with hold:  # the block before it has ended
        pass


def test_a_hold_that_is_deleted_releases_the_lock() -> None:
    lock = threading.Lock()
    hold = Hold(lock)
    assert hold.__enter__()
    assert lock.locked()
    del hold
    assert not lock.locked()


def test_what_a_lock_raises_comes_out() -> None:
    class Broken:
        def acquire(self) -> bool:
            raise OSError("cannot be taken")

    with pytest.raises(OSError, match="cannot be taken"), Hold(Broken()):
        pass
    with pytest.raises(AttributeError), Hold(object()):
        pass


def test_no_lock_is_taken_otherwise() -> None:
    for path in sorted((ROOT / "ofipy").rglob("*.py")):
        found = re.findall(r"with [\w.]*(?:_lock|\block|_changed):|lock\.acquire\(", path.read_text())
        assert not found, f"{path.relative_to(ROOT)}: {found[0]} take it by Hold"
