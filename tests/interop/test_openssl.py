# SPDX-License-Identifier: BSD-3-Clause
"""Encrypted endpoints of ``tcp`` with OpenSSL's own programs, both roles."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import ofipy
from ofipy.cli.key import new_key
from tests.command import invoke

TIMEOUT = 30
NODE = "127.0.0.1"

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What both programs are told: the protocol, the key and its name, as ``ofipy key show`` prints them."""
    new_key(tmp_path / "key")
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("OFIPY_ENCRYPTION", "required")
    shown = invoke("key", "show", "--tls", "--json", str(tmp_path / "key"))
    key = json.loads(shown.stdout)
    return ["-psk_identity", key["identity"], "-psk", key["psk"], "-alpn", "ofipy/1"]


def shake_hands(ep: ofipy.Endpoint, *options: str) -> str:
    """Run the client against the endpoint, with an empty input; what it printed."""
    address = f"{NODE}:{str(ep.address).rpartition(':')[2]}"
    command = ["openssl", "s_client", "-connect", address, *options]
    ended = subprocess.run(command, input="", capture_output=True, text=True, timeout=TIMEOUT)
    return ended.stdout + ended.stderr


def test_its_client_shakes_hands(arguments: list[str]) -> None:
    with ofipy.open(provider="tcp", node=NODE) as ep:
        said = shake_hands(ep, "-tls1_3", *arguments)
    assert "Reused, TLSv1.3" in said  # it calls the use of a pre-shared key so
    assert "ALPN protocol: ofipy/1" in said


def replace(option: str, value: str) -> Callable[[list[str]], list[str]]:
    """Give an option another value."""

    def change(arguments: list[str]) -> list[str]:
        return [
            value if before == option else each
            for before, each in zip(["", *arguments], arguments, strict=False)
        ]

    return change


@pytest.mark.parametrize(
    ("version", "change"),
    [
        ("-tls1_2", lambda arguments: arguments),
        ("-tls1_3", replace("-psk", "00" * 32)),
        ("-tls1_3", replace("-psk_identity", "0" * 32)),
        ("-tls1_3", replace("-alpn", "http/1.1")),
        ("-tls1_3", lambda arguments: arguments[:4]),
        ("-tls1_3", lambda arguments: arguments[4:]),
    ],
    ids=["TLS 1.2", "another key", "another name", "another protocol", "no protocol", "no key"],
)
def test_a_wrong_client_is_refused(
    arguments: list[str], version: str, change: Callable[[list[str]], list[str]]
) -> None:
    with ofipy.open(provider="tcp", node=NODE) as ep, ofipy.open(provider="tcp", node=NODE) as other:
        shake_hands(ep, version, *change(arguments))
        # Nothing became of it, and the endpoint still serves its peers.
        assert ep.stats().peers_up == 0
        other.tsend(b"x", other.insert(ep.address), tag=1).wait(timeout=TIMEOUT)
        assert ep.trecv(tag=1).wait(timeout=TIMEOUT).data == b"x"


def test_its_server_gets_our_request_within_tls(arguments: list[str]) -> None:
    with socket.create_server((NODE, 0)) as free:
        port = free.getsockname()[1]
    command = ["openssl", "s_server", "-tls1_3", "-nocert", "-accept", f"{NODE}:{port}", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            while b"ACCEPT" not in server.stdout.readline():
                pass
            with ofipy.open(provider="tcp", node=NODE) as ep:
                sent = ep.tsend(b"x", ep.insert(f"{NODE}:{port}"), tag=1)
                said = b""
                # The magic number of the connection request, which the server prints as it has decrypted it.
                while b"OFIPYTX" not in said:
                    said += server.stdout.read1(4096)
                sent.cancel()
                ep.close(linger=0)
        finally:
            server.kill()
