# SPDX-License-Identifier: BSD-3-Clause
"""Opening, connecting and closing in a storm: done, or not; nothing stays behind, and nobody waits for ever."""

import gc
from contextlib import suppress

from numbered import message, number_of
from pair import PATIENCE, open_domain
from storm import INTERRUPTED
from storm_cases import TAG, Rounds, Scene, case

import ofipy


def talk(scene: Scene, first: ofipy.Endpoint, second: ofipy.Endpoint) -> None:
    """A message each way over a connection."""
    for here, there in ((first, second), (second, first)):
        number, size = scene.new()
        sending = here.tsend(message(number, size), tag=TAG)
        assert number_of(there.trecv(tag=TAG).wait(timeout=PATIENCE).data) == number
        sending.wait(timeout=PATIENCE)


@case("connect", needs="connections", connected=False)
def connect(scene: Scene) -> Rounds:
    """The side that asks."""
    domain = open_domain(f"{scene.target}/msg")
    listener = domain.passive_endpoint()
    listener.listen()
    try:
        while True:
            ours = domain.endpoint().enable()
            connection = scene.storm.attempt(lambda: ours.connect(listener.address))  # noqa: B023
            if connection is INTERRUPTED:
                # It may have been asked: whoever answers talks to nobody.
                ours.close()
                with suppress(ofipy.TimedOut):
                    listener.wait(timeout=0.02).reject()
            else:
                theirs = listener.wait(timeout=PATIENCE).accept()
                assert scene.storm.until_done(connection.wait) == b""
                talk(scene, ours, theirs)
                theirs.close()
                scene.storm.until_done(ours.close)
                assert ours.closed
            yield
    finally:
        domain.fabric.close()


@case("accept", needs="connections", connected=False)
def accept(scene: Scene) -> Rounds:
    """The side that answers."""
    domain = open_domain(f"{scene.target}/msg")
    listener = domain.passive_endpoint()
    listener.listen()
    try:
        while True:
            ours = domain.endpoint().enable()
            connection = ours.connect(listener.address, data=b"ask")
            request = scene.storm.until_done(lambda: listener.wait(timeout=PATIENCE))
            assert request.data == b"ask"
            theirs = scene.storm.attempt(lambda: request.accept(data=b"yes"))  # noqa: B023
            if theirs is INTERRUPTED:
                gc.collect()  # an endpoint that nobody names closes its connection
                with suppress(ofipy.InvalidArgument):
                    request.reject()
                with suppress(ofipy.ConnectionRefused, ofipy.PeerLost):
                    assert connection.wait(timeout=PATIENCE) == b"yes"
            else:
                assert connection.wait(timeout=PATIENCE) == b"yes"
                talk(scene, ours, theirs)
                theirs.close()
            ours.close()
            yield
    finally:
        domain.fabric.close()


@case("listen", needs="connections", connected=False)
def listen(scene: Scene) -> Rounds:
    """A listener that nobody has is gone."""
    while True:
        listener = scene.storm.attempt(lambda: ofipy.listen(provider=scene.target))
        if listener is not INTERRUPTED:
            with ofipy.open(provider=scene.target, ep_type="msg") as ours:
                connection = ours.connect(listener.address)
                theirs = listener.wait(timeout=PATIENCE).accept()
                connection.wait(timeout=PATIENCE)
                talk(scene, ours, theirs)
            scene.storm.until_done(listener.close)
            assert listener.closed
        yield


@case("open", connected=False)
def open_and_close(scene: Scene) -> Rounds:
    """An endpoint that nobody has is gone; one that was told to close is closed."""
    while True:
        opened = scene.storm.attempt(lambda: ofipy.open(provider=scene.target))
        if opened is not INTERRUPTED:
            number, size = scene.new()
            me = opened.insert(opened.address)
            sending = opened.tsend(message(number, size), me, tag=TAG)
            assert number_of(opened.trecv(tag=TAG).wait(timeout=PATIENCE).data) == number
            sending.wait(timeout=PATIENCE)
            scene.storm.until_done(opened.close)
            assert opened.closed
        yield


@case("insert", connected=False)
def insert(scene: Scene) -> Rounds:
    """A peer is there once, however often it was inserted."""
    address = scene.b.address
    while True:
        peer = scene.storm.until_done(lambda: scene.a.insert(address))
        assert peer == scene.pair.to_b
        assert scene.storm.until_done(lambda: scene.a.address) == scene.a.address
        yield
