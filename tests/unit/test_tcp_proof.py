# SPDX-License-Identifier: BSD-3-Clause
"""tcp's proof of a key, against a peer made of a socket and Python's ``hmac``, in either role.

The peer follows the provider's page. It says any version of the extension, as a later release would. Where a version is
changed on the way, the peer covers what it said, and the endpoint what it received.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
from proof_model import TcpTranscript
from tcp_wire_model import HELLO, PROOF, TAG, Header, decode, encode

TIMEOUT = 20
KEY = b"the key of these tests, with \x00\xff"
OTHER_KEY = b"quite another key than the first one"
CONNREQ, CONNRESP = 0, 1
AUTHENTICATION, IDENTITY = 1, 4  # bits of the extension's capabilities
VERSION = 1  # of the extension, in this release
PORT = 1234  # at which the peer says that it listens

# Versions that the peer says and that the endpoint receives: equal, or changed on the way.
ALIKE = [(1, 1), (2, 2), (255, 255)]
CHANGED = [(1, 2), (2, 1), (2, 3), (3, 2)]


@pytest.fixture(params=["127.0.0.1", "::1"])
def node(request: pytest.FixtureRequest) -> str:
    host = str(request.param)
    try:
        socket.create_server((host, 0), family=family(host)).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    return host


@pytest.fixture
def ep(node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ofipy.Endpoint]:
    path = tmp_path / "job.key"
    path.touch(mode=0o600)
    path.write_bytes(KEY)
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(path))
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", str(TIMEOUT))
    with ofipy.open(provider="tcp", node=node) as endpoint:
        yield endpoint


def family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def port_of(ep: ofipy.Endpoint) -> int:
    return int(str(ep.address).rpartition(":")[2])


@dataclass(slots=True)
class Peer:
    """A peer over a socket: what it says, and what its proof covers."""

    socket: socket.socket
    connects: bool
    received_version: int  # by the endpoint
    said_version: int  # by this peer
    identity: bytes | None = None
    key: bytes = KEY
    their_identity: bytes = b""
    nonce: bytes = field(default_factory=lambda: os.urandom(32))
    their_nonce: bytes = b""

    def receive(self, length: int) -> bytes:
        got = b""
        while len(got) < length:
            part = self.socket.recv(length - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def is_refused(self) -> bool:
        """Wait for what the endpoint does: it ends the connection without a further byte, or sends some."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def is_told_of_refusal(self) -> bool:
        """Wait for a proof of zeros, which refuses that of a connector, and for the end."""
        return self.receive_proof() == bytes(32) and self.is_refused()

    # Control messages

    def send_control(self, kind: int, private: bytes) -> None:
        earlier = (self.received_version - 1) << 56  # it speaks all versions from 1 on
        bits = AUTHENTICATION | (IDENTITY if self.identity else 0) | earlier
        magic = bytes([self.received_version]) + b"OFIPYTX"
        head = struct.pack(">BBH4x", 3, kind, len(private)) + magic + struct.pack("<Q", bits)
        self.socket.sendall(head + struct.pack("=Q", 1) + private)

    def receive_control(self, kind: int) -> bytes:
        head = self.receive(32)
        version, got, size = struct.unpack_from(">BBH", head)
        assert (version, got) == (3, kind)
        assert head[8:16] == bytes([VERSION]) + b"OFIPYTX"
        assert head[16] & AUTHENTICATION
        return self.receive(size)

    def rdm(self, port: int) -> bytes:
        return struct.pack(">BBHI", 1, 0, port, os.getpid()) + (self.identity or b"")

    def request(self) -> None:
        """Send what a connector sends, twice where identities are sent."""
        if self.identity:
            self.send_control(CONNREQ, self.rdm(PORT)[:8])
            assert self.receive_control(CONNRESP) == b""
        self.send_control(CONNREQ, self.rdm(PORT))
        self.their_identity = self.receive_control(CONNRESP)[8:]

    def answer(self) -> int:
        """Answer as an acceptor does; returns the port at which the endpoint says that it listens."""
        private = self.receive_control(CONNREQ)
        if self.identity:
            self.send_control(CONNRESP, b"")
            private = self.receive_control(CONNREQ)
        self.their_identity = private[8:]
        port = int(struct.unpack_from(">H", private, 2)[0])
        self.send_control(CONNRESP, self.rdm(port))
        return port

    # Messages

    def send(self, header: Header, payload: bytes = b"") -> None:
        self.socket.sendall(encode(header) + payload)

    def receive_header(self, op: int) -> Header:
        base = self.receive(16)
        header = decode(base + self.receive(base[6] - 16), "<", extended=True)
        assert isinstance(header, Header)
        assert header.op == op
        return header

    def exchange_hellos(self) -> None:
        self.their_nonce = struct.pack("<4Q", *self.receive_header(HELLO).words[1:])
        self.send(Header(HELLO, words=(0, *struct.unpack("<4Q", self.nonce))))

    def transcript(self, port_of_connector: int) -> TcpTranscript:
        """What the proofs of both sides cover, as this peer sees it."""
        own, theirs = self.socket.getsockname()[:2], self.socket.getpeername()[:2]
        here, there = (self.nonce, own, self.said_version), (self.their_nonce, theirs, VERSION)
        connector, acceptor = (here, there) if self.connects else (there, here)
        identities = (self.identity, self.their_identity) if self.identity else None
        return TcpTranscript(
            nonces=(connector[0], acceptor[0]),
            addresses=((connector[1][0], port_of_connector), acceptor[1]),
            versions=(connector[2], acceptor[2]),
            identities=identities if self.connects or not identities else identities[::-1],
        )

    def send_proof(self, transcript: TcpTranscript, role: str) -> None:
        self.send(Header(PROOF, words=struct.unpack("<4Q", transcript.proof(role, self.key))))

    def receive_proof(self) -> bytes:
        return struct.pack("<4Q", *self.receive_header(PROOF).words)


@contextmanager
def connected(ep: ofipy.Endpoint, node: str, **settings: Any) -> Iterator[tuple[Peer, TcpTranscript]]:
    """A peer that has connected to the endpoint, before the proofs."""
    with socket.create_connection((node, port_of(ep)), timeout=TIMEOUT) as connection:
        peer = Peer(connection, connects=True, **settings)
        peer.request()
        peer.exchange_hellos()
        yield peer, peer.transcript(PORT)


@contextmanager
def accepted(
    ep: ofipy.Endpoint, node: str, **settings: Any
) -> Iterator[tuple[Peer, TcpTranscript, ofipy.Request]]:
    """A peer to which the endpoint has connected, before the proofs, and the send that waits for them."""
    with socket.create_server((node, 0), family=family(node)) as listener:
        listener.settimeout(TIMEOUT)
        host = f"[{node}]" if ":" in node else node
        sent = ep.tsend(b"hello", ep.insert(f"{host}:{listener.getsockname()[1]}"), tag=7)
        with listener.accept()[0] as connection:
            connection.settimeout(TIMEOUT)
            peer = Peer(connection, connects=False, **settings)
            port = peer.answer()
            peer.exchange_hellos()
            yield peer, peer.transcript(port), sent


def versions_of(pair: tuple[int, int]) -> dict[str, int]:
    said, received = pair
    return {"said_version": said, "received_version": received}


IDENTITIES = [None, bytes(range(16))]


@pytest.mark.parametrize("identity", IDENTITIES, ids=["no identity", "identity"])
@pytest.mark.parametrize("pair", ALIKE)
def test_a_connector_of_any_version_proves_its_key(
    ep: ofipy.Endpoint, node: str, pair: tuple[int, int], identity: bytes | None
) -> None:
    received = ep.trecv(tag=7)
    with connected(ep, node, identity=identity, **versions_of(pair)) as (peer, transcript):
        assert bool(peer.their_identity) == bool(identity)
        peer.send_proof(transcript, "c")
        assert peer.receive_proof() == transcript.proof("a", KEY)
        peer.send(Header(TAG, tag=7, payload=5), b"hello")
        assert bytes(received.wait(timeout=TIMEOUT).data) == b"hello"


@pytest.mark.parametrize("pair", CHANGED)
def test_a_connector_whose_version_was_changed_is_refused(
    ep: ofipy.Endpoint, node: str, pair: tuple[int, int]
) -> None:
    with connected(ep, node, **versions_of(pair)) as (peer, transcript):
        peer.send_proof(transcript, "c")
        assert peer.is_told_of_refusal()


@pytest.mark.parametrize("identity", IDENTITIES, ids=["no identity", "identity"])
@pytest.mark.parametrize("pair", ALIKE)
def test_an_acceptor_of_any_version_proves_its_key(
    ep: ofipy.Endpoint, node: str, pair: tuple[int, int], identity: bytes | None
) -> None:
    with accepted(ep, node, identity=identity, **versions_of(pair)) as (peer, transcript, sent):
        assert bool(peer.their_identity) == bool(identity)
        assert peer.receive_proof() == transcript.proof("c", KEY)
        peer.send_proof(transcript, "a")
        header = peer.receive_header(TAG)
        assert (header.tag, peer.receive(header.payload)) == (7, b"hello")
        sent.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("pair", CHANGED)
def test_an_acceptor_whose_version_was_changed_is_refused(
    ep: ofipy.Endpoint, node: str, pair: tuple[int, int]
) -> None:
    with accepted(ep, node, **versions_of(pair)) as (peer, transcript, sent):
        assert peer.receive_proof() != transcript.proof("c", KEY)
        peer.send_proof(transcript, "a")
        with pytest.raises(ofipy.AccessDenied, match="another key"):
            sent.wait(timeout=TIMEOUT)
        assert peer.is_refused()


def forge(transcript: TcpTranscript, what: str) -> TcpTranscript:
    """The transcript of another situation."""
    (first, second), (own, theirs) = transcript.nonces, transcript.addresses
    changes: dict[str, dict[str, Any]] = {
        "nonces swapped": {"nonces": (second, first)},
        "nonce of another connection": {"nonces": (first, bytes(32))},
        "addresses swapped": {"addresses": (theirs, own)},
        "another port": {"addresses": (own, (theirs[0], theirs[1] ^ 1))},
        "no identities": {"identities": None},
        "identities swapped": {"identities": transcript.identities and transcript.identities[::-1]},
    }
    return replace(transcript, **changes[what])


@pytest.mark.parametrize(
    "what",
    [
        *("nonces swapped", "nonce of another connection", "addresses swapped", "another port"),
        *("no identities", "identities swapped"),
    ],
)
def test_a_proof_of_another_situation_is_refused(ep: ofipy.Endpoint, node: str, what: str) -> None:
    with connected(ep, node, identity=IDENTITIES[1], **versions_of((VERSION, VERSION))) as (peer, transcript):
        peer.send_proof(forge(transcript, what), "c")
        assert peer.is_told_of_refusal()


@pytest.mark.parametrize(("key", "role"), [(OTHER_KEY, "c"), (KEY, "a")], ids=["another key", "another role"])
def test_a_proof_with_another_key_or_role_is_refused(
    ep: ofipy.Endpoint, node: str, key: bytes, role: str
) -> None:
    with connected(ep, node, key=key, **versions_of((VERSION, VERSION))) as (peer, transcript):
        peer.send_proof(transcript, role)
        assert peer.is_told_of_refusal()
