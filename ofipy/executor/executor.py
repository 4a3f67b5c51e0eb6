# SPDX-License-Identifier: BSD-3-Clause
"""The executor as a program sees it."""

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor as BaseExecutor
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from ofipy._base.binding import nanoseconds
from ofipy._base.errors import ConfigError, InvalidArgument, NotSupported
from ofipy._base.limits import whole_number
from ofipy._discovery.address import Address
from ofipy.executor import main_module, mapping
from ofipy.executor.children import usable_cores
from ofipy.executor.job import pool_of_job, size_of_job
from ofipy.executor.pool import Pool

__all__ = ["Executor"]

P = ParamSpec("P")
T = TypeVar("T")

_COUNT_MAX = 2**31 - 1


class Executor(BaseExecutor):
    """Run calls in other processes, by the interface of :mod:`concurrent.futures`.

    The workers are, by what is there:

    - with `listen`: processes that join by ``ofipy worker HOST:PORT``, at any time, beside `max_workers` of its own;
    - under ``python -m ofipy.executor script.py``: the other ranks of the job;
    - else: `max_workers` processes on this host, which it starts.

    Parameters
    ----------
    max_workers : int, optional
        Processes that it starts. Default: with `listen` none, else one for each processor that this process may use.
        In a job the ranks are there already, and this is ignored.
    listen : int or str, optional
        Port, ``host:port``, or name that stands for a port, at which workers join; 0: any port, as :attr:`address`
        says. Without a key only workers of this host can join.
    initializer : callable, optional
        Called in each worker before its first task of this executor. If it raises, the executor is broken.
    initargs : tuple
        Its arguments.
    retries : int
        How often a task whose worker dies is run again on another one. Then, and with 0, the task ends as
        :class:`ofipy.WorkerLost`.

    Raises
    ------
    ConfigError
        When strangers could connect, because no key is set; or in a job of several ranks that was started without
        ``-m ofipy.executor``.
    AccessDenied
        When a key is set, and the provider's peers do not prove it.
    InvalidArgument
        When a number is negative, or `listen` names no place.
    NotSupported
        In a worker that loads the script.

    Notes
    -----
    Functions, arguments and results are pickled; a function of the script travels by its name. Arrays in them leave
    from where they are, and arrive as parts of the message: they may not be changed until the future has ended.

    Examples
    --------
    >>> import math, ofipy
    >>> with ofipy.Executor(2) as executor:
    ...     list(executor.map(math.factorial, range(5)))
    [1, 1, 2, 6, 24]
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        listen: int | str | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: tuple[Any, ...] = (),
        retries: int = 0,
    ) -> None:
        if max_workers is not None:
            _check_count("max_workers", max_workers, least=0 if listen is not None else 1)
        _check_count("retries", retries, least=0)
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if main_module.is_loading():
            raise NotSupported(
                "a worker that loads the script makes no Executor",
                operation="Executor",
                remedy='put what the script does under: if __name__ == "__main__":',
            )
        self._pool = _choose_pool(max_workers, listen)
        try:
            self._session = self._pool.open_session(initializer, initargs, retries)
        except BaseException:
            self._pool.end_if_unused()
            raise
        # An executor that is dropped lets its tasks end, and then its workers.
        weakref.finalize(self, self._session.close).atexit = False

    @property
    def num_workers(self) -> int:
        """How many workers are here and ready now."""
        return self._pool.workers

    @property
    def address(self) -> Address:
        """Where workers join; ``str()`` of it is what ``ofipy worker`` takes."""
        return self._pool.address

    def bootup(self, wait: bool = True, *, workers: int | None = None, timeout: float | None = None) -> Self:
        """Wait until workers are ready. Tasks may be submitted before.

        Parameters
        ----------
        wait : bool
            False: return at once; workers start when the executor is made.
        workers : int, optional
            How many. Default: all that it has started or that the job has; with `listen` at least one.
        timeout : float, optional
            Seconds. Default: as long as it takes.

        Returns
        -------
        Executor
            Itself.

        Raises
        ------
        TimeoutError
            When they are not here in time.
        BrokenExecutor
            When no worker is left, and none will come.
        InvalidArgument
            When `workers` or `timeout` is out of range.
        """
        if workers is not None:
            _check_count("workers", workers)
        nanoseconds(timeout)
        if wait and not self._pool.wait_ready(workers, timeout):
            raise TimeoutError(f"{self.num_workers} workers are ready after {timeout:g} s")
        return self

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Call ``fn(*args, **kwargs)`` in a worker.

        Parameters
        ----------
        fn : callable
            Importable by the worker, by its module and name.
        *args, **kwargs
            Pickled when a worker gets the task.

        Returns
        -------
        concurrent.futures.Future
            It ends with the result; with what the call has raised, whose cause is the worker's traceback; with the
            error of pickling; or with :class:`ofipy.WorkerLost`.

        Raises
        ------
        RuntimeError
            After :meth:`shutdown`.
        BrokenExecutor
            When no worker is left, and none will come; or the initializer has failed.
        ForkedError
            In a forked child.
        """
        return self._pool.submit(self._session, fn, args, kwargs).future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[T]:
        """Call `fn` for each set of items, as :func:`map` does.

        Parameters
        ----------
        fn : callable
            As of :meth:`submit`.
        *iterables : iterable
            One for each argument; the shortest one ends it.
        timeout : float, optional
            Seconds, from this call on, within which a result must be here.
        chunksize : int
            Calls that make one task. Of short calls, larger chunks are faster.
        buffersize : int, optional
            Tasks that are submitted before their results are asked for. Default: all, now.
        unordered : bool
            Yield each result as soon as it is here.

        Returns
        -------
        iterator
            Over the results, in the order of the calls. Closing it cancels what has not begun.

        Raises
        ------
        InvalidArgument
            When `chunksize` or `buffersize` is below 1, or `timeout` below 0. It is a ValueError too.
        TimeoutError
            From the iterator, when a result is late.
        """
        return self.starmap(
            fn,
            zip(*iterables),  # noqa: B905  # as map: the shortest one ends it
            timeout=timeout,
            chunksize=chunksize,
            buffersize=buffersize,
            unordered=unordered,
        )

    def starmap(
        self,
        fn: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        *,
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[T]:
        """Call `fn` with the arguments in each item of `iterable`, as :func:`itertools.starmap` does.

        Parameters and errors are those of :meth:`map`.
        """
        _check_count("chunksize", chunksize)
        if buffersize is not None:
            _check_count("buffersize", buffersize)
        nanoseconds(timeout)
        collect: Any = mapping.unordered if unordered else mapping.in_order
        calls = (tuple(each) for each in iterable)
        if chunksize == 1:
            results: Iterator[T] = collect(lambda each: self.submit(fn, *each), calls, timeout, buffersize)
            return results
        chunk = partial(mapping.run_chunk, fn)
        chunks = mapping.chunks_of(calls, chunksize)
        return itertools.chain.from_iterable(
            collect(lambda each: self.submit(chunk, *each), chunks, timeout, buffersize)
        )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks; let those that were submitted end, then dismiss the workers.

        Parameters
        ----------
        wait : bool
            Return when all has ended. False: return at once; the interpreter's end waits.
        cancel_futures : bool
            Cancel the tasks that no worker has begun.
        """
        if cancel_futures:
            self._pool.cancel(self._session)
        self._session.close()
        if wait:
            self._pool.wait_for(self._session)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After Ctrl-C the program is to end soon: only what runs is waited for.
        self.shutdown(cancel_futures=isinstance(error, KeyboardInterrupt))

    def __repr__(self) -> str:
        state = ", shut down" if self._session.closed else ""
        return f"<Executor {self.num_workers} workers, {self._session.unfinished} tasks{state}>"


def _check_count(name: str, value: int, *, least: int = 1) -> None:
    whole_number(name, value, least, _COUNT_MAX, operation="Executor")


def _choose_pool(max_workers: int | None, listen: int | str | None) -> Pool:
    if listen is not None:
        node, service = _place(listen)
        return Pool(service=service, node=node, children=max_workers or 0, elastic=True)
    pool = pool_of_job()
    if pool is not None:
        return pool
    if max_workers is None and (size := size_of_job()) != 1:
        raise ConfigError(
            f"this process is one of a job of {size or 'several'} ranks, and they do not serve",
            operation="Executor",
            remedy="start the job's program by: python -m ofipy.executor script.py; or say max_workers=, which starts "
            "processes on this host",
        )
    return Pool(children=max_workers or usable_cores())


def _place(listen: int | str) -> tuple[str | None, int | str | None]:
    """Node and service of where workers join."""
    if isinstance(listen, int):
        return None, listen or None
    node, colon, service = listen.rpartition(":")
    if not service or (colon and not node):
        raise InvalidArgument(f"listen is {listen!r}; a port or host:port is meant", operation="Executor")
    return node.strip("[]") or None, int(service) if service.isdigit() else service
