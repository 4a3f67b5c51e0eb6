# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's own ``fi_pingpong`` and our endpoints, in both roles."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conftest import open_on_loopback
from pingpong import play

import ofipy

SIZES = [64, 256, 1024, 4096, 65536, 1048576]
ITERATIONS = 10
PROGRAM = shutil.which("fi_pingpong")

needs_program = pytest.mark.skipif(PROGRAM is None, reason="fi_pingpong is not installed (libfabric-bin)")


def provider_of_program() -> str:
    """The provider with this wire: 1.17 calls it net, since 1.18 it is tcp."""
    assert PROGRAM is not None
    version = subprocess.run(
        [PROGRAM.replace("fi_pingpong", "fi_info"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    return "net" if " 1.17." in version else "tcp"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def program(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """It runs; at the end it has ended well by itself."""
    assert PROGRAM is not None
    common = [PROGRAM, "-p", provider_of_program(), "-e", "rdm", "-d", "lo", "-I", str(ITERATIONS)]
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
    assert "1m" in output, output


@pytest.fixture
def endpoint() -> Iterator[ofipy.Endpoint]:
    opened = open_on_loopback("tcp")
    yield opened
    opened.fabric.close()


@needs_program
def test_their_client_and_our_server(endpoint: ofipy.Endpoint) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        # It checks what comes back.
        with program("-c", "-P", str(listener.getsockname()[1]), "127.0.0.1"):
            control, _ = listener.accept()
            with control:
                control.settimeout(20)
                play(control, endpoint, server=True, sizes=SIZES, iterations=ITERATIONS)


@needs_program
def test_their_server_and_our_client(endpoint: ofipy.Endpoint) -> None:
    port = free_port()
    with program("-B", str(port)) as process:
        deadline = time.monotonic() + 20
        while True:
            try:
                control = socket.create_connection(("127.0.0.1", port), timeout=20)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                assert process.poll() is None
        with control:
            play(control, endpoint, server=False, sizes=SIZES, iterations=ITERATIONS)
