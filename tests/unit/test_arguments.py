# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that calls take: each is in its range, or refused with it. The calls are found, so that none is left out."""

import asyncio
import inspect
import math
import re
import selectors
import socket
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from public_methods import methods

import ofipy
from ofipy import measure
from ofipy._base.limits import LIMITS, UINT32_MAX, UINT64_MAX

SIZE = 64  # of the region
INT32 = (-(2**31), 2**31 - 1)
RANGES: dict[str, tuple[int, int]] = {
    "traffic_class": (0, 255),
    **{name: bounds[:2] for name, bounds in LIMITS.items()},
    "buffersize": (1, 2**31 - 1),
    "chunksize": (1, 2**31 - 1),
    "color": (0, 2**63 - 1),
    "context": (0, UINT64_MAX),
    "count": (1, 2**24),
    "depth": (1, 2**24),
    "ignore": (0, UINT64_MAX),
    "incarnation": (0, UINT32_MAX),
    "iterations": (1, 2**40),
    "key": (0, UINT64_MAX),
    "length": (0, SIZE),
    "max": (1, 2**24),
    "max_workers": (1, 2**31 - 1),
    "messages": (1, 2**40),
    "min": (1, 64),
    "nodes": (1, 2**20),
    "offset": (0, SIZE),
    "peer": (0, UINT32_MAX),
    "rank": (0, 1),
    "receive_tag": (0, UINT64_MAX),
    "remote_data": (0, UINT64_MAX),
    "retries": (0, 2**31 - 1),
    "root": (0, 0),
    "services": (1, 2**20),
    "shape": (0, 2**63 - 1),
    "size": (1, 2**24),
    "tag": (0, UINT64_MAX),
    "tag_step": (0, UINT64_MAX),
    "threshold": (0, UINT64_MAX),
    "value": (0, UINT64_MAX),
    "windows": (1, 2**40),
    "workers": (1, 2**31 - 1),
    # Where a call has another range than its likes.
    "Domain.operations-count": (0, 2**24),
    "Endpoint.set_option-value": (1, 2**24),
    "EndpointAlias.set_option-value": (1, 2**24),
    "Event-endpoint": (0, UINT32_MAX),
    "Event-error": INT32,
    "Event-handle": (0, UINT64_MAX),
    "Event-provider_error": INT32,
    "Group.split-key": (-(2**63) + 1, 2**63 - 1),
    "Group.subgroup-tag": (0, 2**63 - 1),
    "RemoteRegion-length": (0, UINT64_MAX),
    "RemoteRegion-offset": (0, UINT64_MAX),
}
NO_NUMBERS = (1.5, math.nan, "many", b"1", object())
NO_TIMES = (-1, -1e-9, -math.inf, math.nan, "1", b"1", [1], 1j)
# Counters' values and their thresholds in one, and what is a name as well as a number.
NOT_HERE = {"after", "listen", "ranks", "service"}
# Former names, which warn: tests/conformance/test_renamed.py.
RENAMED = {"timeout": "room_timeout", "data": "remote_data"}
# What programs make themselves; everything else is made by a call.
CONSTRUCTORS = {
    "Endpoint",
    "Event",
    "EventQueue",
    "Executor",
    "PassiveEndpoint",
    "ReceiveContext",
    "RemoteRegion",
}


class World:
    """One of everything that has calls which take numbers, and arguments for them by name."""

    def __init__(self) -> None:
        self.ep = ep = ofipy.open(provider="shm", caps="msg|tagged|rma|atomic")
        self.listener = ofipy.listen(provider="tcp")
        self.client = ofipy.open(provider="tcp", ep_type="msg")
        self.sockets = socket.socketpair()
        self.alias = ep.alias()
        domain = ep.domain
        region = ep.register(bytearray(SIZE), access="send|recv|read|write|remote_read|remote_write")
        request = ep.trecv_into(bytearray(8), tag=1)
        self.objects: dict[str, Any] = {
            "AddressVector": ep.av,
            "CompletionBatch": ep.cq.batch(64),
            "CompletionQueue": ep.cq,
            "Connection": self.client.connect(self.listener.address),
            "Counter": domain.counter(),
            "Domain": domain,
            "Endpoint": ep,
            "EndpointAlias": self.alias,
            "EventQueue": domain.event_queue(),
            "Executor": ofipy.Executor(listen=0),
            "Fabric": domain.fabric,
            "Group": ofipy.job().group(ep),
            "Job": ofipy.job(),
            "MessageRequest": ep.trecv(tag=1),
            "MultiReceive": ep.trecv_many(bytearray(SIZE), tag=1),
            "PassiveEndpoint": self.listener,
            "PreparedRequest": ep.prepare_trecv(bytearray(8), tag=1).start(),
            "ReceiveContext": domain.receive_context(av=ep.av),
            "Request": request,
        }
        self.arguments: dict[str, Any] = {
            "a": np.zeros(1),
            "access": ofipy.Access.REMOTE_READ,
            "address": self.ep.address,
            "buffer": bytearray(8),
            "compare": np.uint64(1),
            "connection": self.sockets[0],
            "context": 7,
            "count": 1,
            "data": b"",
            "depth": 1,
            "domain": domain,
            "dtype": np.uint64,
            "endpoint": ep,
            "first": True,
            "fn": abs,
            "into": bytearray(8),
            "iterable": [(1,)],
            "iterations": 1,
            "key": 7,
            "color": 0,
            "landing": bytearray(8),
            "obj": "an object",
            "length": 8,
            "local": bytearray(8),
            "messages": 1,
            "mode": "expected",
            "name": "tx_size",
            "node": None,
            "objects": [1],
            "offset": 0,
            "op": "sum",
            "peer": ep.insert(ep.address),
            "ranks": [0],
            "reads": True,
            "receive": bytearray(8),
            "region": region,
            "remote": region.remote[0:8],
            "requests": [request],
            "result": region,
            "send": bytearray(8),
            "service": 7,
            "shape": 1,
            "threshold": 1,
            "value": np.uint64(1),
        }

    def close(self) -> None:
        for each in (*self.sockets, self.alias, self.client, self.listener, self.ep, self.objects["Job"]):
            each.close()
        self.objects["Executor"].shutdown()

    def call(self, name: str, **given: Any) -> Any:
        """Call by name, with proper arguments in place of those that are needed and not given."""
        if name == "start":  # what it starts is positional
            return ofipy.start(self.objects["PreparedRequest"], **given)
        owner, _, method = name.rpartition(".")
        place = {"": ofipy, "measure": measure}.get(owner) or self.objects[owner]
        function = getattr(place, method)
        needed = {
            parameter.name: self.arguments[parameter.name]
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            and parameter.name not in given
            and (parameter.default is parameter.empty or parameter.name == "peer")
        }
        if "key" in given and owner != "Group":  # of memory that peers may reach
            needed["access"] = self.arguments["access"]
        if method in ("prepare_fetch_atomic", "prepare_compare_atomic"):
            needed["into"] = np.zeros(1, np.uint64)
        if method == "post_compare_atomic":
            needed["compare"] = self.arguments["region"]
        if name == "job":
            needed["addresses"] = ["localhost", "localhost"]
        if name == "listen":
            needed["provider"] = "tcp"
        result = function(**needed | given)
        if isinstance(result, ofipy.Event):  # it is looked at when it is written
            return self.objects["EventQueue"].write(result)
        if inspect.isasyncgen(result):
            result = anext(result)
        return asyncio.run(_outcome(result)) if inspect.isawaitable(result) else result


async def _outcome(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, 5)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def _calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, constructor and method, by name."""
    for module, prefix in ((ofipy, ""), (measure, "measure.")):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or name in CONSTRUCTORS:
                yield prefix + name, value
            if inspect.isclass(value) and not issubclass(value, BaseException | int):
                for method, function in methods(value):
                    # What the standard library declares takes what that says.
                    if issubclass(value, selectors.BaseSelector):
                        continue
                    if not method.startswith("_"):
                        yield f"{name}.{method}", function


def _taking(kind: str) -> list[Any]:
    """Call and keyword, for everything that takes this kind of number."""
    found = []
    for name, function in _calls():
        parameters = inspect.signature(function).parameters
        for parameter in parameters.values():
            if RENAMED.get(parameter.name) in parameters:
                continue
            annotation = parameter.annotation
            text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
            if re.search(rf"\b{kind}\b", text) and parameter.name not in NOT_HERE:
                found.append(pytest.param(name, parameter.name, id=f"{name}-{parameter.name}"))
    return found


@pytest.mark.parametrize(("name", "keyword"), _taking("float"))
def test_time_outs(world: World, name: str, keyword: str) -> None:
    for value in NO_TIMES:
        with pytest.raises(ofipy.InvalidArgument, match=r"0 or more is meant, None (waits|does not)"):
            world.call(name, **{keyword: value})


@pytest.mark.parametrize(("name", "keyword"), _taking("int"))
def test_whole_numbers(world: World, name: str, keyword: str) -> None:
    least, most = RANGES.get(f"{name}-{keyword}") or RANGES[keyword]
    for value in (least - 1, most + 1, *NO_NUMBERS):
        with pytest.raises(
            ofipy.InvalidArgument, match=r"\d to (2\*\*)?\d|whole number is meant|bytes at|a Peer"
        ):
            world.call(name, **{keyword: value})


@pytest.mark.parametrize("keyword", ["add", "set"])
def test_what_a_counter_must_reach(world: World, keyword: str) -> None:
    counter = world.objects["Counter"]
    for after in (5, (counter,), (5, counter), (counter, "many"), (counter, -1), (counter, 2**64)):
        with pytest.raises(ofipy.InvalidArgument, match=r"after=|threshold="):
            world.call(f"Counter.{keyword}", value=1, after=after)
        with pytest.raises(ofipy.InvalidArgument, match=r"after=|threshold="):
            world.call("Endpoint.post", operations=world.ep.domain.operations(1), after=after)


BOUNDED = [
    pytest.param(name, keyword, id=f"{name}-{keyword}")
    for name, keyword in (
        ("Domain.cq", "size"),
        ("Domain.event_queue", "size"),
        ("Domain.receive_context", "unexpected_size"),
        ("Domain.receive_context", "min_multi_recv"),
        ("Endpoint", "tx_size"),
        ("Endpoint", "unexpected_size"),
        ("Endpoint", "min_multi_recv"),
        ("Endpoint.set_option", "value"),
        ("Counter.set", "value"),
        ("Counter.set_error", "value"),
        ("listen", "backlog"),
    )
]


@pytest.mark.parametrize(("name", "keyword"), BOUNDED)
def test_bounds_are_allowed(world: World, name: str, keyword: str) -> None:
    for value in RANGES.get(f"{name}-{keyword}") or RANGES[keyword]:
        made = world.call(name, **{keyword: value})
        if isinstance(made, ofipy.Endpoint):
            made.enable()
            if keyword != "unexpected_size":
                assert made.option(keyword) == value
        if name == "Endpoint.set_option":
            assert world.ep.option("tx_size") == value
        if name == "Counter.set":
            assert world.objects["Counter"].value == value
        if isinstance(
            made, ofipy.Endpoint | ofipy.PassiveEndpoint | ofipy.CompletionQueue | ofipy.EventQueue
        ):
            made.close()


@pytest.mark.parametrize("timeout", [0, 0.0, 1e-9, np.float32(0.01), True * 0])
def test_short_times(world: World, timeout: float) -> None:
    with pytest.raises(ofipy.TimedOut):
        world.call("Request.wait", timeout=timeout)


@pytest.mark.parametrize("timeout", [math.inf, 1e30, 10**400, np.inf, None])
def test_long_times(world: World, timeout: float) -> None:
    world.call("Endpoint.tsend", buffer=b"here", tag=77).wait(timeout=timeout)
    assert world.ep.trecv(tag=77).wait(timeout=timeout).length == 4
