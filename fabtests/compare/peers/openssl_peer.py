# SPDX-License-Identifier: BSD-3-Clause
"""OpenSSL alone over a bare TCP connection, with loops in C that spin: what encryption takes, and nothing else."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import ofipy
from fabtests.compare.contender import Times
from fabtests.compare.peers.socket_peer import Socket

__all__ = ["OpenSsl"]

SOURCE = Path(__file__).with_name("openssl_loop.c")
COMPILE_SECONDS = 60


def load_loops() -> ctypes.CDLL:
    """Compile the loops against the installed OpenSSL, the library that ofipy loads.

    Raises
    ------
    ProviderUnavailable
        When there is no compiler, or no headers of OpenSSL.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise ofipy.ProviderUnavailable("cc is not on PATH; Debian's package gcc has it")
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/openssl_loop.so"
        compiled = subprocess.run(
            [compiler, "-O3", "-shared", "-fPIC", "-o", library, str(SOURCE), "-lssl", "-lcrypto"],
            capture_output=True,
            text=True,
            timeout=COMPILE_SECONDS,
            check=False,
        )
        if compiled.returncode != 0:
            raise ofipy.ProviderUnavailable(
                f"cannot compile {SOURCE.name}; Debian's package libssl-dev has what it needs: {compiled.stderr}"
            )
        loops = ctypes.CDLL(library)
    loops.tls_open.restype = ctypes.c_void_p
    loops.tls_open.argtypes = (ctypes.c_int, ctypes.c_int)
    loops.tls_close.argtypes = (ctypes.c_void_p,)
    pointer, size, count = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
    loops.tls_pingpong.argtypes = (pointer, ctypes.c_int, pointer, pointer, size, count, pointer)
    loops.tls_stream.argtypes = (pointer, ctypes.c_int, pointer, size, count)
    loops.OpenSSL_version.restype = ctypes.c_char_p
    return loops


class OpenSsl(Socket):
    """One ``SSL_write_ex`` a message, and as many ``SSL_read_ex`` as there are records."""

    def __init__(self, first: bool) -> None:
        self._loops = load_loops()  # first: it may raise, and nothing is open yet
        super().__init__(first)
        self._tls: int | None = None

    def version(self) -> str:
        """Of the library."""
        return str(self._loops.OpenSSL_version(0).decode())

    def meet(self, other: int | None) -> None:
        """Connect, or accept, and shake hands.

        Raises
        ------
        RuntimeError
            When the handshake fails.
        """
        super().meet(other)
        assert self._connection is not None
        self._tls = self._loops.tls_open(self._connection.fileno(), not self.first)
        if self._tls is None:
            raise RuntimeError("OpenSSL's handshake failed")

    def measure(self, count: int, times: Times | None) -> None:
        """One call."""
        nanoseconds = times.ctypes.data if times is not None else None
        ends = self.outgoing.ctypes.data, self.incoming.ctypes.data
        self._check(
            self._loops.tls_pingpong(self._tls, self.first, *ends, self.outgoing.nbytes, count, nanoseconds)
        )

    def stream(self, window: int) -> None:
        """One call."""
        buffer = self.outgoing if self.first else self.incoming
        self._check(self._loops.tls_stream(self._tls, self.first, buffer.ctypes.data, buffer.nbytes, window))

    @staticmethod
    def _check(result: int) -> None:
        if result != 0:
            raise RuntimeError("OpenSSL's connection failed")

    def close(self) -> None:
        """Close the connection."""
        if self._tls is not None:
            self._loops.tls_close(self._tls)
            self._tls = None
        super().close()
