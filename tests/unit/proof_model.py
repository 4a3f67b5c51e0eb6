# SPDX-License-Identifier: BSD-3-Clause
"""A model of proofs of a key: Python's ``hmac``, and what the providers' pages say that a proof covers."""

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass

__all__ = ["TcpTranscript", "derive", "prove"]


def derive(key: bytes, info: str) -> bytes:
    """HKDF-SHA256 (RFC 5869) with an empty salt: the first block, of 32 bytes."""
    extracted = hmac.digest(bytes(32), key, hashlib.sha256)
    return hmac.digest(extracted, info.encode() + b"\x01", hashlib.sha256)


def prove(key: bytes, *fields: bytes) -> bytes:
    """The proof of a key over a transcript of these fields."""
    return hmac.digest(key, b"".join(fields), hashlib.sha256)


@dataclass(frozen=True, slots=True)
class TcpTranscript:
    """What a proof over tcp covers, from the page of that provider; pairs are connector, acceptor."""

    nonces: tuple[bytes, bytes]
    addresses: tuple[tuple[str, int], tuple[str, int]]
    versions: tuple[int, int] = (1, 1)
    identities: tuple[bytes, bytes] | None = None

    def fields(self, role: str) -> list[bytes]:
        addresses = []
        for host, port in self.addresses:
            packed = ipaddress.ip_address(host).packed
            addresses += [bytes([len(packed)]), packed, port.to_bytes(2, "big")]
        versions = bytes(self.versions if self.versions[0] != self.versions[1] else self.versions[:1])
        return [role.encode(), *self.nonces, *addresses, *(self.identities or ()), versions, b"\x01"]

    def proof(self, role: str, key: bytes) -> bytes:
        """The proof of the connector ("c") or the acceptor ("a")."""
        return prove(key, *self.fields(role))
