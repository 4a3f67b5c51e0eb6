# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's own ``fi_pingpong`` and our endpoints, in both roles."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from conftest import open_on_loopback
from pingpong import DATAGRAM_SIZES, SIZES, accept, connect, meet, play

import ofipy
from tests.ports import free_port

ITERATIONS = 10
PROGRAM = shutil.which("fi_pingpong")

needs_program = pytest.mark.skipif(PROGRAM is None, reason="fi_pingpong is not installed (libfabric-bin)")


def provider_of_program() -> str:
    """The provider with tcp's wire: 1.17 calls it net, since 1.18 it is tcp."""
    assert PROGRAM is not None
    version = subprocess.run(
        [PROGRAM.replace("fi_pingpong", "fi_info"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    return "net" if " 1.17." in version else "tcp"


@contextmanager
def program(kind: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """It runs; at the end it has ended well by itself."""
    assert PROGRAM is not None
    provider = {"rdm": provider_of_program(), "msg": "tcp", "dgram": "udp"}[kind]
    common = [PROGRAM, "-p", provider, "-e", kind, "-d", "lo", "-I", str(ITERATIONS)]
    process = subprocess.Popen(
        [*common, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
        output, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, output
    assert ("1k" if kind == "dgram" else "1m") in output, output


@contextmanager
def called() -> Iterator[tuple[str, Callable[[], socket.socket]]]:
    """A port for their client, and what waits for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)

        def answer() -> socket.socket:
            control, _ = listener.accept()
            control.settimeout(20)
            return control

        yield str(listener.getsockname()[1]), answer


def call(port: int, process: subprocess.Popen[str]) -> socket.socket:
    """Reach their server, which may not listen yet."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=20)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            assert process.poll() is None


@pytest.fixture
def domain() -> Iterator[ofipy.Domain]:
    """For connected endpoints."""
    info = ofipy.getinfo(provider="tcp", ep_type="msg", domain="lo")[0]
    with ofipy.Fabric(info) as fabric:
        yield fabric.domain(progress="auto")


@pytest.fixture
def endpoint() -> Iterator[ofipy.Endpoint]:
    opened = open_on_loopback("tcp")
    yield opened
    opened.fabric.close()


@pytest.fixture
def datagram() -> Iterator[ofipy.Endpoint]:
    """Of the libfabric behind the bridge, while the program has one of its own."""
    opened = open_on_loopback("ofi:udp", ep_type="dgram")
    yield opened
    opened.fabric.close()


@needs_program
def test_their_client_and_our_server(endpoint: ofipy.Endpoint) -> None:
    # It checks what comes back.
    with called() as (port, answer), program("rdm", "-c", "-P", port, "127.0.0.1"), answer() as control:
        peer = meet(control, endpoint, server=True)
        play(control, endpoint, peer, server=True, sizes=SIZES, iterations=ITERATIONS)


@needs_program
def test_their_server_and_our_client(endpoint: ofipy.Endpoint) -> None:
    port = free_port()
    with program("rdm", "-B", str(port)) as process, call(port, process) as control:
        peer = meet(control, endpoint, server=False)
        play(control, endpoint, peer, server=False, sizes=SIZES, iterations=ITERATIONS)


@needs_program
def test_their_client_connects_to_our_listener(domain: ofipy.Domain) -> None:
    with domain.passive_endpoint() as listener:
        listener.listen()
        serve_one(listener)


def serve_one(listener: ofipy.PassiveEndpoint) -> None:
    with (
        called() as (port, answer),
        program("msg", "-c", "-P", port, "127.0.0.1"),
        answer() as control,
        accept(control, listener) as server,
    ):
        play(control, server, None, server=True, sizes=SIZES, iterations=ITERATIONS)


@needs_program
def test_our_client_connects_to_their_listener(domain: ofipy.Domain) -> None:
    port, client = free_port(), domain.endpoint().enable()
    with program("msg", "-B", str(port)) as process, call(port, process) as control:
        connect(control, client)
        play(control, client, None, server=False, sizes=SIZES, iterations=ITERATIONS)
    client.close()


@needs_program
def test_their_client_and_our_datagrams(datagram: ofipy.Endpoint) -> None:
    with called() as (port, answer), program("dgram", "-c", "-P", port, "127.0.0.1"), answer() as control:
        peer = meet(control, datagram, server=True)
        play(control, datagram, peer, server=True, sizes=DATAGRAM_SIZES, iterations=ITERATIONS)


@needs_program
def test_our_datagrams_and_their_server(datagram: ofipy.Endpoint) -> None:
    port = free_port()
    with program("dgram", "-B", str(port)) as process, call(port, process) as control:
        peer = meet(control, datagram, server=False)
        play(control, datagram, peer, server=False, sizes=DATAGRAM_SIZES, iterations=ITERATIONS)
