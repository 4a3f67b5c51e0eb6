# SPDX-License-Identifier: BSD-3-Clause
"""What was sent, what arrived, and memory with guards on both sides."""

import threading
from collections import Counter
from itertools import count
from typing import Any

import numpy as np
from numbered import canary, is_untouched, message, number_of

GUARD = 64


class Ledger:
    """Every message: how often it was handed over to be sent, and how often it arrived."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._sent: Counter[int] = Counter()
        self._arrived: Counter[int] = Counter()

    def new(self, size: int) -> bytes:
        """A new message."""
        return message(next(self._numbers), size)

    def sending(self, data: Any) -> None:
        """It is about to be sent, or not, if that fails."""
        with self._lock:
            self._sent[number_of(data)] += 1

    def arrived(self, data: Any) -> None:
        """It was received.

        Raises
        ------
        AssertionError
            When it is not one message, whole, or came more often than it was sent.
        """
        if not len(data):
            return
        number = number_of(data)
        with self._lock:
            self._arrived[number] += 1
            assert self._arrived[number] <= self._sent[number], (
                f"message {number} was sent {self._sent[number]} times and arrived {self._arrived[number]} times"
            )


class Guarded:
    """Memory between two guards, which nobody may touch."""

    def __init__(self, size: int) -> None:
        self._whole = canary(size + 2 * GUARD)
        # No memoryview: CPython before 3.11.8 and 3.12.2 crashes when it collects a cycle with an exported one.
        self.memory = np.frombuffer(self._whole, np.uint8)[GUARD : GUARD + size]

    def fill(self, data: bytes) -> None:
        """Put something there."""
        self.memory[:] = np.frombuffer(data, np.uint8)

    def check(self) -> None:
        """The guards are as they were."""
        assert is_untouched(self._whole[:GUARD]), "bytes before a buffer were written"
        assert is_untouched(self._whole[-GUARD:]), "bytes behind a buffer were written"
