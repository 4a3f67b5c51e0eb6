# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Callable, Generator
from typing import Any, Self, final

from typing_extensions import disjoint_base

from ofipy._completion.request import PreparedRequest

CALLS: list[str]
OBJECTS: list[str]
PLAIN: int
MESSAGE: int
MANY: int
MISSES_ENOUGH: int

def start(
    first: PreparedRequest,
    /,
    *others: PreparedRequest,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> None: ...
def start_some(requests: tuple[PreparedRequest, ...], nanoseconds: int, /) -> int: ...
def outcomes(requests: list[Any], /) -> list[Any]: ...
def loop_is_running() -> bool: ...
def memory_freed() -> None: ...
def sender(kind: type, op: int, function: Callable[..., Any], text: str, /) -> Any: ...
def bind(calls: tuple[int, ...], objects: tuple[Any, ...], /) -> None: ...

@disjoint_base
class Waitable:
    _endpoint: Any
    _handle: int
    _op: int
    _peer: int
    _incarnation: int
    _fetched: Any
    _over: bool
    _kept: bool
    _awaiting: int
    _claimed: bool
    _too_large: bool
    _gone: bool
    _length: int
    _room: int
    _tag: int
    _data: int
    _source: int
    _receiver: int
    _flags: int
    _error: int
    _provider_error: int
    @property
    def _finished(self) -> bool: ...
    @property
    def _has_data(self) -> bool: ...
    @property
    def _rows(self) -> int: ...
    @property
    def _keep(self) -> Any: ...
    @property
    def _next_message(self) -> Any: ...
    def wait(self, timeout: float | None = None) -> Any: ...
    def _attempt(self, nanoseconds: int, /) -> bool: ...
    def _await(self, timeout: float | None, /) -> bool: ...
    def _cancel(self) -> int: ...
    def _unclaim(self) -> bool: ...
    def _leave(self) -> None: ...
    def _watch(self, function: Callable[[], object], /) -> bool: ...

class RequestBase(Waitable):
    def _news(self) -> Waiter: ...
    def __await__(self) -> Generator[Any, None, Any]: ...

@final
class Waiter:
    _asyncio_future_blocking: bool
    def __await__(self) -> Generator[Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, value: None, /) -> Any: ...
    def throw(self, type: Any, value: Any = None, traceback: Any = None, /) -> Any: ...
    def close(self) -> None: ...
    def get_loop(self) -> Any: ...
    def add_done_callback(self, function: Callable[[Any], object], /, *, context: Any = None) -> None: ...
    def cancel(self, msg: Any = None) -> bool: ...
    def result(self) -> None: ...

@final
class Notices:
    def __new__(cls, pointer: int, owner: Any, queue: Any, /) -> Self: ...
    def queue(self) -> Any: ...
    def collect(self) -> int: ...
    def close(self) -> None: ...

@disjoint_base
class PollerBase:
    waiting: int
    plain: bool
    active: bool
    scheduled: bool
    misses: int
    longest_spin: int
    watched: dict[Notices, Any]
    def __new__(cls, loop: Any, ready: Any, cancelled: type[BaseException], plain: bool, /) -> Self: ...
    def run(self, progress: bool | Notices, /) -> None: ...
    def spin(self, nanoseconds: int, /) -> bool: ...
    def arm_all(self) -> list[Notices]: ...
    def sources(self) -> list[Notices]: ...

@final
class Poster:
    def __new__(
        cls,
        pointer: int,
        domain: Any,
        vector: Any,
        find: Callable[[int, int], Any],
        starts: list[int],
        own: Callable[[Any, int, int], tuple[int, int] | None],
        own_above: int,
    ) -> Self: ...
    def trecv(self, endpoint: Any, buffer: Any, peer: Any, tag: Any, /) -> Any: ...
    def rma(self, endpoint: Any, op: int, buffer: Any, peer: Any, remote: int, flags: int, /) -> Any: ...
    def atomic(
        self,
        endpoint: Any,
        code: int,
        value: Any,
        compare: Any,
        into: Any,
        op: Any,
        peer: Any,
        remote: int,
        flags: int,
        /,
    ) -> Any: ...
    def start(
        self, endpoint: Any, type: type[Any], kind: int, record: Any, keep: Any, nanoseconds: int, /
    ) -> Any: ...
    def collective(
        self,
        endpoint: Any,
        type: type[Any],
        group: int,
        call: int,
        keep: Any,
        nanoseconds: int | None,
        /,
    ) -> Any: ...
    def agreement(
        self, endpoint: Any, type: type[Any], group: int, flags: int, value: int, result: int, keep: Any, /
    ) -> Any: ...
    def plain_collective(
        self,
        type: type[Any],
        group: Any,
        endpoint: Any,
        address: int,
        name: str,
        kind: int,
        source: Any,
        target: Any,
        is_written: bool,
        op: int,
        root: int,
        value: Any,
        source_blocks: int,
        target_blocks: int,
        rank: int,
        /,
    ) -> Any: ...
    def prepare(self, endpoint: Any, type: type[Any], record: Any, keep: Any, /) -> Any: ...
    def adopt(self, endpoint: Any, type: type[Any], handle: int, peer: int, /) -> Any: ...
    def reach(self, endpoint: Any, type: type[Any], peer: int, nanoseconds: int, /) -> Any: ...
    def close(self, successor: Any, /) -> None: ...
