# SPDX-License-Identifier: BSD-3-Clause
"""What endpoints over several ways say in the log."""

import logging
import os
import re
import socket
from pathlib import Path

import pytest

import ofipy
from tests.ports import free_port


@pytest.mark.parametrize("listens", [False, True])
def test_who_finds_a_service_is_said_in_one_line(
    listens: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("OFIPY_INTERFACE", "OFIPY_TCP_INTERFACE", "OFIPY_AUTH_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    caplog.set_level(logging.INFO, "ofipy")
    node = "127.0.0.1" if listens else None
    service = str(free_port())
    with ofipy.open(provider="link", service=service, node=node):
        pass
    lines = [line for line in caplog.messages if service in line]
    assert len(lines) == (not listens)
    for word in (
        () if listens else ("this user", "this host", "node=", "OFIPY_INTERFACE", "OFIPY_AUTH_KEY_FILE")
    ):
        assert word in lines[0]


def test_why_nobody_is_reached_and_what_to_do_are_two_things(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happened on each way comes first; the remedy is a remedy."""
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", "1")
    with ofipy.open(provider="link:shm+tcp") as ep, pytest.raises(ofipy.ConnectionRefused) as caught:
        ep.tsend(b"", ep.insert(f"localhost:{free_port()}"), tag=1).wait(timeout=20)
    assert re.fullmatch(
        r"shm: .*no endpoint listens there, and tcp: cannot connect to .*, tried for \d+ s \(.*\)",
        caught.value.message,
    )
    # Who would be on this host needs no network.
    assert caught.value.remedy == "start the peer first, or check its address"


@pytest.mark.parametrize("provider", ["shm", "link:shm+tcp"])
def test_an_endpoint_of_another_user_is_said_to_be_there(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", "1")
    another, port = os.getuid() + 1, free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0ofipy-shm/1/{another}/{port}")  # as an endpoint of theirs
        listener.listen()
        with ofipy.open(provider=provider) as ep, pytest.raises(ofipy.ConnectionRefused) as caught:
            ep.tsend(b"", ep.insert(f"localhost:{port}"), tag=1).wait(timeout=20)
    assert f"an endpoint of user {another} listens there" in caught.value.message
    assert f"the same user, here {os.getuid()}" in caught.value.message
    assert "no endpoint listens" not in caught.value.message
    assert "run both as one user" in str(caught.value.remedy)


def test_where_nobody_was_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another network namespace may have the name, and nobody here can know."""
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", "1")
    with ofipy.open(provider="shm") as ep:
        with pytest.raises(ofipy.ConnectionRefused) as caught:
            ep.tsend(b"", ep.insert(f"localhost:{free_port()}"), tag=1).wait(timeout=20)
        assert f"of user {os.getuid()}, in this network namespace, no endpoint" in caught.value.message
        with ofipy.open(provider="shm") as other:
            drawn = ep.insert(other.address)
        with pytest.raises(
            ofipy.FabricError, match=r": no endpoint listens there"
        ):  # its name is no one else's
            ep.tsend(b"", drawn, tag=1).wait(timeout=20)


def test_who_listens_and_refuses_is_not_told_to_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_text("a key that is long enough")
    key.chmod(0o600)
    with ofipy.open(provider="tcp", node="127.0.0.1") as server:
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(key))
        with ofipy.open(provider="link:tcp") as ep, pytest.raises(ofipy.ConnectionRefused) as caught:
            ep.tsend(b"", ep.insert(str(server.address).partition("//")[2]), tag=1).wait(timeout=20)
    assert caught.value.message == "tcp: this side has a key and the peer has none"
    assert caught.value.remedy is not None
    assert "OFIPY_AUTH_KEY_FILE" in caught.value.remedy
    assert "OFIPY_INTERFACE" not in caught.value.remedy
