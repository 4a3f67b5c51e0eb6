# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's own ``fi_pingpong`` over its provider ``verbs``, and our endpoints, in both roles."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))
from pingpong import SIZES, accept, connect, meet, play

from tests.ports import free_port

PROGRAM = shutil.which("fi_pingpong")
ITERATIONS = 5

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="fi_pingpong is not installed (libfabric-bin)")


@pytest.fixture
def domain() -> Iterator[ofipy.Domain]:
    info = ofipy.getinfo(provider="verbs", ep_type="msg")[0]
    with ofipy.Fabric(info) as fabric:
        yield fabric.domain(progress="auto")


@pytest.fixture
def datagram() -> Iterator[ofipy.Endpoint]:
    with ofipy.open(provider="verbs", ep_type="dgram", caps="msg", progress="auto") as endpoint:
        yield endpoint


@contextmanager
def program(domain: ofipy.Domain, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """It runs; at the end it has ended well by itself."""
    assert PROGRAM is not None
    kind = domain.info.ep_type.name.lower()
    name = domain.info.domain + ("-dgram" if kind == "dgram" else "")
    common = [PROGRAM, "-p", "verbs", "-e", kind, "-d", name, "-I", str(ITERATIONS)]
    # Its datagrams leave by the port's first GID unless it is told which, and that one knows no way to an IPv4 address.
    environment = {**os.environ, "FI_VERBS_GID_IDX": "1"}
    process = subprocess.Popen(
        [*common, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        yield process
    finally:
        try:
            output, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        print(output)
    assert process.returncode == 0, output


def call(port: int, process: subprocess.Popen[str]) -> socket.socket:
    """Reach their server, which may not listen yet."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=30)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            assert process.poll() is None


def test_their_client_and_our_listener(domain: ofipy.Domain) -> None:
    with domain.passive_endpoint() as listener, socket.create_server(("127.0.0.1", 0)) as waiting:
        listener.listen()
        waiting.settimeout(30)
        # It checks what comes back.
        with program(domain, "-c", "-P", str(waiting.getsockname()[1]), "127.0.0.1"):
            control, _ = waiting.accept()
            control.settimeout(30)
            with control, accept(control, listener) as server:
                play(control, server, None, server=True, sizes=SIZES, iterations=ITERATIONS)


def test_our_client_and_their_listener(domain: ofipy.Domain) -> None:
    port = free_port()
    with program(domain, "-B", str(port)) as process, call(port, process) as control:
        client = domain.endpoint().enable()
        connect(control, client)
        play(control, client, None, server=False, sizes=SIZES, iterations=ITERATIONS)
        client.close()


# ---------------------------------------------------------------------------------------------------------- datagrams

DATAGRAM_SIZES = [64, 256, 1024, 4096]  # as far as the MTU reaches


def test_their_client_and_our_datagrams(datagram: ofipy.Endpoint) -> None:
    with socket.create_server(("127.0.0.1", 0)) as waiting:
        waiting.settimeout(30)
        with program(datagram.domain, "-c", "-P", str(waiting.getsockname()[1]), "127.0.0.1"):
            control, _ = waiting.accept()
            control.settimeout(30)
            with control:
                peer = meet(control, datagram, server=True)
                play(control, datagram, peer, server=True, sizes=DATAGRAM_SIZES, iterations=ITERATIONS)


def test_our_datagrams_and_their_server(datagram: ofipy.Endpoint) -> None:
    port = free_port()
    with program(datagram.domain, "-B", str(port)) as process, call(port, process) as control:
        peer = meet(control, datagram, server=False)
        play(control, datagram, peer, server=False, sizes=DATAGRAM_SIZES, iterations=ITERATIONS)
