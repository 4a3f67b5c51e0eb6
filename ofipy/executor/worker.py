# SPDX-License-Identifier: BSD-3-Clause
"""A worker: it runs the tasks of an executor in its main thread, one after the other.

A second thread does nothing but wait for the end of the executor's process. If that comes while a task runs, the worker
ends within a second, whatever the task does. The thread has an endpoint and a domain of its own. In the main thread's
domain it would be the one that sleeps on the descriptor, and every message would wake both threads.
"""

import logging
import os
import pickle
import signal
import sys
import threading
import traceback
from contextlib import ExitStack, suppress
from types import FrameType
from typing import Any

from ofipy._base import config
from ofipy._base.errors import Canceled, Closed, ConnectionRefused, FabricError, PeerLost
from ofipy._completion.request import Message
from ofipy._discovery.address import Address
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.open import open as open_endpoint
from ofipy._operations.objects import read_object
from ofipy.executor import main_module, wire
from ofipy.executor.call import failure_of, run
from ofipy.executor.trust import refuse_stranger
from ofipy.executor.wire import Kind, To

__all__ = ["Worker", "main"]

_log = logging.getLogger("ofipy.executor")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GRACE_SECONDS = 0.5
"""Between two looks at the main thread, when the executor's process has ended."""


class _Leave(BaseException):
    """A signal has come while the worker was idle."""


class Worker:
    """Serve an executor in this process. The connection is open when this returns.

    Parameters
    ----------
    address : Address, bytes or str
        Of the executor.
    name : str, optional
        What people call the worker. Default: process and host.

    Raises
    ------
    AccessDenied
        When the executor has proven no key, and what it sends would be unpickled.
    FabricError
        When there is no executor at the address.
    """

    def __init__(self, address: Address | bytes | str, *, name: str | None = None) -> None:
        self._name = name or wire.worker_name(os.getpid())
        with ExitStack() as opened:
            self._endpoint: Endpoint[Any] = opened.enter_context(open_endpoint(progress="manual"))
            seconds = float(config.value("CONNECT_TIMEOUT") or 10)
            self._executor: Peer = self._endpoint.insert(address, wait=seconds)
            refuse_stranger(self._endpoint, self._executor, "worker")
            guard = opened.enter_context(open_endpoint(progress="manual"))
            self._life = guard.trecv(guard.insert(address, wait=seconds), **wire.filter_of(To.NOBODY))
            self._opened = opened.pop_all()
        self._leaving = False  # a signal has come
        self._idle = False  # the main thread waits for a message, which a signal may interrupt
        self._busy = False  # the main thread runs a task
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="ofipy-worker", daemon=True)

    def serve(self) -> int:
        """Run tasks until the executor dismisses this worker, or a signal comes.

        Returns
        -------
        int
            The exit status: 1 if the executor was lost.
        """
        before = [signal.signal(number, self._signalled) for number in _SIGNALS]
        self._watcher.start()
        try:
            return self._serve()
        except (PeerLost, ConnectionRefused) as error:
            print(f"ofipy worker: the executor is lost: {error}", file=sys.stderr)
            return 1
        finally:
            self._ended.set()
            self._life.cancel()
            self._watcher.join()
            self._opened.close()
            for number, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(number, handler)

    def _serve(self) -> int:
        try:
            self._send(Kind.HELLO, wire.pack_hello(self._name), To.DOOR)
            while (message := self._next()) is not None:
                kind = wire.kind_of(message.tag)
                if kind == Kind.STOP:
                    return 0
                if kind == Kind.REFUSED:
                    print(
                        f"ofipy worker: refused: {bytes(message).decode(errors='replace')}", file=sys.stderr
                    )
                    return 1
                if kind == Kind.WELCOME:
                    self._load(pickle.loads(message.data))
                elif kind == Kind.TASK:
                    self._run(wire.number_of(message.tag), message.data)
                del message  # its memory lives as long as the arguments of the task
        except _Leave:
            pass
        self._leave()
        return 0

    def _next(self) -> Message | None:
        """The next message; None: a signal has come, and no further task is to be begun."""
        if self._leaving:
            return None
        request = self._endpoint.trecv(self._executor, **wire.filter_of(To.WORKER))
        self._idle = True
        try:
            if self._leaving:  # between the first look and the flag
                raise _Leave
            return request.wait()
        finally:
            self._idle = False

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        """Finish the task, if there is one; a second signal ends the process as it would without this."""
        self._leaving = True
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        if self._idle:
            self._idle = False
            raise _Leave

    def _leave(self) -> None:
        """Begin no further task. One that is on its way is dropped, and the executor gives it to another worker."""
        self._send(Kind.LEAVE)
        while True:
            message = self._endpoint.trecv(self._executor, **wire.filter_of(To.WORKER)).wait()
            if wire.kind_of(message.tag) == Kind.STOP:
                return

    def _load(self, main: main_module.Main) -> None:
        try:
            missing = main_module.load(main)
        except Exception:
            traceback.print_exc()  # whole, whatever the exception is
            sys.exit(1)
        if missing is not None:
            _log.warning("functions of the script cannot run here: %s", missing)
        self._send(Kind.READY)

    def _run(self, number: int, data: bytearray) -> None:
        try:
            call = read_object(data)
            del data
            self._busy = True
            outcome = True, run(call, _initialize)
        except KeyboardInterrupt:
            if self._leaving:  # a second Ctrl-C
                raise
            outcome = False, failure_of(KeyboardInterrupt())
        except BaseException as error:
            outcome = False, failure_of(error)
        finally:
            self._busy = False
        try:
            self._send_outcome(number, outcome)
        except (PeerLost, ConnectionRefused, Closed):
            raise
        except Exception as error:
            error.add_note("the task has run, and its result cannot be sent: it must be picklable")
            self._send_outcome(number, (False, failure_of(error)))

    def _send_outcome(self, number: int, outcome: tuple[bool, Any]) -> None:
        self._endpoint.tsend_obj(
            outcome, self._executor, tag=wire.tag(To.EXECUTOR, Kind.RESULT, number)
        ).wait()

    def _send(self, kind: Kind, data: bytes = b"", to: To = To.EXECUTOR) -> None:
        self._endpoint.tsend(data, self._executor, tag=wire.tag(to, kind)).wait()

    def _watch(self) -> None:
        try:
            self._life.wait()
        except (Canceled, Closed):
            return
        except FabricError as error:
            # An idle main thread gets the same error, or STOP before it, and ends in order.
            while not self._busy:
                if self._ended.wait(_GRACE_SECONDS):
                    return
            print(f"ofipy worker: the executor is lost, and its task with it: {error}", file=sys.stderr)
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(1)


def _initialize(initializer: bytes) -> None:
    function, arguments = pickle.loads(initializer)
    function(*arguments)


def main() -> int:
    """Serve the executor whose address is the first argument."""
    try:
        return Worker(sys.argv[1]).serve()
    except FabricError as error:
        print(f"ofipy worker: {error}", file=sys.stderr)
        return 1
