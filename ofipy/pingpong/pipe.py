# SPDX-License-Identifier: BSD-3-Clause
"""The processes that a measuring program starts on its own machine."""

import ctypes
import multiprocessing
import os
import signal

__all__ = ["die_with_parent", "pick_cores"]

PR_SET_PDEATHSIG = 1


def pick_cores() -> tuple[int, int]:
    """Two cores that this process may use; twice the same one if there is no second."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1] if len(cores) < 2 else cores[1]


def die_with_parent() -> None:
    """Have the kernel end this process with its parent, and end if that is gone already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() != parent.pid:
        os._exit(1)
