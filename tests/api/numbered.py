# SPDX-License-Identifier: BSD-3-Clause
"""Memory that tells in every 16 bytes what it is: the number of a message, and how long that is.

Whatever is lost, doubled, mixed or left from something else in a message shows, wherever it is.
"""

import struct
from typing import Any

WORD = struct.Struct("<QQ")

# A line of a ring, a ring's slot and beyond it, several segments, more than is sent before it is asked for.
SIZES = (16, 48, 4096, 60_000, 320_000)

# What no message holds.
CANARY = 0xAA


class WrongContents(AssertionError):
    """Memory does not hold what it has to."""


def message(number: int, size: int) -> bytes:
    """The message of this number; `size` is a multiple of 16."""
    return WORD.pack(number, size) * (size // WORD.size)


def number_of(memory: Any) -> int:
    """Which message fills this memory, all of it."""
    data = bytes(memory)
    if len(data) < WORD.size:
        raise WrongContents(f"{len(data)} bytes are no message")
    number, size = WORD.unpack_from(data)
    if size != len(data):
        raise WrongContents(f"message {number:#x} of {size} bytes arrived as {len(data)}")
    if data != message(number, size):
        words = sorted(set(WORD.iter_unpack(data)))
        raise WrongContents(f"message {number:#x} of {size} bytes holds parts of others: {words[:4]}")
    return number


def canary(size: int) -> bytearray:
    """Memory that nobody may write into."""
    return bytearray([CANARY]) * size


def is_untouched(memory: Any) -> bool:
    """Whether a canary is as it was."""
    return not bytes(memory).strip(bytes([CANARY]))
