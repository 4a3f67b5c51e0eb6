# SPDX-License-Identifier: BSD-3-Clause
"""Ways in which a queue pair fails, provoked one by one: each is told as what it is, with the peer.

A refused access and messages that are too long: test_connected.py; a port that goes down: test_gone_device.py.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
from connected_pair import TIMEOUT, open_domain

START = 60  # seconds, of a program in an emulated guest

UCMATOSE = shutil.which("ucmatose")

# It takes the registrations of its memory back behind the library's back, with uverbs' own command, and reads.
READER = """
import os, struct, sys, ofipy

DEREG_MR, WORDS = 13, 3

def spoil():
    for name in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{name}"
        if not os.path.exists(path) or "uverbs" not in os.readlink(path):
            continue
        for handle in range(256):
            try:
                os.write(int(name), struct.pack("IHHI", DEREG_MR, WORDS, 0, handle))
            except OSError:
                pass  # it is the handle of something else

info = ofipy.getinfo(provider="verbs", ep_type="msg")[0]
endpoint = ofipy.Fabric(info).domain(progress="manual").endpoint().enable()
endpoint.connect(sys.argv[1]).wait(timeout=20)
remote = ofipy.RemoteRegion.from_bytes(endpoint.recv().wait(timeout=20).data)
local = endpoint.register(bytearray(4096))
spoil()
read = endpoint.read(local, endpoint.peer, remote)
if sys.argv[2] == "wait":
    try:
        read.wait(timeout=20)
    except ofipy.FabricError as error:
        print(type(error).__name__, error.peer == str(endpoint.peer_address), error, flush=True)
else:
    print("posted", flush=True)
    sys.stdin.read()
os._exit(0)
"""


@contextmanager
def reader(after: str) -> Iterator[tuple[ofipy.Endpoint, subprocess.Popen[str]]]:
    """This end of a connection to a reader that has its memory, and the reader."""
    domain = open_domain()
    listener = domain.passive_endpoint()
    listener.listen()
    command = [sys.executable, "-P", "-c", READER, str(listener.address), after]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        endpoint = listener.wait(timeout=START).accept()
        region = endpoint.register(bytearray(4096), access="remote_read")
        endpoint.send(bytes(region.remote)).wait(timeout=TIMEOUT)
        yield endpoint, process
    finally:
        domain.fabric.close()
        process.communicate(timeout=TIMEOUT)


def send_until_it_fails(endpoint: ofipy.Endpoint) -> None:
    while True:
        endpoint.send(b"anybody there?", complete="transmit").wait(timeout=TIMEOUT)


def test_local_protection() -> None:
    with reader("wait") as (_, process):
        assert process.stdout is not None
        said = process.stdout.readline()
    assert "True" in said.split()
    assert "local protection error" in said


def test_retries_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the peer's queue pair, which has failed and takes no packet, while its program does nothing."""
    monkeypatch.setenv("OFIPY_VERBS_ACK_TIMEOUT", "12")
    monkeypatch.setenv("OFIPY_VERBS_RETRY_COUNT", "6")
    with reader("sleep") as (endpoint, process):
        assert process.stdout is not None
        assert process.stdout.readline() == "posted\n"
        waiting = endpoint.recv_into(bytearray(8))
        with pytest.raises(ofipy.FabricError, match="retry exceeded: the peer's device") as caught:
            send_until_it_fails(endpoint)
        assert caught.value.peer == str(endpoint.peer_address)
        with pytest.raises(ofipy.FabricError, match="Connection timed out"):
            waiting.wait(timeout=TIMEOUT)


@pytest.mark.skipif(UCMATOSE is None, reason="ucmatose is not installed (rdmacm-utils)")
def test_receiver_not_ready() -> None:
    """A program that lets nobody try again, and posts no receive."""
    assert UCMATOSE is not None
    domain = open_domain()
    listener = domain.passive_endpoint()
    listener.listen()
    host, _, port = str(listener.address).removeprefix("verbs://").rpartition(":")
    process = subprocess.Popen(
        [UCMATOSE, "-s", host, "-p", port, "-S", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        endpoint = listener.wait(timeout=TIMEOUT).accept()
        with pytest.raises(ofipy.FabricError, match="receiver-not-ready retry exceeded") as caught:
            endpoint.send(b"too early", complete="transmit").wait(timeout=TIMEOUT)
        assert caught.value.peer == str(endpoint.peer_address)
    finally:
        domain.fabric.close()
        process.wait(timeout=TIMEOUT)
