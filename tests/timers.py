# SPDX-License-Identifier: BSD-3-Clause
"""Threads beside a block of a test, as timers that interrupt it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["running"]


@contextmanager
def running(*threads: threading.Thread) -> Iterator[None]:
    """They start within, so that what their signals raise comes up within, also on a busy machine; they end with it."""
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        for thread in threads:
            if isinstance(thread, threading.Timer):
                thread.cancel()
            if thread.ident is not None:
                thread.join()
