# SPDX-License-Identifier: BSD-3-Clause
"""The garbage collector finds a request and its endpoint at once, open or closed, and may clear the endpoint first.

Argument: a provider. A request whose message nobody has taken still returns it to the core. Only a build with the
address sanitizer sees that the core reads memory that is gone.
"""

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import ofipy

TIMEOUT = 60
LENGTHS = (300, 300_000)  # bytes: the second waits at its sender, over the providers that do so


def open_two(domain: ofipy.Domain, *, rx: Any = None) -> tuple[Any, Any]:
    """An endpoint, and another one that sends to it."""
    return domain.endpoint(rx=rx).enable(), domain.endpoint().enable()


def wait_until(domain: ofipy.Domain, what: Callable[[], object]) -> None:
    while not what():
        domain.progress()


def receive(domain: ofipy.Domain, ep: Any, sender: Any, length: int, receiver: Any) -> list[Any]:
    """A receive of unknown size that the receiver has posted, and that has a message of the endpoint's."""
    request = receiver.trecv(tag=1)
    sent = sender.tsend(bytes(length), sender.insert(ep.address), tag=1)
    wait_until(domain, lambda: request.done)
    return [ep, receiver, request, sent]


def make_message(domain: ofipy.Domain, length: int) -> list[Any]:
    ep, sender = open_two(domain)
    return receive(domain, ep, sender, length, ep)


def make_message_of_alias(domain: ofipy.Domain, length: int) -> list[Any]:
    ep, sender = open_two(domain)
    return receive(domain, ep, sender, length, ep.alias())


def make_message_of_context(domain: ofipy.Domain, length: int) -> list[Any]:
    context = domain.receive_context()
    return receive(domain, *open_two(domain, rx=context), length, context)


def make_probed(domain: ofipy.Domain, length: int) -> list[Any]:
    """A message that waits for no receive, as probe finds it."""
    ep, sender = open_two(domain)
    sent = sender.tsend(bytes(length), sender.insert(ep.address), tag=1)
    found: list[Any] = [None]
    wait_until(domain, lambda: found[-1] or found.append(ep.probe(tag=1)))
    return [ep, found[-1], sent]


def make_send(domain: ofipy.Domain, length: int) -> list[Any]:
    ep, other = open_two(domain)
    return [ep, ep.tsend(bytes(length), ep.insert(other.address), tag=1), other]


def make_receives(domain: ofipy.Domain, length: int) -> list[Any]:
    """Receives without a message, and one with many."""
    ep, sender = open_two(domain)
    many = ep.trecv_many(bytearray(2 * length), tag=2)
    sent = sender.tsend(bytes(length), sender.insert(ep.address), tag=2)
    wait_until(domain, lambda: sent.done)
    return [ep, ep.trecv(tag=1), ep.trecv_into(bytearray(length), tag=1), many, sent]


def make_prepared(domain: ofipy.Domain, length: int) -> list[Any]:
    ep, other = open_two(domain)
    return [ep, ep.prepare_tsend(bytes(length), ep.insert(other.address), tag=1)]


KINDS = (
    make_message, make_message_of_alias, make_message_of_context, make_probed, make_send, make_receives, make_prepared,
)  # fmt: skip


def drop(things: list[Any], *, closes: bool) -> "weakref.ref[Any]":
    """Leave the things to the garbage collector alone. Returns a reference to the endpoint."""
    watched = weakref.ref(things[0])
    for thing in things:
        if closes and isinstance(thing, (ofipy.Endpoint, ofipy.ReceiveContext)):
            with contextlib.suppress(ofipy.NotSent):
                thing.close()
    things.append(things)
    return watched


def main() -> None:
    gc.disable()
    with ofipy.Fabric(ofipy.getinfo(provider=sys.argv[1])[0]) as fabric:
        domain = fabric.domain(progress="auto")
        for make in KINDS:
            for length in LENGTHS:
                for closes in (False, True):
                    watched = drop(make(domain, length), closes=closes)
                    assert watched() is not None
                    gc.collect()
                    assert watched() is None, f"{make.__name__} of {length}: its endpoint is still there"
            print(f"{make.__name__}: collected", flush=True)
        ep = domain.endpoint().enable()
        arrived = ep.trecv(tag=1)
        ep.tsend(b"after", ep.insert(ep.address), tag=1).wait(timeout=TIMEOUT)
        assert arrived.wait(timeout=TIMEOUT).length == 5


if __name__ == "__main__":
    main()
