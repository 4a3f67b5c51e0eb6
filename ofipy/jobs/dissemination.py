# SPDX-License-Identifier: BSD-3-Clause
"""Who sends what to whom so that everybody has everybody's block, without any wire: n * ceil(log2 n) messages.

In round k a process sends the blocks that it has to the process ``2**k`` before it, and gets those of the ``2**k``
processes from the one ``2**k`` behind it on. What it has is always a run of ranks that begins with its own, so a
message needs no ranks, only lengths.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ofipy._base.errors import InvalidArgument
from ofipy._base.versions import Versions

__all__ = ["HEAD_SIZE", "Dissemination", "Round", "partners", "rounds"]

# Magic, newest version, round, earlier versions, zero, rank of the sender, size, sequence, blocks.
_HEAD = struct.Struct("<4sBBBBIIQI")
_MAGIC = b"OFPX"
_VERSIONS = Versions(1)
_LENGTH = struct.Struct("<I")

HEAD_SIZE = _HEAD.size
BLOCK_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Round:
    """What one process does in one round."""

    number: int
    to: int
    """Rank that it sends to."""
    source: int
    """Rank that it receives from."""
    blocks: int
    """How many blocks go each way."""


def rounds(rank: int, size: int) -> Iterator[Round]:
    """All rounds of a process; none when it is alone."""
    have = 1
    for number in range((size - 1).bit_length()):
        yield Round(number, (rank - have) % size, (rank + have) % size, min(have, size - have))
        have *= 2


def partners(rank: int, size: int) -> list[int]:
    """The ranks that a process sends to."""
    return [each.to for each in rounds(rank, size)]


class Dissemination:
    """One exchange, as one process sees it.

    Parameters
    ----------
    rank, size : int
        Of the process and its job.
    block : bytes
        What it brings.
    sequence : int
        Number of the exchange in the job, the same for all.
    """

    def __init__(self, rank: int, size: int, block: bytes, *, sequence: int = 0) -> None:
        if len(block) > BLOCK_MAX:
            raise InvalidArgument(
                f"a block of {len(block)} bytes; up to {BLOCK_MAX} are meant", operation="exchange"
            )
        self._rank = rank
        self._size = size
        self._sequence = sequence
        self._blocks = [block]  # of this rank and those behind it, round the ring

    def message(self, step: Round) -> bytes:
        """What goes to ``step.to``."""
        head = _HEAD.pack(
            _MAGIC,
            _VERSIONS.newest,
            step.number,
            _VERSIONS.earlier,
            0,
            self._rank,
            self._size,
            self._sequence,
            step.blocks,
        )
        sent = self._blocks[: step.blocks]
        return b"".join((head, *(_LENGTH.pack(len(block)) for block in sent), *sent))

    def take(self, step: Round, message: bytes) -> None:
        """Keep what came from ``step.source``.

        Raises
        ------
        InvalidArgument
            When it is not that message.
        IncompatiblePeer
            When it is of a release that speaks no version of this one.
        """
        if message[:4] == _MAGIC and len(message) >= HEAD_SIZE:
            theirs = Versions(message[4], message[6])
            if not _VERSIONS.include_one_of(theirs):
                raise _VERSIONS.incompatible(
                    theirs, "the exchange of a job", operation="exchange", peer=f"rank {step.source}"
                )
        expected = (step.source, self._size, self._sequence, step.blocks)
        head = _HEAD.unpack_from(message) if len(message) >= HEAD_SIZE else ()
        if (head[:1], head[2:3], head[5:]) != ((_MAGIC,), (step.number,), expected):
            raise InvalidArgument(
                f"a message of {len(message)} bytes that is not the one of rank {step.source} in round {step.number}",
                operation="exchange",
                remedy="every process of a job must make the same calls of its job in the same order",
            )
        position = HEAD_SIZE + _LENGTH.size * step.blocks
        table = message[HEAD_SIZE:position].ljust(position - HEAD_SIZE, b"\0")
        lengths = [length for (length,) in _LENGTH.iter_unpack(table)]
        if position + sum(lengths) != len(message):
            raise InvalidArgument(
                f"{len(message)} bytes from rank {step.source} that are damaged", operation="exchange"
            )
        for length in lengths:
            self._blocks.append(message[position : position + length])
            position += length

    def result(self) -> list[bytes]:
        """Everybody's block by rank, once all rounds are done."""
        first = self._size - self._rank
        return self._blocks[first:] + self._blocks[:first]
