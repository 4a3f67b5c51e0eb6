# SPDX-License-Identifier: BSD-3-Clause
"""What processes and the server of a rendezvous write to each other.

A head of fixed size: magic, newest version that the sender speaks, kind, how many earlier versions it speaks, a zero, a
digest of the run's id, a nonce of the process, the proof of the key over all else. Then JSON, which is not looked at
before the head is right.

The head and what its proof covers are the same in every version, and so is a refusal.
"""

import enum
import hashlib
import hmac
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ofipy._base.versions import Versions
from ofipy.jobs.keys import PROOF_SIZE, proof

__all__ = [
    "ANSWER_TAG",
    "ASK_TAG",
    "MESSAGE_MAX",
    "PROTOCOL",
    "VERSIONS",
    "Foreign",
    "Kind",
    "Message",
    "Run",
    "Why",
    "is_fence",
    "refusal_of",
]

_MAGIC = b"OFPR"
VERSIONS = Versions(1)
PROTOCOL = "the protocol of the rendezvous"
_HEAD = struct.Struct(f"<4sBBBB16s16s{PROOF_SIZE}s")
MESSAGE_MAX = 1 << 16
ASK_TAG, ANSWER_TAG = 1, 2


class Kind(enum.IntEnum):
    """What a message says."""

    GREETING = 1
    """To the server: I am this rank of that many."""
    WELCOME = 2
    FENCE = 3
    """To the server: my values, and what I want of the others'."""
    VALUES = 4
    REFUSED = 5
    KNOCK = 6
    """To the door: endpoints of this process and of rank 0 have no version in common."""
    HEARD = 7


class Why(enum.StrEnum):
    """Of a refusal."""

    RUN = "run"
    """The server is of another job."""
    KEY = "key"
    SIZE = "size"
    RANK = "rank"
    LATE = "late"
    MISSING = "missing"
    """Somebody else did not come."""
    VERSION = "version"
    """A process of the job has no version in common with rank 0."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that has been read."""

    kind: Kind
    nonce: bytes
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A message of this job, of a release that speaks no version of this one."""

    versions: Versions
    """Of the sender."""
    is_proven: bool
    """It proves the key."""


class Run:
    """A job as its messages know it.

    Parameters
    ----------
    name : str
        Its id.
    key : bytes, optional
        What each side proves.
    """

    def __init__(self, name: str, key: bytes | None) -> None:
        self._key = key
        self._digest = hashlib.sha256(name.encode()).digest()[:16]

    def write(self, kind: Kind, nonce: bytes, body: Mapping[str, Any]) -> bytes:
        """Bytes of a message."""
        text = json.dumps(body).encode()
        return self._head(kind, nonce, self._proof(kind, nonce, text)) + text

    def read(self, blob: bytes) -> Message | Foreign | Why | None:
        """A message; why it is not to be answered by more than a refusal; None: it is none at all."""
        if len(blob) < _HEAD.size:
            return None
        magic, newest, number, earlier, zero, digest, nonce, said = _HEAD.unpack_from(blob)
        if magic != _MAGIC or not newest:
            return None
        if digest != self._digest:
            return Why.RUN
        text = blob[_HEAD.size :]
        expected = proof(self._key, blob[: _HEAD.size - PROOF_SIZE] + bytes(PROOF_SIZE), text)
        is_proven = hmac.compare_digest(said, expected)
        theirs = Versions(newest, earlier)
        # Before the key: that releases differ is never told as another key.
        if not VERSIONS.include_one_of(theirs):
            return Foreign(theirs, is_proven)
        if zero or number not in Kind.__members__.values():
            return None
        if not is_proven:
            return Why.KEY
        body = _object_of(text)
        return None if body is None else Message(Kind(number), nonce, body)

    def read_of_any_release(self, blob: bytes) -> tuple[int, bytes, dict[str, Any]] | None:
        """Kind, nonce and body of a message that proves to be of this run; None: it is none.

        For messages that are the same in every release.
        """
        if len(blob) < _HEAD.size:
            return None
        magic, _, number, _, _, digest, nonce, said = _HEAD.unpack_from(blob)
        text = blob[_HEAD.size :]
        expected = proof(self._key, blob[: _HEAD.size - PROOF_SIZE] + bytes(PROOF_SIZE), text)
        if magic != _MAGIC or digest != self._digest or not hmac.compare_digest(said, expected):
            return None
        body = _object_of(text)
        return None if body is None else (number, nonce, body)

    def _head(self, kind: Kind, nonce: bytes, said: bytes) -> bytes:
        return _HEAD.pack(_MAGIC, VERSIONS.newest, kind, VERSIONS.earlier, 0, self._digest, nonce, said)

    def _proof(self, kind: Kind, nonce: bytes, text: bytes) -> bytes:
        # The kinds tell the directions apart, so nobody proves anything by sending back what it was sent.
        return proof(self._key, self._head(kind, nonce, bytes(PROOF_SIZE)), text)


def _object_of(text: bytes) -> dict[str, Any] | None:
    """A body; None: it is none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def is_fence(body: Mapping[str, Any]) -> bool:
    """Whether the body of a fence's message is as it must be."""
    values, wanted = body.get("values"), body.get("wanted")
    return (
        isinstance(values, dict)
        and isinstance(wanted, list)
        and all(isinstance(each, str) for each in (*values.values(), *wanted))
    )


def refusal_of(blob: bytes) -> Why | None:
    """Why a server refuses that cannot prove, or does not know, that it is of our job; None: that is no refusal."""
    if len(blob) < _HEAD.size or blob[:4] != _MAGIC or blob[5] != Kind.REFUSED:
        return None
    try:
        return Why(json.loads(blob[_HEAD.size :])["why"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
