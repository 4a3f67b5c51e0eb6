# SPDX-License-Identifier: BSD-3-Clause
"""Listeners and connected endpoints that are dropped, forked, left open, or whose other side is killed."""

import gc
import os
import random
import subprocess
import sys
import warnings

import pytest
from sides import Target

import ofipy
from ofipy._objects.group import Group
from ofipy.pingpong.leftovers import count_descriptors

pytestmark = [pytest.mark.needs("connections"), pytest.mark.untagged]

TIMEOUT = 20


@pytest.mark.parametrize("seed", range(8))
def test_dropping_everything_in_any_order(target: Target, seed: int) -> None:
    """Garbage collection may end objects in any order; a warning is all that happens."""
    gc.collect()
    before = count_descriptors()
    connecting = target.connected()
    assert connecting is not None
    domain = connecting.open_domain(progress="auto")
    events = domain.event_queue()
    listener = domain.passive_endpoint(eq=events)
    own = domain.passive_endpoint()
    listener.listen()
    own.listen()
    clients = [domain.endpoint(eq=events).enable() for _ in range(3)]
    connections = [client.connect(own.address) for client in clients]
    requests = [own.wait(timeout=TIMEOUT) for _ in clients]
    accepted = requests[0].accept()
    opened = domain.endpoint(request=requests[1]).enable()
    things = [
        domain.fabric, domain, events, listener, own, *clients, *connections, *requests, accepted, opened,
        accepted.peer, accepted.recv_into(bytearray(8)), clients[2].send(b"never leaves"),
    ]  # fmt: skip
    del domain, events, listener, own, clients, connections, requests, accepted, opened
    order = list(range(len(things)))
    random.Random(seed).shuffle(order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for index in order:
            things[index] = None
        gc.collect()
        gc.collect()
    assert count_descriptors() == before


def test_in_a_forked_child_everything_is_dead(target: Target) -> None:
    connecting = target.connected()
    assert connecting is not None
    domain = connecting.open_domain(progress="auto")
    with domain.fabric:
        listener = domain.passive_endpoint()
        listener.listen()
        client = domain.endpoint().enable()
        connection = client.connect(listener.address)
        request = listener.wait(timeout=TIMEOUT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads: that is the point
            child = os.fork()
        if child == 0:
            dead = 0
            for call in listener.wait, request.accept, request.reject, client.shutdown, listener.listen:
                try:
                    call()
                except ofipy.ForkedError:
                    dead += 1
            listener.close()
            os._exit(dead)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
        server = request.accept()
        connection.wait(timeout=TIMEOUT)
        server.close()


LEAVE_OPEN = """
import sys, ofipy
info = ofipy.getinfo(provider=sys.argv[1], domain=sys.argv[2], ep_type="msg")[0]
domain = ofipy.Fabric(info).domain(progress="auto")
listener = domain.passive_endpoint()
listener.listen()
clients = [domain.endpoint().enable() for _ in range(2)]
connections = [client.connect(listener.address) for client in clients]
server = listener.wait().accept()
receive = server.recv_into(bytearray(8))
print("end")
"""


def test_interpreter_exit_with_everything_open(target: Target) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-X", "dev", "-c", LEAVE_OPEN, target.provider, target.domain],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "Fatal" not in done.stderr


CONNECT_AND_WAIT = """
import sys, ofipy
ep = ofipy.open(provider=sys.argv[1], ep_type="msg", caps="msg")
ep.connect(sys.argv[2]).wait(timeout=20)
ep.send(b"here").wait(timeout=20)
ep.recv_into(bytearray(8)).wait(timeout=60)
"""


@pytest.mark.needs("processes", "default")
def test_a_killed_process_ends_the_connection(target: Target) -> None:
    connecting = target.connected()
    assert connecting is not None
    listener = connecting.listen(progress="auto")
    command = [sys.executable, "-P", "-c", CONNECT_AND_WAIT, target.provider, str(listener.address)]
    with listener.fabric, subprocess.Popen(command) as process:
        try:
            events = listener.domain.event_queue()
            server = listener.wait(timeout=TIMEOUT).accept(eq=events)
            assert events.wait(timeout=TIMEOUT).kind is ofipy.EventKind.CONNECTED
            server.recv_into(bytearray(4)).wait(timeout=TIMEOUT)
            pending = server.recv_into(bytearray(8))
        finally:
            process.kill()
        with pytest.raises(ofipy.PeerLost) as caught:
            pending.wait(timeout=TIMEOUT)
        assert caught.value.peer == str(server.peer_address)
        assert events.wait(timeout=TIMEOUT).kind is ofipy.EventKind.SHUTDOWN
        with pytest.raises(ofipy.NotConnected):
            server.send(b"anybody?")


def test_groups_are_refused(client: ofipy.Endpoint) -> None:
    with pytest.raises(ofipy.NotSupported, match="has one peer, and that of a group reaches all") as caught:
        Group(client)
    assert caught.value.remedy == 'open it with ep_type="rdm"'
