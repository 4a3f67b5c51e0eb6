# SPDX-License-Identifier: BSD-3-Clause
"""One test: its server and its client, each a process, and what came of them."""

import os
import re
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

from fabtests.base.program import find, names
from fabtests.base.session import READY
from fabtests.suite.hosts import Hosts
from fabtests.suite.outcome import NOT_RUN, Outcome

__all__ = ["Running", "run_entry"]

_GRACE = 5.0
"""Seconds for the second side to end when the first has failed."""

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Running:
    """The processes of all tests that run, for who ends them from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def start(self, command: list[str]) -> "subprocess.Popen[str]":
        """Start one, in a process group that ends as one; after :meth:`stop` it ends at once."""
        with self._lock:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            self._processes.add(process)
            if self._stopped:
                _kill(process)
            return process

    def forget(self, processes: Iterable["subprocess.Popen[str]"]) -> None:
        """They have ended."""
        with self._lock:
            self._processes.difference_update(processes)

    def stop(self) -> None:
        """End all of them; each test's thread finds its own ended."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                _kill(process)


def _kill(process: "subprocess.Popen[str]") -> None:
    if process.returncode is None:  # else its number may be another's
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def run_entry(
    entry: str, provider: str | None, *, hosts: Hosts, limit: float, running: Running | None = None
) -> Outcome:
    """Run one command line of a set.

    Parameters
    ----------
    entry : str
        The program and its options.
    provider : str, optional
        The provider of both sides.
    hosts : Hosts
        Where they run.
    limit : float
        Seconds until it has failed.
    running : Running, optional
        Where its processes are known while they run.
    """
    arguments = shlex.split(entry)
    if provider is not None:
        arguments[1:1] = ["-p", provider]
    begin = time.monotonic()
    sides = _Sides(begin + limit, running or Running())
    try:
        if _two_sided(arguments[0]):
            sides.run_both(arguments, hosts)
        else:
            sides.start(hosts.command(arguments, client=False))
            sides.finish()
        return sides.outcome(entry, time.monotonic() - begin)
    except _OverTime:
        return Outcome(
            entry, "failed", time.monotonic() - begin, f"not finished within {limit:g} s", sides.stop()
        )
    finally:
        sides.stop()


def _two_sided(name: str) -> bool:
    return name in names() and find(name).run is not None


class _OverTime(Exception):
    """The time of the test is over."""


class _Sides:
    """The processes of a test."""

    def __init__(self, deadline: float, running: Running) -> None:
        self._deadline = deadline
        self._running = running
        self._processes: list[subprocess.Popen[str]] = []
        self._said: list[str] = []

    def start(self, command: list[str]) -> "subprocess.Popen[str]":
        """Start one side."""
        process = self._running.start(command)
        self._processes.append(process)
        return process

    def run_both(self, arguments: list[str], hosts: Hosts) -> None:
        """The server, and when it says where it is the client."""
        # What the suite adds goes before the options of the entry, which may have the same letters.
        name, *options = arguments
        server = self.start(
            hosts.command([name, *options, "--announce", "-B", "0", *_port_zero(options)], client=False)
        )
        words = self._ready(server)
        if words is not None:
            where, port = words[-2:]
            self.start(
                hosts.command(
                    [name, *_with_port(options, port), "--oob-port", port, *hosts.oob_host, where],
                    client=True,
                )
            )
        self.finish()

    def _ready(self, server: "subprocess.Popen[str]") -> list[str] | None:
        """The words of the line that says where the server is; None: it has ended without one."""
        said, output = "", server.stdout
        assert output is not None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                if not selector.select(max(self._deadline - time.monotonic(), 0)):
                    self._said.append(said)
                    raise _OverTime
                part = os.read(output.fileno(), 4096).decode(errors="replace")
                said += part
                for line in said.splitlines(keepends=True):
                    if line.startswith(READY) and line.endswith("\n"):
                        return line.split()
                if not part:
                    self._said.append(said)
                    return None

    def finish(self) -> None:
        """Wait for all that were started, the last one first; who is left alone is not waited for long."""
        for process in reversed(self._processes):
            left = self._deadline - time.monotonic()
            if any(each.poll() not in (None, 0) for each in self._processes):
                left = min(left, _GRACE)
            try:
                said, _ = process.communicate(timeout=max(left, 0.01))
            except subprocess.TimeoutExpired:
                raise _OverTime from None
            self._said.append(said)

    def stop(self) -> str:
        """End what still runs; what all of them said."""
        for process in self._processes:
            if process.poll() is None:
                _kill(process)
                said, _ = process.communicate()
                self._said.append(said)
        self._running.forget(self._processes)
        return "\n".join(filter(None, self._said))

    def outcome(self, entry: str, seconds: float) -> Outcome:
        """What the exit codes say."""
        codes = [process.returncode for process in self._processes]
        said = _ANSI.sub("", "\n".join(filter(None, self._said)))
        if not any(codes):
            return Outcome(entry, "passed", seconds)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        if all(code in (0, *NOT_RUN) for code in codes):
            reason = next((line for line in lines if line.startswith("not run: ")), "")
            return Outcome(entry, "not_run", seconds, reason.removeprefix("not run: "))
        told = next(
            (line for line in reversed(lines) if line.startswith("fabtests: ")), lines[-1] if lines else ""
        )
        return Outcome(entry, "failed", seconds, f"exit codes {codes}: {told}", said)


def _port_zero(options: list[str]) -> list[str]:
    """Any port for ``-b`` and ``-E``, so that tests do not meet each other."""
    return [f"{each}=0" for each in options if each in ("-b", "-E")]


def _with_port(options: list[str], port: str) -> list[str]:
    """The port that the server took."""
    return [f"{each}={port}" if each in ("-b", "-E") else each for each in options]
