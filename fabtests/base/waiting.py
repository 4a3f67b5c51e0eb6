# SPDX-License-Identifier: BSD-3-Clause
"""Ways to wait for an operation (``-c``)."""

import os
import select
from collections.abc import Callable
from typing import Any

import ofipy

__all__ = ["WAYS"]


def _sread(_queue: ofipy.CompletionQueue, request: Any, limit: float) -> Any:
    return request.wait(timeout=limit)


def _spin(_queue: ofipy.CompletionQueue, request: Any, _limit: float) -> Any:
    while not request.test():
        pass
    return request.wait(timeout=0)


def _yield(_queue: ofipy.CompletionQueue, request: Any, _limit: float) -> Any:
    while not request.test():
        os.sched_yield()
    return request.wait(timeout=0)


def _fd(queue: ofipy.CompletionQueue, request: Any, _limit: float) -> Any:
    # Every completion of a queue wakes its descriptor, requests as well as entries.
    while not request.test():
        if queue.arm():
            select.select([queue], [], [], 0.1)
    return request.wait(timeout=0)


WAYS: dict[str, Callable[[ofipy.CompletionQueue, Any, float], Any]] = {
    "sread": _sread,
    "spin": _spin,
    "yield": _yield,
    "fd": _fd,
}
