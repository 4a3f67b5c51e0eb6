# SPDX-License-Identifier: BSD-3-Clause
"""What interpreters under the address sanitizer wait for before they fork: ``tests/quiet_fork.py``."""

import hashlib
import threading
import time

from tests import quiet_fork

HASHING_NS = 10_000_000  # of processor time; the thread has used that much only in the midst of the hash


def test_a_thread_that_runs_is_waited_for() -> None:
    totals: list[int] = []
    may_end = threading.Event()

    def run() -> None:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)  # without the interpreter's lock, and never asleep
        totals.append(time.thread_time_ns())
        may_end.wait()

    thread = threading.Thread(target=run)
    thread.start()
    assert thread.ident is not None
    clock = time.pthread_getcpuclockid(thread.ident)
    while time.clock_gettime_ns(clock) < HASHING_NS:
        time.sleep(0.001)
    quiet_fork.wait_until_others_sleep()
    used = time.clock_gettime_ns(clock)
    may_end.set()
    thread.join()
    assert used > 0.9 * totals[0]


def test_a_thread_that_sleeps_is_not_waited_for() -> None:
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait)
    thread.start()
    quiet_fork.wait_until_others_sleep()
    assert thread.is_alive()
    may_end.set()
    thread.join()
