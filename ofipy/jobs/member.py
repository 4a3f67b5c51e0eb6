# SPDX-License-Identifier: BSD-3-Clause
"""A process as a member of its job: launcher, key, the job's own endpoint, and who is on which host."""

import math
import os
import socket
import struct
import time
from collections.abc import Sequence

from ofipy._base import config
from ofipy._base.binding import lib, logger
from ofipy._base.encryption import is_encrypting
from ofipy._base.errors import Closed, ConfigError, ForkedError
from ofipy._discovery import providers
from ofipy._discovery.address import host_id
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.fabric import Domain
from ofipy._objects.open import open as open_endpoint
from ofipy.jobs import keys
from ofipy.jobs.dissemination import partners
from ofipy.jobs.exchange import Exchange
from ofipy.jobs.farewell import Farewell
from ofipy.jobs.launcher import Deadline, Found, Launcher
from ofipy.jobs.roster import Roster

__all__ = ["Member", "configured_timeout"]

_KEY = "0"  # names of values are ranks: rank 0 puts the key
_INTRODUCTION = struct.Struct("<16sH")  # id of the host, bytes of the address behind it


def configured_timeout() -> float:
    """``OFIPY_JOB_TIMEOUT``."""
    providers.known()  # reads the configuration file
    config.check_environment()
    return float(config.value("JOB_TIMEOUT") or 60)


class Member:
    """Joins on construction.

    Parameters
    ----------
    found : Found, optional
        The launcher; None: the process is alone.
    deadline : Deadline
        For all to come.

    Raises
    ------
    FabricError
        When it cannot be joined. Nothing is left open then.
    """

    def __init__(self, found: Found | None, deadline: Deadline) -> None:
        self.rank, self.size = 0, 1
        self.launcher_name = found.name if found is not None else "alone"
        self.hosts = [(host_id(), socket.gethostname())]
        self._process = os.getpid()
        self._launcher: Launcher | None = None
        self._key: keys.KeyFile | None = None
        self._exchange: Exchange | None = None
        self._farewell: Farewell | None = None
        self._roster: Roster | None = None
        self.closed = False
        self.key_since = -math.inf
        """Endpoints of domains opened before have no key; this early where they had one already."""
        if found is None:
            return
        try:
            self._join(found, deadline)
        except BaseException:
            if self._farewell is not None:
                self._farewell.close()
            self.close()
            raise

    def _join(self, found: Found, deadline: Deadline) -> None:
        configured = keys.configured()
        known = configured or found.key
        if known is not None and configured is None:
            self._keep(known)
        launcher = self._launcher = found.join(deadline, known)
        self.rank, self.size = launcher.rank, launcher.size
        if self.rank == 0:
            key, told = keys.offer(known)
            launcher.fence({_KEY: told}, (), deadline)
        else:
            key = keys.agreed(known, launcher.fence({}, (_KEY,), deadline)[_KEY])
        if known is None:
            self._keep(key)
        # All of the job find the same name, and nobody finds the key by it.
        name = f"{found.name}-{keys.proof(key, b'name of the job')[:4].hex()}"
        lib.ofp_process_describe(name.encode(), self.rank)
        self._exchange = self._open_exchange(launcher, deadline)
        self._introduce(launcher.host, deadline)
        if known is None:
            self._check_handover()

    def _check_handover(self) -> None:
        """Say that the launcher has carried the key over the network as plain text, where anything is encrypted."""
        if len({number for number, _ in self.hosts}) < 2 or not is_encrypting():
            return
        what = f"the job has several hosts, and {self.launcher_name} hands keys out unencrypted"
        remedy = (
            "make a key with `ofipy key new job.key`, copy it to every host and set OFIPY_AUTH_KEY_FILE to it"
        )
        if config.value("ENCRYPTION") == "required":
            raise ConfigError(f"OFIPY_ENCRYPTION=required: {what}", operation="job", remedy=remedy)
        if self.rank == 0:
            logger("ofipy.job").warning("%s (%s)", what, remedy)

    def _introduce(self, host: str, deadline: Deadline) -> None:
        """Tell the others on which host this process is, and where it hears who leaves the job."""
        address = b""
        if self.size > 1:
            self._roster = Roster(self.size)
            self._farewell = Farewell(self.rank, self.size, self._roster)
            address = self._farewell.address
        block = _INTRODUCTION.pack(host_id(), len(address)) + address + host.encode()
        introductions = [_read(block) for block in self.gather(block, deadline)]
        self.hosts = [(number, name) for number, name, _ in introductions]
        if self._farewell is not None:
            self._farewell.begin([address for _, _, address in introductions])

    def _keep(self, key: bytes) -> None:
        self._key = keys.KeyFile(key)
        self.key_since = time.monotonic()

    def _open_exchange(self, launcher: Launcher, deadline: Deadline) -> Exchange:
        endpoint = open_endpoint()
        try:
            wanted = {str(rank): rank for rank in partners(self.rank, self.size)}
            blobs = launcher.fence({str(self.rank): bytes(endpoint.address)}, wanted, deadline)
            peers = {rank: endpoint.insert(blobs[name]) for name, rank in wanted.items()}
            return Exchange(endpoint, self.rank, self.size, peers)
        except BaseException:
            endpoint.close(linger=0)
            raise

    def gather(self, block: bytes, deadline: Deadline) -> list[bytes]:
        """Everybody's block by rank."""
        if self._process != os.getpid():
            raise ForkedError(
                "the job is the parent process's",
                operation="job",
                remedy="only processes that the launcher started are of a job; share work with a child otherwise",
            )
        if self.closed:
            raise Closed(
                "this process has left the job",
                operation="job",
                remedy="close() it when nothing is exchanged any more",
            )
        return [block] if self._exchange is None else self._exchange.gather(block, deadline)

    def follow(self, endpoint: Endpoint[Domain], peers: Sequence[Peer], deadline: Deadline) -> None:
        """Have an endpoint know which of its peers, given by rank, have left the job.

        It returns once the neighbours of this process would notice its death, or the deadline has passed.
        """
        if self._roster is not None:
            self._roster.follow(endpoint, peers)
        if self._farewell is not None:
            self._farewell.await_neighbours(deadline)

    def leave(self, *, died: bool) -> None:
        """The process's last act: tell the others. The launcher is not told of a death, so it ends the job."""
        if not died:
            self.close()
        if self._farewell is not None:
            self._farewell.leave(died=died)

    def close(self) -> None:
        """Leave the job; in a forked child nothing happens."""
        if self.closed or self._process != os.getpid():
            return
        self.closed = True
        for part in (self._exchange, self._key, self._launcher):
            if part is not None:
                part.close()


def _read(block: bytes) -> tuple[bytes, str, bytes]:
    """What tells a process's host from others, the host's name, and the process's address.

    Where a host has no id, its name is what tells.
    """
    number, length = _INTRODUCTION.unpack_from(block)
    address, name = block[_INTRODUCTION.size :][:length], block[_INTRODUCTION.size + length :].decode()
    return (number if any(number) else name.encode()), name, address
