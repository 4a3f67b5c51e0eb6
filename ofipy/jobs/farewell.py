# SPDX-License-Identifier: BSD-3-Clause
"""How a process hears who has left the job, and takes leave of it: a thread, and an endpoint for nothing else.

The endpoint is one of the provider `link`, whatever the program uses: it notices the death of a process everywhere. It
has a domain of its own, so that the thread that sleeps in it is in nobody's way.
"""

import logging
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ofipy._base.errors import Canceled, Closed, ConnectionRefused, FabricError, NotSent, PeerLost, TimedOut
from ofipy._completion.request import Request
from ofipy._completion.together import wait_any
from ofipy._discovery.av import Peer
from ofipy._objects.open import open as open_endpoint
from ofipy.jobs.departures import Departures
from ofipy.jobs.launcher import Deadline
from ofipy.jobs.roster import Roster

__all__ = ["Farewell"]

_NEWS, _LIFE, _STOP = 1, 2, 3
"""Tags. Nothing is sent with the last two: receives of one end with their peer, of the other when cancelled."""
_LEAVE_SECONDS = 2.0
"""For the last message to arrive."""

_log = logging.getLogger("ofipy.job")


class Farewell:
    """Tells and hears who leaves a job.

    Parameters
    ----------
    rank, size : int
        Of this process and its job.
    roster : Roster
        Told of every process that has left, from a thread of this object.
    """

    def __init__(self, rank: int, size: int, roster: Roster) -> None:
        self._departures = Departures(rank, size)
        self._rank = rank
        self._roster = roster
        self._endpoint = open_endpoint(provider="link")
        self._process = os.getpid()
        self._stop: Request[Any] = self._endpoint.trecv(tag=_STOP)
        self._peers: list[Peer] = []
        self._room = bytearray(self._departures.message_max)
        self._news: Request[Any] = self._endpoint.trecv_into(self._room, tag=_NEWS)
        self._lives: dict[int, Request[Any]] = {}
        self._messages: dict[int, Request[Any]] = {}  # the one under way to each rank
        self._thread: threading.Thread | None = None
        self._neighbours_know = threading.Event()

    @property
    def address(self) -> bytes:
        """Where the others tell this process."""
        return bytes(self._endpoint.address)

    def begin(self, addresses: Sequence[bytes]) -> None:
        """Listen, once the addresses of all ranks are known."""
        self._peers = [self._endpoint.insert(address) for address in addresses]
        # So a neighbour at whose address nobody is any more is lost within a second.
        self._roster.follow(self._endpoint, self._peers, waits=False)
        self._thread = threading.Thread(target=self._serve, name="ofipy-farewell", daemon=True)
        self._thread.start()

    def await_neighbours(self, deadline: Deadline) -> None:
        """Wait until the neighbours have the first message of this process, so that they would notice its death."""
        self._neighbours_know.wait(min(deadline.left(), threading.TIMEOUT_MAX))

    # ------------------------------------------------------------------------------------------------ the thread

    def _serve(self) -> None:
        try:
            while not self._stop.done:
                self._tell()
                self._watch()
                self._sleep()
                # What a rank said before it went counts, so messages are read before its end is believed.
                while self._news.test():
                    self._read_news()
                self._look_at_peers()
                if not self._messages:
                    self._neighbours_know.set()
        except (Canceled, Closed):
            return
        finally:
            self._neighbours_know.set()  # nobody waits for a thread that has ended

    def _sleep(self) -> None:
        """Until something has happened, or what was learned may be told."""
        pause = self._departures.pause(time.monotonic())
        with suppress(TimedOut):
            wait_any([self._stop, self._news, *self._lives.values(), *self._messages.values()], timeout=pause)

    def _read_news(self) -> None:
        try:
            self._news.wait()
            sender, departures = self._departures.read(bytes(self._room[: self._news.length]))
        except (Canceled, Closed):
            raise
        except FabricError as error:  # of one rank: it ended within its message
            _log.info("farewell: %s", error)
        else:
            self._announce(self._departures.hear(sender, departures))
        self._news = self._endpoint.trecv_into(self._room, tag=_NEWS)

    def _look_at_peers(self) -> None:
        now = time.monotonic()
        for requests in (self._lives, self._messages):
            for rank, request in [each for each in requests.items() if each[1].done]:
                del requests[rank]
                if isinstance(request.exception(), PeerLost | ConnectionRefused):
                    self._departures.suspect(rank, now)
        self._announce(self._departures.learn(self._departures.given_up(now)))

    def _announce(self, departures: dict[int, bool]) -> None:
        """Tell the program's endpoints what is new."""
        for rank, died in departures.items():
            if rank == self._rank:
                continue
            _log.info("farewell: rank %d has %s", rank, "died" if died else "left the job")
            self._roster.depart(rank, died)
            for requests in (self._lives, self._messages):
                request = requests.pop(rank, None)
                if request is not None:
                    request.cancel()

    def _tell(self) -> None:
        for rank, message in self._departures.due(time.monotonic()).items():
            self._send(rank, message)

    def _watch(self) -> None:
        """Notice the end of everybody whom this process is linked with."""
        for rank in self._departures.audience():
            if rank not in self._lives:
                self._lives[rank] = self._endpoint.trecv(self._peers[rank], tag=_LIFE)

    def _send(self, rank: int, message: bytes) -> None:
        self._messages[rank] = self._endpoint.tsend(
            message, self._peers[rank], tag=_NEWS, complete="delivery"
        )

    # ------------------------------------------------------------------------------------------------- the end

    def leave(self, *, died: bool) -> None:
        """Say goodbye to those who pass it on, and close. A second call does nothing, nor one in a forked child."""
        if self._process != os.getpid() or self._endpoint.closed:
            return
        self._end_thread()
        with suppress(FabricError):
            self._say_farewell(died, Deadline(_LEAVE_SECONDS))
        try:
            self._endpoint.close()
        except NotSent as error:  # to a process that is stopped
            _log.info("farewell: %s", error)

    def _say_farewell(self, died: bool, deadline: Deadline) -> None:
        """Tell all who are linked, and whoever speaks for the first time meanwhile."""
        message = self._departures.farewell(died=died)
        told: set[int] = set()
        while True:
            while self._news.test() and not deadline.passed():
                self._read_news()
            new = [rank for rank in self._departures.audience() if rank not in told]
            for rank in new:
                self._send(rank, message)
            told.update(new)
            self._look_at_peers()
            if not self._messages or deadline.passed():
                break
            with suppress(TimedOut):
                wait_any([self._news, *self._messages.values()], timeout=deadline.left())
        for request in self._messages.values():
            request.cancel()

    def close(self) -> None:
        """Close it without a word: the job was never joined."""
        self._end_thread()
        self._endpoint.close()

    def _end_thread(self) -> None:
        self._stop.cancel()
        if self._thread is not None:
            self._thread.join()
