# SPDX-License-Identifier: BSD-3-Clause
"""A caller of RDM endpoints over librdmacm that says what it likes: the connecting half of docs/explanation/verbs.md.

It is written from that page alone, so it also checks the layout of each message and what a proof covers.
"""

import ctypes
import hashlib
import hmac
import os
import socket
import struct
from dataclasses import dataclass, replace

LIBRARY = "librdmacm.so.1"
PS_TCP = 0x0106
ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE, REJECTED = 0, 2, 5, 8
RESOLVE_MS = 5000
# Offsets in struct rdma_cm_id: the GIDs of a resolved route.
OWN_GID, PEER_GID, GID_SIZE = 288, 304, 16

REJECT, LATER, CHALLENGE, KEY_HERE, KEY_THERE, OTHER_KEY, VERSION_REFUSED = range(7)
HELLO = struct.Struct("<4sBBBBIHHQ16s")
VERSION = 1


class ConnectionParameters(ctypes.Structure):
    _fields_ = (
        ("private_data", ctypes.c_void_p),
        ("private_data_len", ctypes.c_uint8),
        ("responder_resources", ctypes.c_uint8),
        ("initiator_depth", ctypes.c_uint8),
        ("flow_control", ctypes.c_uint8),
        ("retry_count", ctypes.c_uint8),
        ("rnr_retry_count", ctypes.c_uint8),
        ("srq", ctypes.c_uint8),
        ("qp_num", ctypes.c_uint32),
    )


class Event(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_void_p),
        ("listen_id", ctypes.c_void_p),
        ("event", ctypes.c_int),
        ("status", ctypes.c_int),
        ("connection", ConnectionParameters),
    )


class InternetAddress(ctypes.Structure):
    _fields_ = (
        ("family", ctypes.c_uint16),
        ("port", ctypes.c_uint16),
        ("ip", ctypes.c_uint8 * 4),
        ("zero", ctypes.c_uint8 * 8),
    )


@dataclass(frozen=True)
class Answer:
    """An event of the connection manager that answers a request."""

    accepted: bool
    data: bytes
    pair_number: int

    @property
    def kind(self) -> int:
        return self.data[0] if self.data else REJECT


@dataclass(frozen=True)
class Facts:
    """What both sides of a connection know, and a proof covers."""

    challenge: bytes
    caller_nonce: bytes
    acceptor_nonce: bytes
    caller_gid: bytes
    acceptor_gid: bytes
    caller: tuple[str, int]
    acceptor: tuple[str, int]
    caller_hello: bytes
    acceptor_hello: bytes

    def transcript(self, role: str, pair_number: int) -> bytes:
        def place(address: tuple[str, int]) -> bytes:
            ip = socket.inet_aton(address[0])
            return bytes([len(ip)]) + ip + address[1].to_bytes(2, "big")

        def whole(hello: bytes) -> bytes:
            return bytes([len(hello)]) + hello

        return b"".join(
            (
                b"ofipy verbs 1",
                role.encode(),
                self.challenge,
                self.caller_nonce,
                self.acceptor_nonce,
                self.caller_gid,
                self.acceptor_gid,
                place(self.caller),
                place(self.acceptor),
                whole(self.caller_hello),
                whole(self.acceptor_hello),
                pair_number.to_bytes(4, "big"),
            )
        )

    def proof(self, key: bytes, role: str, pair_number: int) -> bytes:
        return hmac.digest(derived(key), self.transcript(role, pair_number), "sha256")


def derived(key: bytes) -> bytes:
    """HKDF-SHA256 of a key file's bytes, with an empty salt."""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), key, "sha256")
    return hmac.digest(extracted, b"ofipy verbs proof 1\x01", "sha256")


def hello(version: int = 1) -> bytes:
    return HELLO.pack(
        b"ofpR", version, version, 0, 0, 4224, 4, 4, int.from_bytes(os.urandom(8)) | 1, os.urandom(16)
    )


class Caller:
    """Calls one endpoint, each request by an id of its own. Close it at the end."""

    def __init__(self, ip: str, port: int, listens_at: int = 7777, version: int = 1) -> None:
        self.library = ctypes.CDLL(LIBRARY, use_errno=True)
        self.library.rdma_create_event_channel.restype = ctypes.c_void_p
        self.to = (ip, port)
        self.port = listens_at
        self.hello = hello(version)
        self.channel = self.library.rdma_create_event_channel()
        self.ids: list[ctypes.c_void_p] = []

    def close(self) -> None:
        while self.ids:
            self.library.rdma_destroy_id(self.ids.pop())
        self.library.rdma_destroy_event_channel(ctypes.c_void_p(self.channel))

    def _check(self, result: int, what: str) -> None:
        if result:
            raise OSError(ctypes.get_errno(), what)

    def _await(self) -> tuple[int, Answer]:
        event = ctypes.POINTER(Event)()
        self._check(
            self.library.rdma_get_cm_event(ctypes.c_void_p(self.channel), ctypes.byref(event)), "get event"
        )
        found = event.contents
        said = found.connection
        data = ctypes.string_at(said.private_data, said.private_data_len) if said.private_data else b""
        number, kind = said.qp_num, found.event
        self._check(self.library.rdma_ack_cm_event(event), "acknowledge")
        return kind, Answer(kind == CONNECT_RESPONSE, data[1 : 1 + data[0]] if data else b"", number)

    def resolve(self) -> ctypes.c_void_p:
        """An id with a route to the endpoint."""
        made = ctypes.c_void_p()
        ip, port = self.to
        address = InternetAddress(socket.AF_INET, socket.htons(port), tuple(socket.inet_aton(ip)))
        create = self.library.rdma_create_id
        self._check(create(ctypes.c_void_p(self.channel), ctypes.byref(made), None, PS_TCP), "create id")
        self.ids.append(made)
        self._check(
            self.library.rdma_resolve_addr(made, None, ctypes.byref(address), RESOLVE_MS), "resolve address"
        )
        assert self._await()[0] == ADDR_RESOLVED
        self._check(self.library.rdma_resolve_route(made, RESOLVE_MS), "resolve route")
        assert self._await()[0] == ROUTE_RESOLVED
        return made

    def gids(self, made: ctypes.c_void_p) -> tuple[bytes, bytes]:
        assert made.value is not None
        return ctypes.string_at(made.value + OWN_GID, GID_SIZE), ctypes.string_at(
            made.value + PEER_GID, GID_SIZE
        )

    def connect(self, made: ctypes.c_void_p, data: bytes, pair_number: int) -> None:
        """Send a request."""
        whole = bytes([len(data)]) + data
        parameters = ConnectionParameters(
            ctypes.cast(ctypes.c_char_p(whole), ctypes.c_void_p), len(whole), 1, 1, 1, 6, 7, 0, pair_number
        )
        self._check(self.library.rdma_connect(made, ctypes.byref(parameters)), "connect")

    def request(self, data: bytes, pair_number: int, made: ctypes.c_void_p | None = None) -> Answer:
        self.connect(made or self.resolve(), data, pair_number)
        kind, answer = self._await()
        assert kind in (CONNECT_RESPONSE, REJECTED), kind
        return answer

    def refuse(self) -> None:
        """Reject the answer of the endpoint to the last request."""
        self._check(self.library.rdma_reject(self.ids[-1], None, 0), "reject")

    # -------------------------------------------------------------------------------------------------- the messages

    def first_request(self, *, has_key: bool = True) -> bytes:
        return self.port.to_bytes(2, "big") + self.hello + (bytes([VERSION]) if has_key else b"")

    def challenge(self, pair_number: int) -> Facts:
        """Get a challenge. The GIDs are those of the next id, which are the same."""
        answer = self.request(self.first_request(), pair_number)
        assert not answer.accepted
        assert answer.data[:2] == bytes([CHALLENGE, VERSION])
        own, peer = self.gids(self.ids[-1])
        return Facts(
            challenge=answer.data[2:10],
            caller_nonce=os.urandom(13),
            acceptor_nonce=answer.data[10:26],
            caller_gid=own,
            acceptor_gid=peer,
            caller=(self.to[0], self.port),
            acceptor=self.to,
            caller_hello=self.hello,
            acceptor_hello=answer.data[26:],
        )

    def second_request(self, facts: Facts, proof: bytes) -> bytes:
        return self.port.to_bytes(2, "big") + facts.challenge + facts.caller_nonce + proof

    def verify(self, facts: Facts, key: bytes, answer: Answer) -> bool:
        """Whether the endpoint's answer proves the key."""
        said, proof = answer.data[:-32], answer.data[-32:]
        return hmac.compare_digest(
            proof, replace(facts, acceptor_hello=said).proof(key, "a", answer.pair_number)
        )

    def verify_refusal(self, facts: Facts, key: bytes, answer: Answer) -> bool:
        """Whether the endpoint's refusal of the caller's version proves the key."""
        said, proof = answer.data[1:-32], answer.data[-32:]
        return hmac.compare_digest(proof, replace(facts, acceptor_hello=said).proof(key, "a", 0))
