# SPDX-License-Identifier: BSD-3-Clause
"""Servers of ``ofipy ping`` and ``ofipy doctor`` as processes, for tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.ports import free_port

SECONDS = 100


def run_command(*words: str, code: int = 0, **environment: str) -> tuple[str, str]:
    """What a subcommand of ``ofipy`` prints; it has to end with this code."""
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", *words],
        env=os.environ | {"OFIPY_LOG": "error"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout, ran.stderr


def here() -> str:
    """A free port of this host."""
    return f"127.0.0.1:{free_port()}"


class ServerProcess:
    """A server, and where it is."""

    def __init__(self, *words: str, prefix: Sequence[str] = (), **environment: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-P", "-m", "ofipy", *words],
            env=os.environ | {"OFIPY_LOG": "error"} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        found = re.search(r"Waiting at [\w:+]+://(\S+)", self.said)
        if found is None:
            self.said += self.process.stderr.read()
            raise AssertionError(f"no server: {self.said}")
        self.place = found[1]
        self.port = self.place.rpartition(":")[2]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code and its last words."""
        self.process.send_signal(number)
        _, words = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, words

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(*words: str, prefix: Sequence[str] = (), **environment: str) -> Iterator[ServerProcess]:
    """A server until the end of the block."""
    server = ServerProcess(*words, prefix=prefix, **environment)
    try:
        yield server
    finally:
        server.kill()
        assert server.process.stderr is not None
        server.process.stderr.close()
