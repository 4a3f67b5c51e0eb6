# SPDX-License-Identifier: BSD-3-Clause
"""Every public call of objects of a parent, in its forked child: it refuses or does nothing, and never crashes.

Argument: a provider. Statistics are on: the counters of the parent's endpoints live in a mapping that the child does
not inherit, so a call that counts must find other memory there. The parent's counters must not change.
"""

import contextlib
import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ofipy

# Errors of a call that was given what it does not want. All others of ofipy are FabricError.
EXPECTED = (
    ofipy.FabricError,
    TypeError,
    ValueError,
    LookupError,
    RuntimeError,
    AttributeError,
    StopIteration,
)
PATIENCE = 60  # seconds for one child
TIMEOUT = 60
# What ends an object comes last.
LAST = ("close", "shutdown", "__exit__", "__del__")


def make_objects(provider: str) -> tuple[contextlib.ExitStack, dict[str, Any], dict[str, Any]]:
    """One object of each class that the provider can have, and what calls get by the names of their parameters."""
    stack = contextlib.ExitStack()
    ep = stack.enter_context(ofipy.open(provider=provider))
    other = stack.enter_context(ofipy.open(provider=provider))
    peer = ep.insert(other.address)
    ep.insert(ep.address)
    arrived = other.trecv(tag=1)
    ep.tsend(b"before the fork", peer, tag=1).wait(timeout=TIMEOUT)
    region = stack.enter_context(other.register(bytearray(64), access="remote_read|remote_write"))
    objects: dict[str, Any] = {
        "endpoint": ep,
        "other": other,
        "alias": stack.enter_context(ep.alias()),
        "domain": ep.domain,
        "fabric": ep.domain.fabric,
        "cq": ep.cq,
        "av": ep.av,
        "info": ep.info,
        "address": ep.address,
        "peer": peer,
        "region": region,
        "message": arrived.wait(timeout=TIMEOUT),
        "request": other.trecv_into(bytearray(8), tag=2),
        "prepared": ep.prepare_tsend(b"again", peer, tag=3),
        "batch": ep.cq.batch(4),
    }
    for name, make in (
        ("eq", lambda: ep.domain.event_queue()),
        ("counter", lambda: ep.domain.counter()),
        ("receive context", lambda: ep.domain.receive_context()),
        ("remote", lambda: region.remote),
        ("passive", lambda: ofipy.listen(provider=provider)),
        ("multi receive", lambda: other.trecv_many(bytearray(4096), tag=5)),
    ):
        with contextlib.suppress(*EXPECTED, AttributeError):
            objects[name] = make()
    given = {
        "peer": peer, "source": None, "tag": 7, "data": b"12345678", "buffer": bytearray(8), "array": bytearray(8),
        "remote": objects.get("remote"), "region": region, "offset": 0, "length": 8, "size": 8, "count": 1,
        "timeout": 0.01,
        "address": ep.address, "obj": {"a": 1}, "name": "tx_size", "value": 1, "op": "sum", "threshold": 1,
        "operations": np.zeros(1, ofipy.OPERATION_DTYPE), "max": 1, "min": 0, "number": 1,
        "counter": objects.get("counter"),
    }  # fmt: skip
    return stack, objects, given


def calls_of(thing: Any, given: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each public attribute is read. Each method is called: bare, and with values by its parameters' names."""
    names = [name for name in dir(type(thing)) if not name.startswith("_")]
    for name in sorted(names, key=lambda name: (name in LAST, name)):
        yield name, lambda name=name: getattr(thing, name)
        if not callable(getattr(type(thing), name, None)):
            continue
        yield f"{name}()", lambda name=name: getattr(thing, name)()
        try:
            wanted = inspect.signature(getattr(type(thing), name)).parameters.values()
        except (TypeError, ValueError):
            wanted = ()
        required = [
            given.get(each.name, b"12345678")
            for each in list(wanted)[1:]
            if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        named = {"timeout": 0.01} if any(each.name == "timeout" for each in wanted) else {}
        yield (
            f"{name}(…)",
            lambda name=name, required=required, named=named: getattr(thing, name)(*required, **named),
        )


def use_in_child(thing: Any, given: dict[str, Any]) -> int:
    """Call everything. Returns how many calls there were."""
    made = 0
    for name, call in calls_of(thing, given):
        made += 1
        try:
            result = call()
        except EXPECTED:
            continue
        except BaseException as error:
            print(f"{type(thing).__name__}.{name}: {error!r}", file=sys.stderr, flush=True)
            raise
        if inspect.iscoroutine(result):
            result.close()
    return made


def fork_and_use(name: str, thing: Any, given: dict[str, Any]) -> None:
    """One child for each object, so that one that closes something hides nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(PATIENCE)
            warnings.simplefilter("ignore")
            made = use_in_child(thing, given)
            # The child can begin anew, and counts for itself.
            with ofipy.open(provider=sys.argv[1]) as fresh:
                me = fresh.insert(fresh.address)
                receive = fresh.trecv(tag=1)
                fresh.tsend(b"child", me, tag=1).wait(timeout=TIMEOUT)
                assert receive.wait(timeout=TIMEOUT).length == 5
                assert fresh.stats().sends == 1
            print(f"{name}: {made} calls", flush=True)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"{name}: the child ended with {status}"


def main() -> None:
    stack, objects, given = make_objects(sys.argv[1])
    ep, other = objects["endpoint"], objects["other"]
    before = (ep.stats().sends, ep.stats().bytes_sent, other.stats().receives, other.stats().errors)
    for name, thing in objects.items():
        fork_and_use(name, thing, given)
    assert (ep.stats().sends, ep.stats().bytes_sent, other.stats().receives, other.stats().errors) == before
    arrived = other.trecv(tag=9)
    ep.tsend(b"after", objects["peer"], tag=9).wait(timeout=TIMEOUT)
    assert arrived.wait(timeout=TIMEOUT).length == 5
    objects["request"].cancel()
    stack.close()


if __name__ == "__main__":
    main()
