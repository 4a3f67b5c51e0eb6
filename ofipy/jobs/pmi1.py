# SPDX-License-Identifier: BSD-3-Clause
"""PMI-1: lines of text to the launcher, over an inherited socket (``PMI_FD``) or a connection (``PMI_PORT``).

MPICH's Hydra speaks it, Flux, and Slurm's plugin pmi2. Replies are taken by their keys, not by their name: Slurm's
differ. Values are base64 without padding, in parts, since a value has room for 1,024 bytes at most.
"""

import base64
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ofipy._base.errors import ConfigError, FabricError, NotConnected
from ofipy.jobs.launcher import Deadline, Environment, Found

__all__ = ["NAME", "Pmi1", "find"]

NAME = "PMI-1"
_LINE_MAX = 1 << 16
_MORE, _LAST = "+", "."  # how a part ends


def variables() -> Environment:
    """Those that say that it is this."""
    return Environment(
        NAME,
        ("PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT", "PMI_ID"),
        "start the program with mpiexec, srun --mpi=pmi2 or flux run, or unset what is set of PMI_*",
    )


def find() -> Found | None:
    """The launcher, None when nothing of it is set.

    Raises
    ------
    ConfigError
        When its variables are half set, or MPI in this process uses its connection.
    """
    environment = variables()
    if not environment.is_set():
        return None
    if "mpi4py.MPI" in sys.modules:
        raise ConfigError(
            "MPI, which mpi4py has started in this process, uses the connection to the launcher (PMI-1)",
            operation="job",
            remedy="join through it: ofipy.job(comm=mpi4py.MPI.COMM_WORLD)",
        )
    port = environment.optional("PMI_PORT")
    if port is not None and environment.optional("PMI_FD") is None:
        number = environment.number("PMI_ID", "PMI_RANK")
        return Found(
            NAME,
            number,
            None,
            environment.read,
            lambda deadline, _key: Pmi1(_connect(environment, port, deadline), deadline, number),
        )
    rank, size = environment.rank_and_size(("PMI_RANK",), ("PMI_SIZE",))
    descriptor = environment.number("PMI_FD")
    return Found(
        NAME,
        rank,
        size,
        environment.read,
        lambda deadline, _key: Pmi1(
            _inherited(environment, descriptor), deadline, None, rank=rank, size=size
        ),
    )


def _inherited(environment: Environment, descriptor: int) -> socket.socket:
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError as error:
        raise environment.wrong(f"PMI_FD={descriptor} is no open socket: {error.strerror}") from None
    os.set_inheritable(descriptor, False)  # a program that this one starts is another process of no job
    return connection


def _connect(environment: Environment, port: str, deadline: Deadline) -> socket.socket:
    host, _, number = port.rpartition(":")
    if not host or not number.isdigit():
        raise environment.wrong(f"PMI_PORT={port!r} in the environment; host:port is meant")
    try:
        return socket.create_connection((host, int(number)), timeout=deadline.left())
    except OSError as error:
        raise NotConnected(
            f"the launcher does not answer at PMI_PORT={port}: {error.strerror or error}",
            operation="job",
            remedy=environment.remedy,
        ) from None


class Pmi1:
    """The connection to the launcher.

    Parameters
    ----------
    connection : socket
        To it.
    deadline : Deadline
        For the first words.
    number : int, optional
        Of this process, as it must say itself over a connection of its own; the launcher then tells rank and size.
    rank, size : int
        Where the environment has told them.
    """

    def __init__(
        self,
        connection: socket.socket,
        deadline: Deadline,
        number: int | None,
        *,
        rank: int = 0,
        size: int = 0,
    ) -> None:
        self.rank, self.size = rank, size
        self.host = os.environ.get("PMI_HOSTNAME") or socket.gethostname()
        self._socket = connection
        self._unread = b""
        self._fences = 0
        if number is not None:
            self._introduce(number, deadline)
        answer = self._ask("cmd=init pmi_version=1 pmi_subversion=1", deadline)
        if answer.get("rc", "0") != "0":
            raise self._failed(f"it refused to begin: {answer}")
        self._room = int(self._ask("cmd=get_maxes", deadline).get("vallen_max", 256))
        self._space = self._ask("cmd=get_my_kvsname", deadline)["kvsname"]

    def _introduce(self, number: int, deadline: Deadline) -> None:
        self._ask(f"cmd=initack pmiid={number}", deadline)
        told: dict[str, str] = {}
        while not {"rank", "size", "debug"} <= told.keys():
            told |= self._answer(deadline)
        self.rank, self.size = int(told["rank"]), int(told["size"])

    def fence(
        self, values: Mapping[str, bytes], wanted: Iterable[str], deadline: Deadline
    ) -> dict[str, bytes]:
        """As of a launcher: put, barrier, get."""
        self._fences += 1
        for name, value in values.items():
            for number, part in enumerate(self._parts(value)):
                self._ask(
                    f"cmd=put kvsname={self._space} key={self._key(name, number)} value={part}", deadline
                )
        self._ask("cmd=barrier_in", deadline)
        return {name: self._value(name, deadline) for name in wanted}

    def _parts(self, value: bytes) -> list[str]:
        text = base64.urlsafe_b64encode(value).decode().rstrip("=")
        room = self._room - 8  # for the mark, and a zero behind
        parts = [text[start : start + room] for start in range(0, len(text), room)] or [""]
        return [part + _MORE for part in parts[:-1]] + [parts[-1] + _LAST]

    def _key(self, name: str, part: int) -> str:
        return f"ofipy-{self._fences}-{name}-{part}"

    def _value(self, name: str, deadline: Deadline) -> bytes:
        text = ""
        while not text.endswith(_LAST):
            key = self._key(name, text.count(_MORE))
            part = self._ask(f"cmd=get kvsname={self._space} key={key}", deadline).get("value", "")
            if not part.endswith((_MORE, _LAST)):
                raise self._failed(f"it has no value for {key}")
            text += part
        text = text.replace(_MORE, "").removesuffix(_LAST)
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

    def _ask(self, line: str, deadline: Deadline) -> dict[str, str]:
        try:
            self._socket.settimeout(deadline.left() or 1e-3)
            self._socket.sendall(line.encode() + b"\n")
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from None
        answer = self._answer(deadline)
        if answer.get("rc", "0") != "0":
            raise self._failed(f"it refused «{line[:60]}»: {answer.get('msg', answer)}")
        return answer

    def _answer(self, deadline: Deadline) -> dict[str, str]:
        while b"\n" not in self._unread:
            try:
                self._socket.settimeout(deadline.left() or 1e-3)
                more = self._socket.recv(4096)
            except TimeoutError:
                raise deadline.missed("the launcher did not answer, or not every process came") from None
            except OSError as error:
                raise self._failed(error.strerror or str(error)) from None
            self._unread += more
            if not more or len(self._unread) > _LINE_MAX:
                raise self._failed("it has closed the connection" if not more else "its answer has no end")
        line, _, self._unread = self._unread.partition(b"\n")
        pairs = (word.partition("=") for word in line.decode(errors="replace").split())
        return {name: value for name, _, value in pairs}

    def _failed(self, why: str) -> FabricError:
        return NotConnected(
            f"the launcher behind PMI_FD or PMI_PORT cannot be spoken to: {why}",
            operation="job",
            remedy=variables().remedy,
        )

    def close(self) -> None:
        """Say goodbye, so that the end of this process is no failure."""
        if self._socket.fileno() < 0:
            return
        with suppress(FabricError):  # it is gone: nobody is left who would take it for one
            self._ask("cmd=finalize", Deadline(2))
        self._socket.close()
