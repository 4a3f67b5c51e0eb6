# SPDX-License-Identifier: BSD-3-Clause
"""When a process ends: the interpreter's end, and that of a child of multiprocessing, which has another one."""

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterator

__all__ = ["other_threads_run", "sleep_through", "watch"]

_watched = 0  # the process whose end is watched
_LAST_THREAD = "ofipy-exit"


def watch(close_all: Callable[[], None]) -> None:
    """Have a function called at the end of this process; a second call does nothing."""
    global _watched
    pid = os.getpid()
    if _watched == pid:
        return
    if not _watched:
        atexit.register(close_all)
    _watched = pid
    # A child of multiprocessing ends by os._exit behind multiprocessing's own finalisers, without those of atexit.
    process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, _end_child, args=(close_all,), exitpriority=-100)


def other_threads_run() -> bool:
    """Whether any thread beside this one may still call into the library."""
    threading = sys.modules.get("threading")
    if threading is None:  # `import ofipy` does not import it, and the program has started no thread
        return False
    here = threading.current_thread()
    waiting = threading.main_thread() if here.name == _LAST_THREAD else None  # for this one to end
    return any(each not in (here, waiting) for each in threading.enumerate())


def _end_child(close_all: Callable[[], None]) -> None:
    """Close when the child's other threads have ended, for which the interpreter waits behind these finalisers."""
    import threading  # imported already, by multiprocessing

    here = threading.current_thread()
    others = [each for each in threading.enumerate() if each is not here and not each.daemon]
    if not others:
        close_all()
        return

    def close_after_others() -> None:
        for each in others:
            each.join()
        close_all()

    threading.Thread(target=close_after_others, name=_LAST_THREAD).start()


def sleep_through(pauses: Iterator[float]) -> KeyboardInterrupt | None:
    """Sleep; Ctrl-C, which is returned, ends it."""
    try:
        for pause in pauses:
            time.sleep(pause)
    except KeyboardInterrupt as error:
        return error
    return None
