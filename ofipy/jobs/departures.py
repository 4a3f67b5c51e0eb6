# SPDX-License-Identifier: BSD-3-Clause
"""Who has left the job, as one process knows it, and whom it tells; without any wire.

The ranks that are there form a ring. A process tells its *neighbours*: for each power of two the first rank that is
there at this distance behind it, or further. So news reach everybody over ceil(log2 n) steps, the ring stays whole
whoever leaves, and nobody has more than ceil(log2 n) neighbours. What is learned soon after a message waits for the
next one, so that the end of a whole job is told in few messages.
"""

import struct
from collections.abc import Mapping

from ofipy._base.errors import InvalidArgument
from ofipy._base.versions import Versions

__all__ = ["GRACE", "PAUSE", "Departures"]

# Magic, newest version, earlier versions, rank of the sender, size of the job, departures.
_HEAD = struct.Struct("<4sBBxxIII")
_MAGIC = b"OFPD"
_VERSIONS = Versions(1)
_ENTRY = struct.Struct("<I")
_DIED = 1 << 31
PAUSE = 0.05
"""Seconds between two messages of a process to its neighbours."""
GRACE = 0.25
"""Seconds after the end of a connection in which its rank may still turn out to have left in order."""


class Departures:
    """What a process knows of the departures of a job.

    Parameters
    ----------
    rank, size : int
        Of the process and its job.
    """

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._size = size
        self.died: dict[int, bool] = {}
        """Of each rank that has left, whether it died."""
        self._linked: set[int] = set()  # ranks that have sent this one anything
        self._suspects: dict[
            int, float
        ] = {}  # whose connection has ended, and until when others may tell more
        self._untold: dict[int, bool] = {}
        self._told: set[int] = set()  # neighbours that know they are
        self._addressed: set[int] = set()  # ranks that this one has sent anything
        self._unanswered: set[int] = set()
        self._not_before = 0.0

    @property
    def message_max(self) -> int:
        """Bytes of the longest message."""
        return _HEAD.size + self._size * _ENTRY.size

    def hear(self, sender: int, departures: Mapping[int, bool]) -> dict[int, bool]:
        """Take in what a rank has said; otherwise as :meth:`learn`."""
        if sender not in self._linked:
            self._linked.add(sender)
            if sender not in self._addressed:
                self._unanswered.add(sender)
        return self.learn(departures)

    def learn(self, departures: Mapping[int, bool]) -> dict[int, bool]:
        """Take news in, and return what of them is new. The first word about a rank counts."""
        new = {rank: died for rank, died in departures.items() if rank not in self.died}
        self.died |= new
        self._untold |= new
        return new

    def suspect(self, rank: int, now: float) -> None:
        """The connection with a rank has ended, or nobody is at its address; others may still tell more."""
        if rank not in self.died:
            self._suspects.setdefault(rank, now + GRACE)

    def given_up(self, now: float) -> dict[int, bool]:
        """The departures to be learned of suspects of which nobody has told within :data:`GRACE`.

        A rank that has ever spoken to this one would have said goodbye: it has died. Of another it is not known who
        heard its goodbye: whoever did has left as well. A death would have been noticed by all who were linked with
        it.
        """
        self._suspects = {rank: until for rank, until in self._suspects.items() if rank not in self.died}
        return {rank: rank in self._linked for rank, until in self._suspects.items() if now >= until}

    def _is_here(self, rank: int) -> bool:
        return rank not in self.died and rank not in self._suspects

    def neighbours(self) -> list[int]:
        """The ranks that this one tells what it learns, the nearest first."""
        found: dict[int, None] = {}
        distance = 1
        for number in range((self._size - 1).bit_length()):
            distance = max(distance, 1 << number)
            while distance < self._size and not self._is_here((self._rank - distance) % self._size):
                distance += 1
            if distance < self._size:
                found[(self._rank - distance) % self._size] = None
        return list(found)

    def audience(self) -> list[int]:
        """Whom this rank tells of its own departure: its neighbours, and who has ever spoken to it."""
        return list(dict.fromkeys((*self.neighbours(), *filter(self._is_here, sorted(self._linked)))))

    def due(self, now: float) -> dict[int, bytes]:
        """The messages to be sent at a time, by the ranks that they are for; from then on they count as sent.

        A new neighbour is told all, since it may not know what the one before it knew. By that it learns also that it
        is a neighbour. Who speaks for the first time gets an answer, so that each of two that are linked has heard
        from the other.
        """
        if now < self._not_before:
            return {}
        neighbours = self.neighbours()
        new = [rank for rank in neighbours if rank not in self._told]
        messages = dict.fromkeys(filter(self._is_here, self._unanswered), self._message({}))
        if self._untold:
            messages |= dict.fromkeys(neighbours, self._message(self._untold))
        messages |= dict.fromkeys(new, self._message(self.died))
        if messages:
            self._not_before = now + PAUSE
        self._untold = {}
        self._unanswered = set()
        self._told |= set(neighbours)
        self._addressed |= messages.keys()
        return messages

    def pause(self, now: float) -> float | None:
        """Seconds until :meth:`due` or :meth:`given_up` has something; None: not before something is learned."""
        moments = list(self._suspects.values())
        if self._untold or self._unanswered or not self._told >= set(self.neighbours()):
            moments.append(self._not_before)
        return max(min(moments) - now, 0.0) if moments else None

    def farewell(self, *, died: bool) -> bytes:
        """The last message: what has not been told, and that this rank leaves."""
        return self._message(self._untold | {self._rank: died})

    def _message(self, departures: Mapping[int, bool]) -> bytes:
        head = _HEAD.pack(
            _MAGIC, _VERSIONS.newest, _VERSIONS.earlier, self._rank, self._size, len(departures)
        )
        return head + b"".join(_ENTRY.pack(rank | died * _DIED) for rank, died in departures.items())

    def read(self, message: bytes) -> tuple[int, dict[int, bool]]:
        """The sender of a message, and the departures that it tells.

        Raises
        ------
        InvalidArgument
            When it is no message of this job.
        IncompatiblePeer
            When it is of a release that speaks no version of this one.
        """
        if len(message) >= _HEAD.size:
            magic, newest, earlier, sender, size, count = _HEAD.unpack_from(message)
            theirs = Versions(newest, earlier)
            if magic == _MAGIC and not _VERSIONS.include_one_of(theirs):
                raise _VERSIONS.incompatible(theirs, "the news of a job", operation="job")
            is_ours = (magic, size) == (_MAGIC, self._size) and sender < size
            if is_ours and len(message) == _HEAD.size + count * _ENTRY.size:
                words = [word for (word,) in _ENTRY.iter_unpack(message[_HEAD.size :])]
                departures = {word & ~_DIED: bool(word & _DIED) for word in words}
                if all(rank < size for rank in departures):
                    return sender, departures
        raise InvalidArgument(
            f"a message of {len(message)} bytes that is no news of this job", operation="job"
        )
