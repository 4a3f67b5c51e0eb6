# SPDX-License-Identifier: BSD-3-Clause
"""The objects of one example of the fuzzer, and what can be done to them: each verb is a method.

An argument is what the verb needs, or anything else: objects that are closed, of another domain or of another kind, and
values that never fit. A verb does not check that; the library has to.
"""

import asyncio
import copy
import gc
import os
import pickle
import random
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from ledger import Guarded, Ledger
from pair import info_of

import ofipy

# A wait that may well be in vain.
SHORT = 0.02
FORK_SECONDS = 20.0


@dataclass
class Operation:
    """A request, with what it takes to check what it brings."""

    request: Any
    buffer: Guarded | None = None
    """Of a receive into memory, or of an access."""
    receives: bool = False
    data: bytes = b""
    """Of a prepared send."""
    seen: bool = False
    """What it brought was counted."""


def bare(what: Any) -> Any:
    """The library's object."""
    return what.request if isinstance(what, Operation) else what


class World:
    """Objects by name; a verb's result gets the name that the step says."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.ledger = Ledger()

    # ---------------------------------------------------------------------------------------------- making

    def domain(self, target: str, **options: Any) -> Any:
        return ofipy.Fabric(info_of(target)).domain(**options)

    def endpoint(self, domain: Any, **options: Any) -> Any:
        return domain.endpoint(**options).enable()

    def part(self, domain: Any, kind: str) -> Any:
        """A queue, a counter, a vector, a context or a listener."""
        return getattr(domain, kind)()

    def insert(self, endpoint: Any, other: Any) -> Any:
        return endpoint.insert(other.address)

    def remove(self, endpoint: Any, peer: Any) -> None:
        endpoint.av.remove(peer)

    def register(self, domain: Any, size: int, access: str) -> Any:
        """Memory that nobody writes to holds a message, so it may be sent."""
        memory = Guarded(size)
        if "write" not in access and "recv" not in access:
            memory.fill(self.ledger.new(size))
        return domain.register(memory.memory, access=access)

    def empty(self, domain: Any, size: int) -> Any:
        array = domain.empty(size, access="remote_read|send")
        array[:] = np.frombuffer(self.ledger.new(size), np.uint8)
        return domain.region(array)

    def remote(self, region: Any) -> Any:
        return region.remote

    def alias(self, endpoint: Any) -> Any:
        return endpoint.alias(complete="transmit")

    # ---------------------------------------------------------------------------------------------- messages

    def send(self, endpoint: Any, peer: Any, *, how: str, size: int, tag: Any, **options: Any) -> Any:
        data: Any = self.ledger.new(size)
        self.ledger.sending(data)
        if how == "prepared":
            request = endpoint.prepare_tsend(data, peer, tag=tag, **options)
            return Operation(request.start(), data=data)
        if how == "array":
            data = np.frombuffer(data, np.uint8).copy()
        elif how == "list":
            data = [data[:16], bytearray(data[16:])]
        if how == "untagged":
            return Operation(endpoint.send(data, peer, **options))
        return Operation(endpoint.tsend(data, peer, tag=tag, **options))

    def send_region(self, endpoint: Any, region: Any, peer: Any, *, raw: bool, tag: Any) -> Any:
        if isinstance(region, ofipy.Region) and not region.closed and region.access & ofipy.Access.SEND:
            self.ledger.sending(region.array)
        if raw:
            return endpoint.post_tsend(region, peer, tag=tag, context=1)
        return Operation(endpoint.tsend(region, peer, tag=tag))

    def receive(self, endpoint: Any, peer: Any, *, how: str, size: int, tag: Any, ignore: Any) -> Any:
        if how == "any":
            return Operation(endpoint.trecv(peer, tag=tag, ignore=ignore), receives=True)
        if how == "untagged":
            return Operation(endpoint.recv(peer), receives=True)
        buffer = Guarded(size)
        if how == "prepared":
            request = endpoint.prepare_trecv(buffer.memory, peer, tag=tag, ignore=ignore).start()
        elif how == "many":
            request = endpoint.trecv_many(buffer.memory, peer, tag=tag, ignore=ignore)
        elif how == "list":
            pieces = [buffer.memory[:8], buffer.memory[8:]]
            request = endpoint.trecv_into(pieces, peer, tag=tag, ignore=ignore)
        else:
            request = endpoint.trecv_into(buffer.memory, peer, tag=tag, ignore=ignore)
        return Operation(request, buffer, receives=True)

    def probe(self, endpoint: Any, *, tag: Any, discard: bool) -> None:
        endpoint.probe(tag=tag, discard=discard)

    def start(self, first: Any, second: Any) -> None:
        """Start what was prepared, again; what a receive brought before is forgotten."""
        for operation in (first, second):
            if isinstance(operation, Operation) and operation.data:
                self.ledger.sending(operation.data)
        ofipy.start(bare(first), bare(second))
        for operation in (first, second):
            if isinstance(operation, Operation):
                operation.seen = False

    # ---------------------------------------------------------------------------------------------- results

    def wait(self, what: Any, *, way: str) -> None:
        """Wait a little for a request, in one of many ways, and check what it brought."""
        request = bare(what)
        if isinstance(request, ofipy.MultiReceive):
            view = request.next(timeout=SHORT)
            if view is not None:
                self.ledger.arrived(view.data)
            return
        if way == "test" and not request.test():
            return
        if way == "done" and not request.done:
            return
        if way == "all":
            (result,) = ofipy.wait_all([request], timeout=SHORT)
        elif way == "any":
            result = ofipy.wait_any([request], timeout=SHORT).wait(timeout=SHORT)
        else:
            result = request.wait(timeout=SHORT)
        self.took(what, result)

    def took(self, what: Any, result: Any) -> None:
        """An operation has finished well: a message that it brought counts once."""
        if not isinstance(what, Operation) or what.seen:
            return
        what.seen = True
        if what.buffer is not None:
            what.buffer.check()
        if isinstance(result, ofipy.Message):
            self.ledger.arrived(result.data)
        elif what.receives and what.buffer is not None:
            self.ledger.arrived(what.buffer.memory[: result.length])

    def cancel(self, what: Any) -> None:
        bare(what).cancel()

    def tasks(self, what: Any, *, number: int, cancelled: int) -> None:
        """Several tasks await one request, and some are cancelled."""
        request = bare(what)

        async def together() -> list[Any]:
            tasks = [asyncio.create_task(_awaits(request)) for _ in range(number)]
            await asyncio.sleep(0.001)
            for task in tasks[:cancelled]:
                task.cancel()
            await asyncio.wait(tasks, timeout=SHORT)
            for task in tasks:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        results = asyncio.run(together())
        good = [result for result in results if not isinstance(result, BaseException)]
        assert all(result is good[0] for result in good), f"one request, several results: {results}"
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result
        if good:
            self.took(what, good[0])

    # ---------------------------------------------------------------------------------------- remote memory

    def access(self, endpoint: Any, peer: Any, remote: Any, *, how: str, begin: int, size: int) -> Any:
        piece = remote[begin : begin + size] if isinstance(remote, ofipy.RemoteRegion) else remote
        memory = Guarded(size)
        if how == "read":
            return Operation(endpoint.read(memory.memory, peer, piece), memory)
        if how == "write":
            return Operation(endpoint.write(memory.memory, peer, piece), memory)
        if how == "prepared":
            return Operation(endpoint.prepare_read(memory.memory, peer, piece).start(), memory)
        values = np.ones(max(size // 8, 1), np.uint64)
        if how == "fetch":
            return Operation(endpoint.fetch_atomic(values, peer, piece, op="sum"))
        return Operation(endpoint.atomic(values, peer, piece, op="bxor"))

    # -------------------------------------------------------------------------------------- queues, counters

    def post_receive(self, endpoint: Any, region: Any, peer: Any, *, tag: Any) -> None:
        endpoint.post_trecv(region, peer, tag=tag, context=2)

    def read_queue(self, queue: Any, *, wait: bool) -> None:
        rows = queue.wait(timeout=SHORT) if wait else queue.read()
        for row in rows if isinstance(rows, np.ndarray) else ():
            queue.exception(row)

    def event(self, queue: Any, *, write: bool) -> None:
        if write:
            queue.write(ofipy.Event(context=7, data=b"seven"))
        else:
            queue.wait(timeout=SHORT)

    def count(self, counter: Any, *, how: str, value: Any) -> None:
        getattr(counter, how)(value, **({"timeout": SHORT} if how == "wait" else {}))

    def defer(self, endpoint: Any, region: Any, counter: Any, peer: Any) -> None:
        record = endpoint.domain.operations(1)
        record["op"], record["endpoint"], record["region"] = ofipy.Op.TSEND, endpoint.id, region.id
        record["offset"], record["length"], record["peer"] = region.offset, region.length, int(peer)
        record["tag"] = 2**40  # nobody receives these
        endpoint.domain.defer(record, after=(counter, 3))

    # -------------------------------------------------------------------------------------------- connections

    def listen(self, domain: Any) -> Any:
        listener = domain.passive_endpoint()
        listener.listen()
        return listener

    def connect(self, endpoint: Any, listener: Any) -> Any:
        return Operation(endpoint.connect(listener.address, data=b"ask"))

    def accept(self, listener: Any, *, reject: bool) -> Any:
        request = listener.wait(timeout=SHORT)
        return request.reject() if reject else request.accept(data=b"yes")

    def shutdown(self, endpoint: Any) -> Any:
        return Operation(endpoint.shutdown())

    # -------------------------------------------------------------------------------------- ends, and anything

    def close(self, what: Any) -> None:
        what.close()

    def drop(self, name: str) -> None:
        self.objects.pop(name, None)

    def collect(self) -> None:
        gc.collect()

    def look(self, what: Any) -> None:
        """Read every property, as a debugger does."""
        what = bare(what)
        failures = []
        repr(what), str(what), hash(what), what == what
        for name in dir(type(what)):
            if isinstance(getattr(type(what), name), property) and not name.startswith("_"):
                try:
                    getattr(what, name)
                except (ofipy.FabricError, TypeError):
                    continue
                except Exception as error:
                    failures.append(f"{type(what).__name__}.{name}: {error!r}")
        assert not failures, failures

    def pickle(self, what: Any) -> None:
        """Either it is refused, or what comes back is as good."""
        what = bare(what)
        for again in (lambda: pickle.loads(pickle.dumps(what)), lambda: copy.copy(what)):
            try:
                repr(again())
            except (ofipy.FabricError, TypeError, pickle.PicklingError):
                continue

    def call(self, what: Any, *, method: int, arguments: Sequence[Any]) -> None:
        """A public method, with whatever."""
        what = bare(what)
        names = [
            name
            for name in dir(type(what))
            if not name.startswith("_") and callable(getattr(type(what), name)) and name != "next"
        ]
        if names:
            result = getattr(what, names[method % len(names)])(*arguments)
            if asyncio.iscoroutine(result):
                result.close()

    def fork(self, *, close: bool) -> None:
        """In a forked child every object is dead, and a new one works."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self._in_child(close)
                status = 0
            except BaseException as error:
                print(f"in a forked child: {error!r}", file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        deadline = time.monotonic() + FORK_SECONDS
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, 6)
                os.waitpid(child, 0)
                raise AssertionError("a forked child hangs")
            time.sleep(0.001)
        assert ended[1] == 0, f"a forked child ended with {ended[1]}"

    def _in_child(self, close: bool) -> None:
        for what in list(self.objects.values()):
            for use in (self.look, self.close) if close else (self.look,):
                try:
                    use(what)
                except (ofipy.FabricError, TypeError, AttributeError):
                    continue
        self.objects.clear()
        gc.collect()

    # ------------------------------------------------------------------------------------------------- the end

    def end(self) -> None:
        """Close everything, in an order that nobody has thought of."""
        remaining = list(self.objects.values())
        random.Random(len(remaining)).shuffle(remaining)
        for what in remaining:
            if (
                not isinstance(what, Operation)
                and hasattr(what, "close")
                and not isinstance(what, ofipy.Domain)
            ):
                try:
                    what.close()
                except ofipy.FabricError as error:
                    if not isinstance(error, ofipy.Busy | ofipy.Closed | ofipy.NotSent):
                        raise
        for what in remaining:
            if isinstance(what, ofipy.Domain):
                with suppress(ofipy.NotSent):
                    what.fabric.close()
        for what in remaining:
            if isinstance(what, Operation) and what.buffer is not None:
                what.buffer.check()


async def _awaits(request: Any) -> Any:
    return await request
