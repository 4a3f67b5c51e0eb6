# SPDX-License-Identifier: BSD-3-Clause
"""A peer whose release speaks no version of this one: both sides say so at once, and which side to update.

The peer is a socket that says what a later or an earlier release would say. A stage of CI tests whole releases. No time
is measured: what a side is told comes by messages, and every time-out is many minutes.
"""

from __future__ import annotations

import hmac
import os
import re
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import ofipy
from tests.later_release import (
    CONNREQ,
    HELLO,
    LATER,
    NACK,
    REFUSED,
    answering,
    shm_address,
    shm_packet,
    tcp_control,
)
from tests.ports import free_port

TIMEOUT = 300
NODE = "127.0.0.1"
PROVES = 1  # the bit of a side that has a key
KEY = "a key that is long enough"

SetKey = Callable[[], None]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", "600")


@pytest.fixture
def set_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetKey:
    """What gives the endpoints that are opened from then on the key."""

    def set_key() -> None:
        path = tmp_path / "key"
        path.touch(mode=0o600)
        path.write_text(KEY)
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(path))

    return set_key


def says_which(protocol: str, own: str, theirs: str = f"version {LATER}", where: str = "this side") -> str:
    """What the exception says, as a pattern; only some of its messages keep the remedy apart."""
    said = re.escape(f"the peer speaks {theirs} of {protocol}, and this side {own}")
    return rf"{said}(; | \()update ofipy on {re.escape(where)}"


def tcp_proof(role: bytes, nonces: bytes, ends: list[tuple[str, int]], versions: list[int]) -> bytes:
    """The proof of a refusal; ends and versions are the connector's, then the acceptor's."""
    places = b"".join(b"\4" + socket.inet_aton(host) + struct.pack(">H", port) for host, port in ends)
    covered = b"ofipy tcp versions" + role + nonces + places + bytes(versions)
    return hmac.digest(KEY.encode(), covered, "sha256")


# What the packet of another release says beside its own versions is the same in all.
@pytest.mark.parametrize("provider", ["shm", "link:shm+tcp"])
def test_shm_refused_by_a_later_release(provider: str) -> None:
    port = free_port()
    answer = shm_packet(REFUSED, shm_address(str(port)), LATER, LATER)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"\0ofipy-shm/1/{os.getuid()}/{port}")
    listener.listen()
    with answering(listener, answer), ofipy.open(provider=provider) as ep:
        sent = ep.tsend(b"x", ep.insert(f"localhost:{port}"), tag=1)
        with pytest.raises(ofipy.IncompatiblePeer) as caught:
            sent.wait(timeout=TIMEOUT)
    message = str(caught.value)
    assert f"the peer speaks version {LATER} of the shm protocol, and this side version 3" in message
    assert "update ofipy on this side" in message


@pytest.mark.parametrize(
    ("newest", "oldest", "theirs", "where"),
    [
        (LATER, LATER, f"version {LATER}", "this side"),
        (LATER, LATER - 4, f"versions {LATER - 4} to {LATER}", "this side"),
        (2, 1, "versions 1 to 2", "the peer's side"),
    ],
)
def test_shm_called_by_another_release(newest: int, oldest: int, theirs: str, where: str) -> None:
    own, other_port = free_port(), free_port()
    address = shm_address(str(other_port))
    with ofipy.open(str(own), provider="shm") as ep:
        peer = ep.insert(f"localhost:{other_port}")
        received = ep.trecv(peer, tag=1)
        elsewhere = ep.trecv(tag=2)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
            caller.settimeout(TIMEOUT)
            caller.connect(f"\0ofipy-shm/1/{os.getuid()}/{own}")
            caller.sendall(shm_packet(HELLO, address, newest, oldest))
            with pytest.raises(
                ofipy.IncompatiblePeer, match=says_which("the shm protocol", "version 3", theirs, where)
            ):
                received.wait(timeout=TIMEOUT)
            # A receive that is posted later ends as well, until the peer's address is inserted again.
            with pytest.raises(ofipy.IncompatiblePeer, match=theirs):
                ep.trecv(peer, tag=3).wait(timeout=TIMEOUT)
            answer = caller.recv(4096)
        assert struct.unpack_from("<HHH", answer, 4) == (3, 3, REFUSED)
        # Others are not concerned.
        assert not elsewhere.done
        with ofipy.open(provider="shm") as other:
            other.tsend(b"y", other.insert(f"localhost:{own}"), tag=2).wait(timeout=TIMEOUT)
        assert bytes(elsewhere.wait(timeout=TIMEOUT).data) == b"y"


@pytest.mark.parametrize("with_key", [False, True])
@pytest.mark.parametrize("ep_type", ["rdm", "msg"])
def test_tcp_refused_by_a_later_release_without_a_key(ep_type: str, with_key: bool, set_key: SetKey) -> None:
    if with_key:
        set_key()
    listener = socket.create_server((NODE, 0))
    answer = tcp_control(NACK, LATER, LATER - 1)
    target = f"{NODE}:{listener.getsockname()[1]}"
    with answering(listener, answer), ofipy.open(provider="tcp", node=NODE, ep_type=ep_type) as ep:
        begun = ep.connect(target) if ep_type == "msg" else ep.tsend(b"x", ep.insert(target), tag=1)
        with pytest.raises(
            ofipy.IncompatiblePeer,
            match=says_which("the tcp extension", "version 1", f"versions {LATER - 1} to {LATER}"),
        ):
            begun.wait(timeout=TIMEOUT)


def test_tcp_called_by_a_later_release() -> None:
    with ofipy.open(provider="tcp", node=NODE) as ep, socket.create_server((NODE, 0)) as at:
        port = at.getsockname()[1]
        received = ep.trecv(ep.insert(f"{NODE}:{port}"), tag=1)
        target = (NODE, int(str(ep.address).rpartition(":")[2]))
        with socket.create_connection(target, timeout=TIMEOUT) as caller:
            caller.sendall(tcp_control(CONNREQ, LATER, LATER, port))
            with pytest.raises(ofipy.IncompatiblePeer, match=says_which("the tcp extension", "version 1")):
                received.wait(timeout=TIMEOUT)
            answer = caller.recv(4096)
    # What it says lets the caller report the same.
    assert answer == tcp_control(NACK, 1, 1)[:16] + answer[16:24] + bytes(8)
    assert answer[23] == 0


def test_tcp_speaks_an_earlier_version_with_a_later_release() -> None:
    with ofipy.open(provider="tcp", node=NODE) as ep:
        target = (NODE, int(str(ep.address).rpartition(":")[2]))
        with socket.create_connection(target, timeout=TIMEOUT) as caller:
            caller.sendall(tcp_control(CONNREQ, LATER, 1, 4711))
            assert caller.recv(32)[1] == 1  # CONNRESP


@pytest.mark.parametrize("ep_type", ["rdm", "msg"])
def test_tcp_refused_by_a_later_release_under_a_proof(ep_type: str, set_key: SetKey) -> None:
    """tests/native/test_tcp_refusal.c has the proofs that are invalid."""
    set_key()
    with (
        socket.create_server((NODE, 0)) as listener,
        ofipy.open(provider="tcp", node=NODE, ep_type=ep_type) as ep,
    ):
        target = f"{NODE}:{listener.getsockname()[1]}"
        begun = ep.connect(target) if ep_type == "msg" else ep.tsend(b"x", ep.insert(target), tag=1)
        connection, source = listener.accept()
        with connection:
            connection.settimeout(TIMEOUT)
            first = connection.recv(4096)
            own, theirs = os.urandom(32), connection.sendall
            theirs(tcp_control(NACK, LATER, LATER, private=own, bits=PROVES))
            answer = connection.recv(4096)
            assert answer[:2] == bytes([3, CONNREQ])
            port = struct.unpack_from(">H", first, 34)[0] if ep_type == "rdm" else source[1]
            said = answer[32:64] + own, [(NODE, port), listener.getsockname()], [1, 1, LATER, LATER]
            assert answer[64:] == tcp_proof(b"c", *said)
            theirs(tcp_control(NACK, LATER, LATER, private=tcp_proof(b"a", *said), bits=PROVES))
            with pytest.raises(ofipy.IncompatiblePeer, match=says_which("the tcp extension", "version 1")):
                begun.wait(timeout=TIMEOUT)
            # Nothing more was said.
            assert connection.recv(4096) == b""


@pytest.mark.parametrize("ep_type", ["rdm", "msg"])
def test_tcp_called_by_a_later_release_under_a_proof(
    ep_type: str, set_key: SetKey, caplog: pytest.LogCaptureFixture
) -> None:
    set_key()
    with (
        socket.create_server((NODE, 0)) as at,
        (
            ofipy.listen(provider="tcp", node=NODE)
            if ep_type == "msg"
            else ofipy.open(provider="tcp", node=NODE)
        ) as called,
    ):
        port = at.getsockname()[1]
        received = (
            called.trecv(called.insert(f"{NODE}:{port}"), tag=1)
            if isinstance(called, ofipy.Endpoint)
            else None
        )
        target = (NODE, int(str(called.address).rpartition(":")[2]))
        with socket.create_connection(target, timeout=TIMEOUT) as caller:
            caller.sendall(tcp_control(CONNREQ, LATER, LATER, port, bits=PROVES))
            own, theirs = os.urandom(32), caller.recv(4096)[32:]
            place = (NODE, port) if received else caller.getsockname()
            said = own + theirs, [place, target], [LATER, LATER, 1, 1]
            answer = own + tcp_proof(b"c", *said)
            caller.sendall(tcp_control(CONNREQ, LATER, LATER, private=answer, bits=PROVES))
            assert caller.recv(4096)[32:] == tcp_proof(b"a", *said)
            assert caller.recv(4096) == b""
        if received:
            with pytest.raises(ofipy.IncompatiblePeer, match=says_which("the tcp extension", "version 1")):
                received.wait(timeout=TIMEOUT)
        else:
            called.close()
    assert any(f"the peer speaks version {LATER}" in record.getMessage() for record in caplog.records)
