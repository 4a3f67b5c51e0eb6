# SPDX-License-Identifier: BSD-3-Clause
"""What is encrypted between hosts: by the setting ``auto``, and although a forwarder makes a remote peer look local."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import Network, Wire
from nodes import Node, RemoteError
from watchers import forwarded, listening

from ofipy.cli.key import new_key
from tests.certificates import Authority, is_openssl_there

pytestmark = pytest.mark.skipif(not is_openssl_there(), reason="the command openssl is not installed")

Start = Callable[..., Node]
PATTERN = "a text that nobody on the way may read, " * 100
SOME = b"nobody on the way may read"
PORT = 7471
SECONDS = 30


def read_written(captured: Path, size: int) -> bytes:
    """What a watcher has seen, once it has seen more than so many bytes."""
    deadline = time.monotonic() + SECONDS
    while captured.stat().st_size <= size:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return captured.read_bytes()


@pytest.fixture
def two(network: Network) -> list[Wire]:
    """Two hosts on one network."""
    return [network.wire(network.host()) for _ in range(2)]


@pytest.fixture
def settings(two: list[Wire], tmp_path: Path) -> list[dict[str, str]]:
    """A key and certificates of both hosts, without the prefix of their names."""
    new_key(tmp_path / "key")
    authority = Authority(tmp_path / "authority")
    found = []
    for number, wire in enumerate(two):
        names = f"IP:127.0.0.1,IP:{wire.v4},IP:{wire.v6}"
        variables = authority.sign(f"host{number}", names=names).environment()
        variables["OFIPY_AUTH_KEY_FILE"] = str(tmp_path / "key")
        found.append({name.removeprefix("OFIPY_"): value for name, value in variables.items()})
    return found


@pytest.mark.parametrize("encryption", ["auto", "required", "off"])
def test_who_listens_on_the_wire(
    two: list[Wire], settings: list[dict[str, str]], start: Start, tmp_path: Path, encryption: str
) -> None:
    captured = tmp_path / "captured"
    nodes = [
        start(wire.host, INTERFACE="eth0", ENCRYPTION=encryption, **setting)
        for wire, setting in zip(two, settings, strict=True)
    ]
    with listening(two[0].host, "eth0", captured):
        addresses = [node.open() for node in nodes]
        for here, there in ((0, 1), (1, 0)):
            receive = nodes[there].begin("receive", address=None, tag=1)
            nodes[here].send(address=addresses[there], tag=1, text=PATTERN)
            assert receive.result()["text"] == PATTERN
        written = read_written(captured, 2 * len(PATTERN))
    assert (SOME in written) is (encryption == "off")


@pytest.mark.parametrize("encrypting", [0, 1])
def test_a_plain_host_is_refused_by_name(
    two: list[Wire], settings: list[dict[str, str]], start: Start, encrypting: int
) -> None:
    nodes = [
        start(
            wire.host,
            INTERFACE="eth0",
            ENCRYPTION="auto" if number == encrypting else "off",
            **settings[number],
        )
        for number, wire in enumerate(two)
    ]
    addresses = [node.open() for node in nodes]
    with pytest.raises(RemoteError, match="OFIPY_ENCRYPTION"):
        nodes[0].send(address=addresses[1], tag=1, text=PATTERN)


def test_within_a_host_nothing_is_encrypted(
    two: list[Wire], settings: list[dict[str, str]], start: Start, tmp_path: Path
) -> None:
    captured = tmp_path / "captured"
    nodes = [start(two[0].host, INTERFACE="eth0", **settings[0]) for _ in range(2)]
    with listening(two[0].host, "lo", captured):
        addresses = [node.open() for node in nodes]
        receive = nodes[1].begin("receive", address=None, tag=1)
        nodes[0].send(address=addresses[1], tag=1, text=PATTERN)
        assert receive.result()["text"] == PATTERN
        assert SOME in read_written(captured, len(PATTERN))


def test_a_forwarder_makes_no_peer_local(
    two: list[Wire], settings: list[dict[str, str]], start: Start, tmp_path: Path
) -> None:
    near, far = (
        start(wire.host, INTERFACE="lo", **setting) for wire, setting in zip(two, settings, strict=True)
    )
    far.open(service=PORT)
    near.open()
    with forwarded(two[0].host, two[1].host, PORT, tmp_path) as captured:
        receive = far.begin("receive", address=None, tag=1)
        near.send(address=f"127.0.0.1:{PORT}", tag=1, text=PATTERN)
        assert receive.result()["text"] == PATTERN
        assert SOME not in read_written(captured, len(PATTERN))
