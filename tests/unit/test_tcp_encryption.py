# SPDX-License-Identifier: BSD-3-Clause
"""Encryption over tcp: what both sides are told, and what is refused, by name."""

from __future__ import annotations

import ctypes
import errno
import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ofipy
from ofipy._base.binding import drain_log
from ofipy.cli.key import new_key
from tests.command import invoke

TIMEOUT = 20
NODE = "127.0.0.1"
IDENTITY = "7a74f6c02e334ff43343c14889b03c85"
PSK = "665a5e215c143a6679d0496b98d7d4abf7e754c45295ca3c53c1d727a6f62b5c"
SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")


def find_openssl() -> bool:
    try:
        ctypes.CDLL("libssl.so.3")
    except OSError:
        return False
    return True


needs_openssl = pytest.mark.skipif(not find_openssl(), reason="libssl.so.3 is not installed")


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Set the key by its name, and whether to encrypt, for what is opened next."""

    def set_it(encryption: str, key: str | None = "one") -> None:
        file = tmp_path / f"{key}.key"
        if key and not file.exists():
            new_key(file)
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(file) if key else "")
        monkeypatch.setenv("OFIPY_ENCRYPTION", encryption)

    return set_it


def open_endpoint(**options: object) -> ofipy.Endpoint:
    return ofipy.open(provider="tcp", node=NODE, **options)  # type: ignore[arg-type]


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the side that refused has logged, as soon as it has logged something."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        drain_log()
        said = [text for text in (record.getMessage() for record in caplog.records) if "endpoint" in text]
        if said or time.monotonic() > deadline:
            return said
        time.sleep(0.001)


@needs_openssl
def test_messages_of_every_size_are_encrypted(setting) -> None:
    setting("required")
    with open_endpoint(service="0") as server, open_endpoint() as client:
        peer = client.insert(server.address)
        for size in (0, 1, 8, 4096, 16384, 100_000, 5_000_000):
            data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
            received = np.zeros_like(data)
            receive = server.trecv_into(received, tag=size)
            client.tsend(data, peer, tag=size).wait(timeout=TIMEOUT)
            source = receive.wait(timeout=TIMEOUT).source
            assert (received == data).all()
            answer = client.trecv(tag=1)
            server.tsend(data[::-1].copy(), source, tag=1).wait(timeout=TIMEOUT)
            assert answer.wait(timeout=TIMEOUT).data == bytes(data[::-1])
        for security in (client.security(peer), server.security(source)):
            assert security.proven
            assert security.encrypted
            assert security.cipher in SUITES


@needs_openssl
def test_remote_memory_is_encrypted(setting) -> None:
    setting("required")
    with open_endpoint(service="0") as owner, open_endpoint() as client:
        peer, memory = client.insert(owner.address), np.zeros(300_000, np.uint8)
        remote = owner.register(memory, access="remote_read|remote_write").remote
        data = np.arange(memory.size, dtype=np.uint32).astype(np.uint8)
        client.write(data, peer, remote, complete="delivery").wait(timeout=TIMEOUT)
        assert (memory == data).all()
        back = np.zeros_like(data)
        client.read(back, peer, remote).wait(timeout=TIMEOUT)
        assert (back == data).all()


def test_without_the_setting_nothing_is_encrypted(setting) -> None:
    setting("off")
    with open_endpoint(service="0") as server, open_endpoint() as client:
        peer = client.insert(server.address)
        client.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)
        server.trecv(tag=1).wait(timeout=TIMEOUT)
        assert client.security(peer) == ofipy.Security(proven=True, encrypted=False, cipher=None)


@needs_openssl
@pytest.mark.parametrize(
    ("of_server", "of_client", "at_client", "at_server"),
    [
        ("required", "off", "accepts encrypted connections alone", "is not encrypted"),
        ("off", "required", "OFIPY_ENCRYPTION", "speaks TLS, and this side does not"),
    ],
)
def test_two_settings_refuse_each_other_by_name(
    setting, caplog: pytest.LogCaptureFixture, of_server: str, of_client: str, at_client: str, at_server: str
) -> None:
    caplog.set_level(logging.WARNING, logger="ofipy")
    setting(of_server)
    with open_endpoint(service="0") as server:
        setting(of_client)
        with open_endpoint() as client:
            peer = client.insert(server.address)
            with pytest.raises(ofipy.FabricError, match=at_client) as caught:
                client.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)
            assert "OFIPY_ENCRYPTION" in str(caught.value)
            said = refusals(caplog)
            assert any(at_server in text and "OFIPY_ENCRYPTION" in text for text in said), said


@needs_openssl
def test_another_key_is_refused_by_name(setting, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="ofipy")
    setting("required", "one")
    with open_endpoint(service="0") as server:
        setting("required", "other")
        with open_endpoint() as client:
            peer = client.insert(server.address)
            with pytest.raises(ofipy.AccessDenied, match="OFIPY_AUTH_KEY_FILE"):
                client.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)
            assert any("OFIPY_AUTH_KEY_FILE" in text for text in refusals(caplog))


@needs_openssl
def test_a_listener_refuses_plain_connections(setting) -> None:
    setting("required")
    with ofipy.listen(provider="tcp", node=NODE) as listener:
        setting("off")
        with ofipy.open(provider="tcp", node=NODE, ep_type="msg") as client, pytest.raises(ofipy.FabricError):
            client.connect(listener.address).wait(timeout=TIMEOUT)


CONNECTED = """
import sys
import ofipy
with ofipy.open(provider="tcp", node="127.0.0.1", ep_type="msg") as client:
    client.connect(sys.argv[1]).wait(timeout=20)
    client.send(b"up").wait(timeout=20)
    print("up", flush=True)
    if sys.stdin.readline() == "close":
        sys.exit()
    sys.stdin.readline()
"""


@needs_openssl
@pytest.mark.parametrize("killed", [True, False])
def test_an_end_without_close_notify_is_not_orderly(setting, killed: bool) -> None:
    """The kernel ends the socket of a killed process by a plain FIN, which an attacker can send, too."""
    setting("required")
    with ofipy.listen(provider="tcp", node=NODE) as listener:
        command = [sys.executable, "-P", "-c", CONNECTED, str(listener.address)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdin is not None
            with listener.wait(timeout=TIMEOUT).accept() as server:
                assert server.recv().wait(timeout=TIMEOUT).data == b"up"
                assert child.stdout.readline() == "up\n"
                receive = server.recv()
                if killed:
                    child.kill()
                else:
                    child.stdin.write("close")
                    child.stdin.close()
                with pytest.raises(ofipy.PeerLost) as caught:  # a ConnectionResetError
                    receive.wait(timeout=TIMEOUT)
                assert (caught.value.errno == errno.ESHUTDOWN) != killed, caught.value


@pytest.mark.parametrize(("value", "key"), [("required", None), ("yes", "one"), ("", "one")])
def test_a_setting_that_cannot_be_is_refused(setting, value: str, key: str | None) -> None:
    setting(value, key)
    if not value:  # as if it were not set
        open_endpoint().close()
        return
    with pytest.raises(ofipy.ConfigError, match="OFIPY_ENCRYPTION"):
        open_endpoint()


@needs_openssl
def test_link_encrypts_its_network(setting) -> None:
    setting("required")
    with ofipy.open(provider="link") as ep:
        assert ep.info.encryption is ofipy.Encryption.TLS
    with ofipy.open(provider="shm") as ep:
        assert ep.info.encryption is ofipy.Encryption.HOST


def find_infos_without_encryption() -> list[ofipy.Info]:
    infos = [info for info in ofipy.getinfo() if info.encryption is ofipy.Encryption.NONE]
    if not infos:
        pytest.skip(
            "no provider here has connections that cannot be encrypted: neither libfabric nor a device"
        )
    return infos


def test_a_provider_that_cannot_encrypt_is_refused(setting) -> None:
    infos = find_infos_without_encryption()
    setting("required")
    with pytest.raises(ofipy.NotSupported, match="cannot encrypt"):
        ofipy.Fabric(infos[0]).domain()


def test_the_key_of_tls_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(bytes(range(32)))
    shown = invoke("key", "show", "--tls", "--json", str(file))
    document = json.loads(shown.stdout)
    # HKDF of the Python package cryptography 48.0.0 gave these.
    assert document == {"schema": 1, "identity": IDENTITY, "psk": PSK}
    text = invoke("key", "show", "--tls", str(file)).stdout
    assert IDENTITY in text
    assert PSK in text
