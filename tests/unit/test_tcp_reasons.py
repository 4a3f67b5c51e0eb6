# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions and log say why tcp cannot connect: which side has a key, another protocol, no descriptors."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ofipy
from ofipy._base.binding import drain_log

TIMEOUT = 20
NODE = "127.0.0.1"
KEYS = {"none": None, "one": "a key that is long enough", "other": "a key that is quite another"}


@pytest.fixture
def set_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    def set_it(name: str) -> None:
        key = KEYS[name]
        path = tmp_path / name
        if key is not None:
            path.write_text(key)
            path.chmod(0o600)
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(path) if key is not None else "")

    return set_it


def refusals(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the side that refused has said, as soon as it has said something."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        drain_log()
        said = [record for record in caplog.records if record.getMessage().startswith("endpoint 1 refuses")]
        if said or time.monotonic() > deadline:
            return said
        time.sleep(0.001)


@pytest.mark.parametrize("ep_type", ["rdm", "msg"])
@pytest.mark.parametrize(
    ("client_key", "server_key", "at_client", "at_server"),
    [
        ("none", "one", "the peer has a key and this side has none", "this side has a key"),
        ("one", "none", "this side has a key", "the peer has a key and this side has none"),
        ("one", "other", "the peer has another key", "the peer has another key"),
    ],
)
def test_both_sides_hear_who_has_a_key(
    ep_type: str,
    client_key: str,
    server_key: str,
    at_client: str,
    at_server: str,
    set_key: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "ofipy")
    assert callable(set_key)
    set_key(server_key)
    how = ofipy.open if ep_type == "rdm" else ofipy.listen
    with how(provider="tcp", node=NODE) as server:
        set_key(client_key)
        with ofipy.open(provider="tcp", node=NODE, ep_type=ep_type) as client:
            if ep_type == "msg":
                begun = client.connect(server.address)
            else:
                begun = client.tsend(b"x", client.insert(server.address), tag=1)
            with pytest.raises((ofipy.ConnectionRefused, ofipy.AccessDenied), match=at_client) as caught:
                begun.wait(timeout=TIMEOUT)
            assert "OFIPY_AUTH_KEY_FILE" in str(caught.value)
            assert "start the peer" not in str(caught.value)
            for key in KEYS.values():
                assert key is None or key not in str(caught.value)
        said = refusals(caplog)
    assert [record.levelno for record in said] == [logging.WARNING]
    assert at_server in said[0].getMessage()
    assert NODE in said[0].getMessage()


def test_a_peer_that_speaks_another_protocol_is_called_by_name() -> None:
    """libfabric 1.17's ``-p tcp -e rdm``: it refuses our request with two bytes."""
    with (
        socket.create_server((NODE, 0)) as listener,
        ofipy.open(provider="tcp", node=NODE) as ep,
    ):
        refusal = bytes([3, 6]) + (2).to_bytes(2, "big") + bytes(28) + b"\x01\x01"

        def refuse() -> None:
            connection = listener.accept()[0]
            with connection:
                connection.recv(4096)
                connection.sendall(refusal)

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(ofipy.ConnectionRefused, match=r"ofi_rxm.*FI_PROVIDER=net"):
            ep.tsend(b"x", ep.insert(f"{NODE}:{listener.getsockname()[1]}"), tag=1).wait(timeout=TIMEOUT)
        thread.join()


def test_who_speaks_another_protocol_is_warned_of_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    request = bytes([3, 0]) + (24).to_bytes(2, "big") + bytes(20) + (1).to_bytes(8, sys.byteorder) + bytes(24)
    with ofipy.open(provider="tcp", node=NODE) as ep:
        for _ in range(20):
            with socket.create_connection((NODE, int(str(ep.address).rpartition(":")[2]))) as peer:
                peer.sendall(request)
                assert peer.recv(1) == b""
    said = [record.getMessage() for record in refusals(caplog)]
    # The first, and one more where the machine was slow.
    assert 1 <= len(said) <= 10
    assert "FI_PROVIDER=net" in said[0]


LIMIT = """
import logging, os, resource, sys
import ofipy

heard = []
handler = logging.Handler()
handler.emit = lambda record: heard.append(record.getMessage())
logging.getLogger("ofipy").addHandler(handler)
with ofipy.open(provider="tcp", node="127.0.0.1") as a, ofipy.open(provider="tcp", node="127.0.0.1") as b:
    peer = b.insert(a.address)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    for _ in range(int(sys.argv[1])):
        os.close(taken.pop())
    try:
        b.tsend(b"x", peer, tag=1, complete="delivery").wait(timeout=20)
    except ofipy.FabricError as error:
        said = f"{type(error).__name__} {error}"
    for fd in taken:
        os.close(fd)
    print(said, *heard, sep="\\n")
"""


@pytest.mark.parametrize(
    ("left", "raised", "logged"),
    [(0, "NoMemory", "waits for peer"), (1, "TimedOut", "cannot accept connections, and tries again")],
    ids=["to connect", "to accept"],
)
def test_a_lack_of_descriptors_is_called_by_name(
    left: int, raised: str, logged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", "1")
    ended = subprocess.run(
        [sys.executable, "-P", "-c", LIMIT, str(left)], capture_output=True, text=True, timeout=60, check=True
    )
    said, *heard = ended.stdout.splitlines()
    limit = "ulimit -n lets this process have 64; close some, or raise it"
    assert said.startswith(raised)
    assert limit.partition(";")[0] in said
    # Where the peer cannot accept, this comes long before its request is given up.
    assert limit in next(text for text in heard if logged in text)
