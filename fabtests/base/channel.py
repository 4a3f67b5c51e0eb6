# SPDX-License-Identifier: BSD-3-Clause
"""The TCP connection between two sides, beside the fabric.

``fabtests perf`` sends one JSON object a line, as perftest's own exchange goes over TCP; the programs that speak
libfabric's protocol send bytes (:mod:`fabtests.base.out_of_band`).
"""

import errno
import json
import re
import socket
import time
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Self

from fabtests.base.program import Failed, NotRun
from ofipy.cli.support import ExitCode

__all__ = ["Channel", "connect", "listen", "printable", "told_error"]

LONGEST = 1 << 20  # bytes of a line; addresses and handles of some hundred queue pairs fit
LONGEST_ERROR = 2000
_PART = 1 << 16
_CONNECT_SECONDS = 30.0

_NOT_RUN = (errno.ENOSYS, errno.ENODATA)
_CONTROL = re.compile(r"[^\n\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]")


def printable(text: str) -> str:
    """What another process says, without what a terminal would obey."""
    return _CONTROL.sub("?", text)


def told_error(told: dict[str, Any], *, who: str = "") -> Exception:
    """What another process ended with, by the text and the exit code that it tells: one of ours, else 1."""
    text, code = f"{who}{printable(str(told['error'])[:LONGEST_ERROR])}", told.get("code")
    if type(code) is int and code in _NOT_RUN:
        return NotRun(text, code=code)
    failed = Failed(text)
    if type(code) is int and code == ExitCode.NO_PROVIDER:
        failed.exit_code = code
    return failed


class Channel:
    """One connection, from either side.

    Parameters
    ----------
    connection : socket.socket
        Connected; closed with this.
    name : str
        What errors call it.
    """

    def __init__(self, connection: socket.socket, *, name: str = "connection") -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = connection
        self._name = name
        self._buffer = bytearray()
        self.limit: float | None = None
        """Seconds to wait for what comes; None: as long as it takes."""

    def fileno(self) -> int:
        """To wait for, where no line :attr:`has_come` already."""
        return self._socket.fileno()

    @property
    def has_come(self) -> bool:
        """Whether a line is here that nobody has received: the socket says nothing of it."""
        return b"\n" in self._buffer

    @property
    def own_host(self) -> str:
        """Address of our end."""
        host: str = self._socket.getsockname()[0]
        return host

    def send(self, **message: Any) -> None:
        """Send an object.

        Raises
        ------
        Failed
            When the other side is gone.
        """
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Send bytes.

        Raises
        ------
        Failed
            When the other side is gone.
        """
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise _gone(error) from None

    def receive(self, **expected: type) -> dict[str, Any]:
        """Wait for an object.

        Parameters
        ----------
        **expected : type
            What it must have, and of which type each is.

        Raises
        ------
        Failed, NotRun
            When the other side is gone, says what went wrong there, or is no ``fabtests perf``.
        """
        try:
            message = json.loads(self._line())
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise Failed("what came over the connection is not of fabtests perf")
        if "error" in message:
            raise told_error(message, who="the other side: ")
        for name, kind in expected.items():
            if type(message.get(name)) is not kind:
                raise Failed(f"what came over the connection has no {name} as fabtests perf sends it")
        return message

    def receive_bytes(self, size: int) -> bytes:
        """Wait for that many bytes.

        Raises
        ------
        Failed
            When the other side is gone.
        """
        while len(self._buffer) < size:
            self._buffer += self._part()
        return self._take(size)

    def _line(self) -> bytes:
        begin = 0
        while (end := self._buffer.find(b"\n", begin)) < 0:
            begin = len(self._buffer)
            if begin > LONGEST:
                raise Failed(f"the other side sent a line of more than {LONGEST} bytes")
            self._buffer += self._part()
        return self._take(end + 1)[:end]

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _part(self) -> bytes:
        try:
            if not wait([self._socket], self.limit):
                raise Failed(f"the other side said nothing for {self.limit:g} s")
            part = self._socket.recv(_PART)
        except OSError as error:
            raise _gone(error) from None
        if not part:
            raise Failed(f"the other side closed the {self._name}")
        return part

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _gone(error: OSError) -> Exception:
    if isinstance(error, TimeoutError) and error.errno is None:
        return error  # the deadline of this command, no news of the connection
    return Failed(f"the other side is gone: {error}")


def listen(port: int, host: str | None = None) -> socket.socket:
    """A server's socket, at one address or everywhere; port 0: at any."""
    return socket.create_server((host or "", port))


def connect(host: str, port: int) -> socket.socket:
    """To a server that may not be there yet."""
    end = time.monotonic() + _CONNECT_SECONDS
    while True:
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
