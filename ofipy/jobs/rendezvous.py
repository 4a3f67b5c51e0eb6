# SPDX-License-Identifier: BSD-3-Clause
"""The rendezvous of those whose launcher has none: rank 0 serves, all find it at a host and one of 16 ports."""

import logging
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from ofipy._base import config
from ofipy._base.binding import drain_log
from ofipy._base.errors import (
    AccessDenied,
    AddressInUse,
    ConfigError,
    ConnectionRefused,
    FabricError,
    IncompatiblePeer,
    TimedOut,
)
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.fabric import Domain
from ofipy._objects.open import open as open_endpoint
from ofipy.jobs.door import Knocker, listen
from ofipy.jobs.greeting import (
    ANSWER_TAG,
    ASK_TAG,
    PROTOCOL,
    VERSIONS,
    Foreign,
    Kind,
    Message,
    Run,
    Why,
    refusal_of,
)
from ofipy.jobs.keys import configured
from ofipy.jobs.launcher import FENCES, Deadline, Environment, Found
from ofipy.jobs.rendezvous_server import Server
from ofipy.jobs.search import Search

__all__ = ["Meeting", "Rendezvous", "found", "ports"]

_log = logging.getLogger("ofipy.job")

_PORT = 9229
_PORTS = 16
_ANSWER_SECONDS = 2.0  # for whoever serves at a port that was meant for this job's server
_LAST_WORD_SECONDS = 2.0  # what the server may take longer to say who is missing
_KEY_REMEDY = (
    "make a key with `ofipy key new job.key`, copy it to every host and set OFIPY_AUTH_KEY_FILE to it, "
    "or start the job with `ofipy run`, mpiexec or prterun, which hand one over"
)

_REMEDIES = {
    Why.KEY: "set OFIPY_AUTH_KEY_FILE to the same key for every process of the job, or for none",
    Why.SIZE: "start every process of the job with the same size",
    Why.RANK: "start one process for each rank, and each job with ports of its own (OFIPY_JOB_PORT)",
    Why.LATE: "start it with the others, or set OFIPY_JOB_TIMEOUT higher",
    Why.MISSING: "every process of the job must call ofipy.job(); OFIPY_JOB_TIMEOUT is how long the others wait",
    Why.VERSION: "install the same release of ofipy for every process of the job",
}
_KINDS: dict[Why, type[FabricError]] = {
    Why.KEY: AccessDenied,
    Why.MISSING: TimedOut,
    Why.LATE: TimedOut,
    Why.VERSION: IncompatiblePeer,
}


@dataclass(frozen=True, slots=True)
class Meeting:
    """Who meets where."""

    run: str
    """What tells this job from others."""
    rank: int
    size: int
    server: str
    """Host of rank 0."""
    ports: Sequence[int]
    several_hosts: bool
    """It is known that not all processes are on this host."""
    host: str
    """This one's name."""
    names: tuple[str, str]
    """What rank and size were read from."""


def ports(first: int | None, environment: Environment) -> range:
    """Where rank 0 may serve: from `first` on, unless ``OFIPY_JOB_PORT`` says otherwise.

    Raises
    ------
    ConfigError
        When there are not so many ports.
    """
    config.check_environment()
    chosen = int(config.value("JOB_PORT") or 0) or first or _PORT
    if chosen + _PORTS > 65536:
        raise environment.wrong(f"port {chosen}; 1 to {65536 - _PORTS} is meant, set OFIPY_JOB_PORT")
    return range(chosen, chosen + _PORTS)


def found(name: str, meeting: Meeting, environment: Environment, *, key: bytes | None = None) -> Found:
    """A launcher that leaves the meeting to us.

    Raises
    ------
    ConfigError
        When nobody could prove that it is of this job: there are several hosts and no key.
    """
    if key is None and configured() is None and (meeting.several_hosts or not _is_here(meeting.server)):
        raise ConfigError(
            f"the job has several hosts (rank 0 is on {meeting.server}) and no key ({name})",
            operation="job",
            remedy=_KEY_REMEDY,
        )

    def join(deadline: Deadline, key: bytes | None) -> Rendezvous:
        return Rendezvous(meeting, key, deadline)

    return Found(name, meeting.rank, meeting.size, environment.read, join, key)


def _is_here(host: str) -> bool:
    """Whether a name is one of this host's: only then can a socket be bound to its address."""
    try:
        resolved = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in resolved:
        with socket.socket(family, kind, protocol) as probe:
            try:
                probe.bind(address)
            except OSError:
                continue
            return True
    return False


@contextmanager
def _quiet(endpoint: Endpoint[Domain]) -> Iterator[None]:
    """Without the warnings of who asks until somebody is there; the error at the end says what was wrong."""
    log = logging.getLogger(f"ofipy.{endpoint.provider}")
    marks = tuple(f"endpoint {endpoint.id} {what} peer " for what in ("waits for", "lost"))

    def is_of_others(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(marks)

    log.addFilter(is_of_others)
    try:
        yield
        drain_log()
    finally:
        log.removeFilter(is_of_others)


class Rendezvous:
    """A process at the rendezvous.

    Parameters
    ----------
    meeting : Meeting
        Where.
    key : bytes, optional
        What all prove; None: all are on this host.
    deadline : Deadline
        For finding the server.
    """

    def __init__(self, meeting: Meeting, key: bytes | None, deadline: Deadline) -> None:
        self.rank, self.size, self.host = meeting.rank, meeting.size, meeting.host
        self._meeting = meeting
        self._run = Run(meeting.run, key)
        self._nonce = secrets.token_bytes(16)
        self._fences = 0
        self._server: Server | None = None
        # Without a key nobody but this user's processes on this host may come near, whatever else is configured.
        self._provider = "link" if key is not None else "shm"
        self._host = meeting.server if key is not None else "localhost"
        self._endpoint = open_endpoint(provider=self._provider)
        try:
            if self.rank == 0:
                self._server = self._serve(deadline)
                self._peer = self._endpoint.insert(self._server.endpoint.address)
                self._check(self._ask_server(Kind.GREETING, self._greeting(), deadline))
            else:
                with _quiet(self._endpoint):
                    self._peer = self._find(deadline)
        except BaseException:
            self.close()
            raise

    def _serve(self, deadline: Deadline) -> Server:
        for port in self._meeting.ports:
            try:
                endpoint = open_endpoint(port, provider=self._provider)
            except AddressInUse:
                self._check_not_ours(port, deadline)
                continue
            return Server(endpoint, self._run, self.size, deadline, self._door_of(endpoint, port))
        raise AddressInUse(
            f"ports {self._meeting.ports[0]} to {self._meeting.ports[-1]} are all in use, and rank 0 of the job must "
            "serve at one of them",
            operation="job",
            remedy="set OFIPY_JOB_PORT to the first of 16 ports that are free, for every process",
        )

    def _door_of(self, endpoint: Endpoint[Domain], port: int) -> socket.socket | None:
        """The socket by which processes of other releases are heard; None: there can be none."""
        try:
            return listen(endpoint.address, port, within_host=self._provider == "shm")
        except (OSError, FabricError) as error:
            _log.info("rendezvous: processes of other releases wait until the deadline: %s", error)
            return None

    def _check_not_ours(self, port: int, deadline: Deadline) -> None:
        """Who serves there refuses this process, if it is another rank 0 of the same job."""
        answer: Message | Foreign | Why | None = None
        with suppress(FabricError):
            peer = self._endpoint.insert(f"localhost:{port}")
            seconds = min(_ANSWER_SECONDS, deadline.left())
            answer = self._ask(peer, Kind.GREETING, self._greeting(), seconds)
        if answer not in (None, Why.RUN):
            self._check(answer)

    def _find(self, deadline: Deadline) -> Peer:
        """The server, which may come later than this process, or be behind those of other jobs."""
        knocker = Knocker(self._run, self._nonce, None if self._provider == "shm" else self._host)
        search = Search(
            self._endpoint, self._run, self._host, self._meeting.ports, knocker=knocker, rank=self.rank
        )
        greeting = self._run.write(Kind.GREETING, self._nonce, self._greeting())
        with closing(knocker):
            found = search.server(greeting, self._nonce, deadline)
        if found is None:
            raise self._not_found(search.errors(), deadline)
        if isinstance(found[1], IncompatiblePeer):
            raise IncompatiblePeer(
                found[1].message,
                operation="job",
                peer=f"rank 0 at {self._meeting.server}",
                remedy=found[1].remedy,
            )
        self._check(found[1])
        return found[0]

    def _not_found(self, reasons: list[FabricError], deadline: Deadline) -> FabricError:
        telling = [each for each in reasons if not isinstance(each, ConnectionRefused | TimedOut)] or reasons
        where = f"{self._meeting.server}, ports {self._meeting.ports[0]} to {self._meeting.ports[-1]}"
        said = f" ({telling[0]})" if telling else ""
        # Without a word from its door, who speaks no version of ours may serve another job.
        foreign = next((each for each in telling if isinstance(each, IncompatiblePeer)), None)
        if foreign is not None:
            return IncompatiblePeer(
                f"rank 0 was not found at {where} within {deadline.seconds:g} s ({foreign.message})",
                operation="job",
                remedy=foreign.remedy,
            )
        if any(isinstance(each, AccessDenied) for each in telling):
            return AccessDenied(
                f"rank 0 was not found at {where} within {deadline.seconds:g} s{said}",
                operation="job",
                remedy=_REMEDIES[Why.KEY],
            )
        return deadline.missed(f"rank 0 was not found at {where}{said}")

    def _greeting(self) -> dict[str, object]:
        return {"rank": self.rank, "size": self.size}

    def fence(
        self, values: Mapping[str, bytes], wanted: Iterable[str], deadline: Deadline
    ) -> dict[str, bytes]:
        """As of a launcher: one message there and one back."""
        self._fences += 1
        body = {
            "rank": self.rank,
            "values": {name: value.hex() for name, value in values.items()},
            "wanted": list(wanted),
        }
        got = self._check(self._ask_server(Kind.FENCE, body, deadline)).body["values"]
        if self._fences == FENCES:
            self._endpoint.close(linger=0)
        return {name: bytes.fromhex(value) for name, value in got.items()}

    def _ask_server(
        self, kind: Kind, body: Mapping[str, object], deadline: Deadline
    ) -> Message | Foreign | Why | None:
        """What this job's server answers. Its process may be slow, so it has until the deadline."""
        try:
            return self._ask(self._peer, kind, body, deadline.left() + _LAST_WORD_SECONDS)
        except TimedOut:
            raise deadline.missed("rank 0 did not answer") from None

    def _ask(
        self, peer: Peer, kind: Kind, body: Mapping[str, object], seconds: float
    ) -> Message | Foreign | Why | None:
        """The server's answer; that it is of another job, release or key; None: it makes no sense."""
        deadline = Deadline(seconds)
        coming = self._endpoint.trecv(peer, tag=ANSWER_TAG)
        try:
            # Delivered: so an error of the connection comes up here, and not only when the time is over.
            self._endpoint.tsend(
                self._run.write(kind, self._nonce, body), peer, tag=ASK_TAG, complete="delivery"
            ).wait(timeout=deadline.left())
            while True:
                blob = bytes(coming.wait(timeout=deadline.left()).data)
                answer = self._run.read(blob)
                if isinstance(answer, Foreign):
                    return answer
                if not isinstance(answer, Message):
                    return refusal_of(blob)
                if answer.nonce != self._nonce:
                    return None
                # Who was slow to answer a greeting has been greeted again, and answers each.
                if kind is Kind.GREETING or answer.kind is not Kind.WELCOME:
                    return answer
                coming = self._endpoint.trecv(peer, tag=ANSWER_TAG)
        except BaseException:
            coming.cancel()
            raise

    def _check(self, answer: Message | Foreign | Why | None) -> Message:
        """The answer of our server, unless it refuses."""
        if isinstance(answer, Foreign):
            raise VERSIONS.incompatible(
                answer.versions, PROTOCOL, operation="job", peer=f"rank 0 at {self._meeting.server}"
            )
        if isinstance(answer, Message) and answer.kind is not Kind.REFUSED:
            return answer
        if isinstance(answer, Message):
            why, text = Why(answer.body["why"]), str(answer.body["text"])
        else:
            why, text = Why.KEY, "it has another key"
        rank, size = self._meeting.names
        raise _KINDS.get(why, ConfigError)(
            f"rank 0 of the job refuses this process ({rank}={self.rank}, {size}={self.size}): {text}",
            operation="job",
            remedy=_REMEDIES[why],
        )

    def close(self) -> None:
        """Take leave; rank 0 serves no longer."""
        self._endpoint.close(linger=0)
        if self._server is not None:
            self._server.close()
            self._server = None
