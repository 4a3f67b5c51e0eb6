# SPDX-License-Identifier: BSD-3-Clause
"""PMIx, through the library that the launcher or its wheel has installed: Open MPI's prterun, Slurm's ``--mpi=pmix``.

Values are fetched from those who put them by the processes that want them: the fence collects nothing. The library's
calls wait without a limit, so each is made in a thread that is left behind where it does not come back.
"""

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from ofipy._base.errors import FabricError, NotConnected
from ofipy.jobs import pmix_library
from ofipy.jobs.launcher import Deadline, Environment, Found
from ofipy.jobs.pmix_library import Process, Value

__all__ = ["NAME", "Pmix", "find"]

NAME = "PMIx"

_WILDCARD = 2**32 - 2  # PMIX_RANK_WILDCARD
_GLOBAL = 3  # PMIX_GLOBAL: for every process of the job
_UINT32, _OBJECT = 14, 27  # of pmix_value_t


def variables() -> Environment:
    """Those that say that it is this."""
    return Environment(
        NAME,
        ("PMIX_RANK", "PMIX_NAMESPACE"),
        "start the program with prterun or srun --mpi=pmix, or unset what is set of PMIX_*",
    )


def find() -> Found | None:
    """The launcher, None when nothing of it is set.

    Raises
    ------
    ConfigError
        When its variables are half set.
    ProviderUnavailable
        When there is no ``libpmix.so``.
    """
    environment = variables()
    if not environment.is_set():
        return None
    rank = environment.number("PMIX_RANK")
    environment.text("PMIX_NAMESPACE")
    library = pmix_library.load()
    found = environment.read | {"libpmix": library._name}
    return Found(NAME, rank, None, found, lambda deadline, _key: Pmix(library, deadline))


class Pmix:
    """The process as a client of the launcher's server.

    Parameters
    ----------
    library : ctypes.CDLL
        Of :func:`ofipy.jobs.pmix_library.load`.
    deadline : Deadline
        For the server to answer.
    """

    def __init__(self, library: ctypes.CDLL, deadline: Deadline) -> None:
        self._library = library
        self._own = Process()
        self._fences = 0
        self._open = False
        self._call("PMIx_Init", lambda: self._library.PMIx_Init(ctypes.byref(self._own), None, 0), deadline)
        self._open = True
        self.rank: int = self._own.rank
        self.size: int = self._get(_WILDCARD, b"pmix.job.size", _UINT32, deadline).data.number
        self.host = os.environ.get("PMIX_HOSTNAME") or socket.gethostname()

    def fence(
        self, values: Mapping[str, bytes], wanted: Iterable[str], deadline: Deadline
    ) -> dict[str, bytes]:
        """As of a launcher. The name of a value is the rank that puts it."""
        self._fences += 1
        for name, value in values.items():
            self._put(self._key(name), value, deadline)
        self._call("PMIx_Commit", self._library.PMIx_Commit, deadline)
        self._call("PMIx_Fence", lambda: self._library.PMIx_Fence(None, 0, None, 0), deadline)
        return {name: self._value(name, deadline) for name in wanted}

    def _key(self, name: str) -> bytes:
        return f"ofipy-{self._fences}-{name}".encode()

    def _put(self, key: bytes, value: bytes, deadline: Deadline) -> None:
        room = ctypes.create_string_buffer(value, len(value))
        given = Value(type=_OBJECT)
        given.data.object.bytes = ctypes.addressof(room)
        given.data.object.size = len(value)
        self._call("PMIx_Put", lambda: self._library.PMIx_Put(_GLOBAL, key, ctypes.byref(given)), deadline)

    def _get(self, rank: int, key: bytes, kind: int, deadline: Deadline) -> Value:
        """A value that a process has put, or the launcher. It stays allocated: a few bytes, once."""
        whose = Process(self._own.namespace, rank)
        result = ctypes.POINTER(Value)()
        self._call(
            "PMIx_Get",
            lambda: self._library.PMIx_Get(ctypes.byref(whose), key, None, 0, ctypes.byref(result)),
            deadline,
        )
        if result.contents.type != kind:
            raise self._failed("PMIx_Get", f"{key.decode()} is of type {result.contents.type}, not {kind}")
        return result.contents

    def _value(self, name: str, deadline: Deadline) -> bytes:
        found = self._get(int(name), self._key(name), _OBJECT, deadline).data.object
        return ctypes.string_at(found.bytes, found.size)

    def _call(self, name: str, call: Callable[[], int], deadline: Deadline) -> None:
        codes: list[int] = []
        thread = threading.Thread(target=lambda: codes.append(call()), name=name, daemon=True)
        thread.start()
        thread.join(deadline.left())
        if not codes:
            raise deadline.missed(f"{name} did not return")
        if codes[0] != 0:
            said = self._library.PMIx_Error_string(codes[0])
            raise self._failed(name, f"{said.decode() if said else 'error'} ({codes[0]})")

    def _failed(self, name: str, why: str) -> FabricError:
        server = next(
            (each for each in sorted(os.environ) if each.startswith("PMIX_SERVER_URI")), "PMIX_SERVER_URI"
        )
        return NotConnected(
            f"the launcher's server, named by {server}, cannot be used: {name}: {why}",
            operation="job",
            remedy=variables().remedy,
        )

    def close(self) -> None:
        """Say goodbye, so that the end of this process is no failure."""
        if self._open:
            self._open = False
            with suppress(FabricError):  # it is gone: nobody is left who would take it for one
                self._call("PMIx_Finalize", lambda: self._library.PMIx_Finalize(None, 0), Deadline(2))
