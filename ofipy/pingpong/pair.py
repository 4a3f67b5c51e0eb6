# SPDX-License-Identifier: BSD-3-Clause
"""Two long-lived worker processes on two cores, and calls into both.

Each worker holds one object; :meth:`Pair.call` runs one of its methods in both processes at the same time.
The workers never outlive this process, and an exception in one ends the pair, since the other may be waiting
for it for ever.
"""

import os
import secrets
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Self

from ofipy.pingpong.leftovers import mapped_by, remove_leftovers
from ofipy.pingpong.pipe import DIED, ERROR, Pipe, exit_code_of

__all__ = ["Pair", "PairError", "PairTimeout"]

START_SECONDS = 120.0  # importing numpy and mpi4py on a cold, loaded or emulated machine takes a while
STOP_SECONDS = 5.0


class PairError(Exception):
    """A worker failed.

    Parameters
    ----------
    kind : str
        Name of the exception's class in the worker; ``died`` when the process is gone.
    text : str
        Its message.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind

    @property
    def exit_code(self) -> int:
        """The exit code of a program that ends with this error."""
        return exit_code_of(self.kind)


class PairTimeout(PairError, TimeoutError):
    """A worker did not answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__("TimeoutError", f"a worker process gave no answer within {seconds:g} s")


class Pair:
    """Start two workers.

    Parameters
    ----------
    target : str
        ``module:callable`` of the object that each worker makes; called with True in the first worker, False
        in the second.
    cores : tuple of int
        The core of the first worker, and of all others.
    launcher : sequence of str, optional
        Command that starts both processes and tells each its rank, such as MPICH's or Open MPI's ``mpiexec -n 2``;
        without one the workers are children of this process.
    environment : mapping of str, optional
        Variables of both processes, beside those of this one.
    python : str
        Interpreter of the workers, which has the same ofipy.
    count : int
        Number of workers; 1 for what needs no other side, more than two for many beside the first.
    **options
        Keyword arguments of `target`.

    Raises
    ------
    PairError
        When a worker does not start.
    """

    def __init__(
        self,
        target: str,
        *,
        cores: tuple[int, int],
        launcher: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
        count: int = 2,
        **options: Any,
    ) -> None:
        self._python = python
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[Pipe] = []
        self._workers: list[int] = []  # process ids, also of those that a launcher started
        try:
            self._pipes = self._launch(count, cores, launcher, dict(environment or {}))
            self._send("start", [((target,), options)] * count)
            self._collect(START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def _launch(
        self, count: int, cores: tuple[int, int], launcher: Sequence[str], environment: dict[str, str]
    ) -> list[Pipe]:
        address = f"fabtests-{secrets.token_hex(16)}"
        worker = [self._python, "-P", "-m", "ofipy.pingpong.worker", address, f"{cores[0]},{cores[1]}"]
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind("\0" + address)
            listener.listen(count)
            if launcher:
                self._spawn([*launcher, *worker], environment)
            else:
                for rank in range(count):
                    self._spawn(worker, environment | {"FABTESTS_RANK": str(rank)})
            return self._accept(listener, count)

    def _spawn(self, command: list[str], environment: dict[str, str]) -> None:
        # Its own session: Ctrl-C reaches this process only, which then ends the workers.
        self._processes.append(
            subprocess.Popen(
                command,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    def _accept(self, listener: socket.socket, count: int) -> list[Pipe]:
        ranked: dict[int, Pipe] = {}
        deadline = time.monotonic() + START_SECONDS
        listener.settimeout(0.2)
        while len(ranked) < count:
            try:
                accepted, _ = listener.accept()
            except TimeoutError:
                if any(process.poll() is not None for process in self._processes):
                    raise PairError(DIED, "a worker process ended while starting") from None
                if time.monotonic() > deadline:
                    raise PairTimeout(START_SECONDS) from None
                continue
            credentials = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            worker, user, _ = struct.unpack("3i", credentials)
            if user != os.getuid():
                accepted.close()
                continue
            self._workers.append(worker)
            accepted.setblocking(True)
            connection = Connection(accepted.detach())
            ranked[connection.recv()] = Pipe(connection)
        return [ranked[rank] for rank in range(count)]

    def call(self, name: str, /, *arguments: Any, timeout: float = 120.0, **options: Any) -> list[Any]:
        """Run one method in every worker at once.

        Parameters
        ----------
        name : str
            The method.
        timeout : float
            Seconds for all of them together.

        Returns
        -------
        list
            What each returned, the first worker's first.

        Raises
        ------
        PairError
            When a worker failed or died; the pair is gone then.
        PairTimeout
            When the time is over; the pair is gone then too.
        """
        return self.call_each(name, [arguments] * len(self._pipes), timeout=timeout, **options)

    def call_each(
        self, name: str, arguments: Sequence[tuple[Any, ...]], *, timeout: float = 120.0, **options: Any
    ) -> list[Any]:
        """Like :meth:`call`, with one tuple of positional arguments for each worker."""
        if not self._pipes:
            raise PairError(DIED, "the worker processes have ended")
        try:
            self._send(name, [(each, options) for each in arguments])
            return self._collect(timeout)
        except BaseException:
            self.kill()
            raise

    def _send(self, name: str, calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        for pipe, (arguments, options) in zip(self._pipes, calls, strict=True):
            try:
                pipe.send((name, arguments, options))
            except OSError:
                raise PairError(DIED, "a worker process is gone") from None

    def _collect(self, timeout: float) -> list[Any]:
        results: dict[Pipe, Any] = {}
        pending: list[Any] = list(self._pipes)
        deadline = time.monotonic() + timeout
        while pending:
            ready: list[Any] = wait(pending, max(0.0, deadline - time.monotonic()))
            if not ready:
                raise PairTimeout(timeout)
            for pipe in ready:
                word, result = pipe.receive()
                if word == ERROR:
                    raise PairError(result.kind, result.text)
                results[pipe] = result
                pending.remove(pipe)
        return [results[each] for each in self._pipes]

    def close(self) -> None:
        """Let the workers close what they hold, then end them."""
        for pipe in self._pipes:
            try:
                pipe.send(("stop", (), {}))
            except OSError:  # it is gone already
                continue
        deadline = time.monotonic() + STOP_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                break
        self.kill()

    def kill(self) -> None:
        """End the workers at once, and remove what they leave in /dev/shm."""
        mapped = mapped_by(self._workers)
        for process in self._processes:
            if process.poll() is None:
                process.terminate()  # not SIGKILL: a launcher must take its own children along
        for process in self._processes:
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pipe in self._pipes:
            pipe.close()
        remove_leftovers(self._workers, mapped)
        self._pipes, self._workers = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()
