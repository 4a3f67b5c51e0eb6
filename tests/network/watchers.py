# SPDX-License-Identifier: BSD-3-Clause
"""Those on the path between hosts: who only listens, and who forwards a port of one host to another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hosts import Host

__all__ = ["forwarded", "listening"]

LISTENER = """
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind((sys.argv[1], 0))
print("ready", flush=True)
with open(sys.argv[2], "wb", buffering=0) as file:
    while True:
        file.write(wire.recv(1 << 16))
"""

# One half of a tunnel, as ssh -L has two: what comes to the first address goes to the second.
HALF = """
import socket, sys, threading
def parse(text):
    host, _, port = text.rpartition(":")
    return (socket.AF_INET, (host, int(port))) if host else (socket.AF_UNIX, text)
family, address = parse(sys.argv[1])
listener = socket.socket(family)
listener.bind(address)
listener.listen()
print("ready", flush=True)
file = open(sys.argv[3], "ab", buffering=0)
def copy(source, target):
    try:
        while data := source.recv(1 << 16):
            file.write(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()
while True:
    near, _ = listener.accept()
    family, address = parse(sys.argv[2])
    far = socket.socket(family)
    far.connect(address)
    for pair in ((near, far), (far, near)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
"""


@contextmanager
def _running(host: Host, program: str, *arguments: str) -> Iterator[None]:
    command = host.inside(sys.executable, "-P", "-c", program, *arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


@contextmanager
def listening(host: Host, interface: str, file: Path) -> Iterator[None]:
    """Write every packet of an interface to a file."""
    with _running(host, LISTENER, interface, str(file)):
        yield


@contextmanager
def forwarded(near: Host, far: Host, port: int, folder: Path) -> Iterator[Path]:
    """Make a port of the far host's loopback interface one of the near host's; where its bytes are written."""
    captured, tunnel, address = folder / "captured", str(folder / "tunnel"), f"127.0.0.1:{port}"
    with (
        _running(far, HALF, tunnel, address, str(folder / "captured of the far half")),
        _running(near, HALF, address, tunnel, str(captured)),
    ):
        yield captured
