# SPDX-License-Identifier: BSD-3-Clause
"""Fork only while every other thread of the process sleeps: for interpreters under the address sanitizer.

The sanitizer's allocator has locks that the runtime of GCC 12 does not hold across fork. A thread that starts acquires
them, in the runtime's own code, before the first line of the program. A child that is forked at that moment waits
forever for a lock that no thread of it holds. A thread that sleeps in a system call holds none of them.

``tests.asan`` copies this file into its environment, where every interpreter imports it as it starts.
"""

import os
import threading
import time


def count_awake() -> int:
    """Threads of the process that run, or wait for memory or a disk; the calling one does not count."""
    awake = 0
    for name in os.listdir("/proc/self/task"):
        if int(name) == threading.get_native_id():
            continue
        try:
            with open(f"/proc/self/task/{name}/stat") as file:
                # proc(5): the name of the thread stands in parentheses, its state follows.
                awake += file.read().rpartition(")")[2].split()[0] in "RD"
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended
    return awake


def wait_until_others_sleep() -> None:
    """Return as soon as no other thread of the process is awake."""
    while count_awake():
        time.sleep(0.0005)


def register() -> None:
    """Let every later fork of this interpreter wait so."""
    os.register_at_fork(before=wait_until_others_sleep)
