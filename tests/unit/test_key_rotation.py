# SPDX-License-Identifier: BSD-3-Clause
"""Processes change to another key one by one: those with a key in common connect, whichever side begins."""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import ofipy
from ofipy._base.binding import drain_log
from ofipy.cli.key import new_key

TIMEOUT = 20


def find_openssl() -> bool:
    try:
        ctypes.CDLL("libssl.so.3")
    except OSError:
        return False
    return True


needs_openssl = pytest.mark.skipif(not find_openssl(), reason="libssl.so.3 is not installed")
encryptions = pytest.mark.parametrize("encryption", ["off", pytest.param("required", marks=needs_openssl)])
Setting = Callable[..., None]


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """Set the keys, by their names, of what is opened next: the one to prove, and those that are accepted too."""

    def path_of(name: str) -> str:
        file = tmp_path / name
        if not file.exists():
            new_key(file)
        return str(file)

    def set_keys(own: str, *accepted: str) -> None:
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", path_of(own) if own else "")
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE_ACCEPTED", ":".join(map(path_of, accepted)))

    return set_keys


def open_endpoint(**options: object) -> ofipy.Endpoint:
    return ofipy.open(provider="tcp", node="127.0.0.1", **options)  # type: ignore[arg-type]


def pass_message(source: ofipy.Endpoint, target: ofipy.Endpoint) -> ofipy.Security:
    """Connect anew, and say what holds then."""
    peer = source.insert(target.address)
    sent = source.tsend(b"x", peer, tag=1)
    assert target.trecv(tag=1).wait(timeout=TIMEOUT).data == b"x"
    sent.wait(timeout=TIMEOUT)
    return source.security(peer)


def replace(path: Path, by: Path) -> None:
    """Change a file as an operator should: at no moment it has a part of a key."""
    beside = path.with_suffix(".new")
    beside.write_bytes(by.read_bytes())
    beside.chmod(0o600)
    beside.rename(path)


@encryptions
@pytest.mark.parametrize(
    ("of_server", "of_client"),
    [
        (("new", "old"), ("old",)),
        (("old",), ("new", "old")),
        (("new", "older", "old"), ("old", "newest")),
        (("old", "newest"), ("new", "older", "old")),
        (("old", "new"), ("new", "old")),
    ],
)
def test_sides_with_a_key_in_common_connect(
    setting: Setting,
    monkeypatch: pytest.MonkeyPatch,
    encryption: str,
    of_server: tuple[str, ...],
    of_client: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OFIPY_ENCRYPTION", encryption)
    setting(*of_server)
    with open_endpoint() as server:
        setting(*of_client)
        with open_endpoint() as client:
            security = pass_message(client, server)
            assert security.proven
            assert security.encrypted == (encryption == "required")


@encryptions
def test_sides_without_a_key_in_common_refuse_each_other(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, encryption: str
) -> None:
    monkeypatch.setenv("OFIPY_ENCRYPTION", encryption)
    setting("old", "older")
    with open_endpoint() as server:
        setting("new", "newest")
        with open_endpoint() as client:
            peer = client.insert(server.address)
            with pytest.raises(ofipy.AccessDenied, match="OFIPY_AUTH_KEY_FILE"):
                client.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)


@encryptions
def test_both_connect_at_once(setting: Setting, monkeypatch: pytest.MonkeyPatch, encryption: str) -> None:
    monkeypatch.setenv("OFIPY_ENCRYPTION", encryption)
    setting("old")
    with open_endpoint() as one:
        setting("new", "old")
        with open_endpoint() as other:
            sends = [
                one.tsend(b"to the other", one.insert(other.address), tag=1),
                other.tsend(b"to one", other.insert(one.address), tag=1),
            ]
            assert one.trecv(tag=1).wait(timeout=TIMEOUT).data == b"to one"
            assert other.trecv(tag=1).wait(timeout=TIMEOUT).data == b"to the other"
            for send in sends:
                send.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("of_client", [("new",), ("new", "old")])
def test_connected_endpoints_prove_their_own_key(setting: Setting, of_client: tuple[str, ...]) -> None:
    """Their socket cannot be opened anew, so a server accepts the new key before its clients have it."""
    setting("old", "new")
    with ofipy.listen(provider="tcp", node="127.0.0.1") as listener:
        setting(*of_client)
        with ofipy.open(provider="tcp", node="127.0.0.1", ep_type="msg") as client:
            connecting = client.connect(listener.address)
            with listener.wait(timeout=TIMEOUT).accept() as server:
                connecting.wait(timeout=TIMEOUT)
                client.send(b"x")
                assert server.recv().wait(timeout=TIMEOUT).data == b"x"


@encryptions
def test_files_that_change_count_at_the_next_connection(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, encryption: str
) -> None:
    monkeypatch.setenv("OFIPY_ENCRYPTION", encryption)
    setting("server", "accepted")
    setting("client")
    setting("old")
    setting("new")
    for name, key in (("server", "old"), ("accepted", "old"), ("client", "old")):
        replace(tmp_path / name, tmp_path / key)
    setting("server", "accepted")
    with open_endpoint() as server:
        setting("client")
        with open_endpoint() as first:
            assert pass_message(first, server).proven
            # The new key is accepted, then proven by the one, and by the other.
            replace(tmp_path / "accepted", tmp_path / "new")
            replace(tmp_path / "client", tmp_path / "new")
            with open_endpoint() as second:
                assert pass_message(second, server).proven
                replace(tmp_path / "server", tmp_path / "new")
                assert pass_message(server, second).proven
                with open_endpoint() as third:
                    assert pass_message(third, server).proven
                    # What was up before has stayed up.
                    assert pass_message(first, server).proven
        # The old key is accepted no more.
        replace(tmp_path / "client", tmp_path / "old")
        with open_endpoint() as late:
            peer = late.insert(server.address)
            with pytest.raises(ofipy.AccessDenied):
                late.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)


def test_a_file_that_cannot_be_used_is_reported_and_the_keys_stay(
    setting: Setting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="ofipy")
    setting("new", "old")
    with open_endpoint() as server:
        (tmp_path / "new").chmod(0o644)
        setting("old")
        with open_endpoint() as client:
            assert pass_message(client, server).proven
    drain_log()
    said = [record.getMessage() for record in caplog.records]
    assert sum("the keys that were read before stay" in text and "chmod 600" in text for text in said) == 1, (
        said
    )


def test_objects_are_received_after_the_key_has_changed(setting: Setting, tmp_path: Path) -> None:
    setting("job", "old")
    setting("new")
    setting("job", "old")
    with open_endpoint() as one, open_endpoint() as other:
        replace(tmp_path / "job", tmp_path / "new")
        peer = one.insert(other.address)
        one.tsend_obj({"a": 1}, peer, tag=1)
        assert other.trecv_obj(tag=1).wait(timeout=TIMEOUT) == {"a": 1}


@pytest.mark.parametrize("provider", ["tcp", "link"])
def test_accepted_keys_need_one_to_prove(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    setting("new", "old")
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", "")
    with pytest.raises(ofipy.ConfigError, match="OFIPY_AUTH_KEY_FILE, the one to prove, is not set"):
        ofipy.open(provider=provider)


def test_an_accepted_file_that_is_missing_is_named(setting: Setting, tmp_path: Path) -> None:
    setting("new", "old")
    os.unlink(tmp_path / "old")
    with pytest.raises(ofipy.FabricError, match=r"OFIPY_AUTH_KEY_FILE_ACCEPTED=.*missing"):
        open_endpoint()


def test_link_takes_accepted_keys(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_HOST_ID", "one")
    setting("new", "old")
    with ofipy.open(provider="link", node="127.0.0.1") as server:
        monkeypatch.setenv("OFIPY_HOST_ID", "other")
        setting("old")
        with ofipy.open(provider="link", node="127.0.0.1") as client:
            peer = client.insert(server.address)
            client.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)
            assert server.trecv(tag=1).wait(timeout=TIMEOUT).data == b"x"
            assert client.way(peer) == "tcp"
