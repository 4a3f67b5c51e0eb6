# SPDX-License-Identifier: BSD-3-Clause
"""The job's key: drawn, compared, and kept where endpoints find it but no other user does."""

import hmac
import os
import secrets

from ofipy._base import config
from ofipy._base.binding import check, lib
from ofipy._base.errors import AccessDenied
from ofipy._base.key_file import read_key
from ofipy._discovery import providers

__all__ = ["PROOF_SIZE", "KeyFile", "agreed", "configured", "new", "offer", "proof"]

PROOF_SIZE = 32


def new() -> bytes:
    """A key that nobody else has."""
    return secrets.token_bytes(32)


def proof(key: bytes | None, *parts: bytes) -> bytes:
    """What only those can say of some bytes who have the key."""
    return hmac.digest(key or b"ofipy", b"".join(parts), "sha256")


def configured() -> bytes | None:
    """The key in the file that ``OFIPY_AUTH_KEY_FILE`` names.

    Raises
    ------
    MissingKeyFile
        When it is not there.
    ConfigError
        When it cannot be read, or is no key.
    """
    providers.configure()
    path = config.value("AUTH_KEY_FILE")
    return None if path is None else read_key(path, operation="job")


# What rank 0 puts into the first fence: a new key, or that it has one and which.


def offer(own: bytes | None) -> tuple[bytes, bytes]:
    """Rank 0's key, and what the others are told of it."""
    if own is not None:
        return own, b"known" + _fingerprint(own)
    key = new()
    return key, b"fresh" + key


def agreed(own: bytes | None, told: bytes) -> bytes:
    """The job's key, from what rank 0 has told.

    Raises
    ------
    AccessDenied
        When this process and rank 0 have not the same.
    """
    kind, value = told[:5], told[5:]
    if kind == b"fresh" and own is None:
        return value
    if kind == b"known" and own is not None and hmac.compare_digest(value, _fingerprint(own)):
        return own
    here = "no key" if own is None else "a key"
    there = "none" if kind == b"fresh" else "one" if own is None else "another one"
    raise AccessDenied(
        f"this process has {here} and rank 0 has {there}",
        operation="job",
        remedy="set OFIPY_AUTH_KEY_FILE to the same key on every host of the job, or on none",
    )


def _fingerprint(key: bytes) -> bytes:
    return proof(key, b"ofipy job key")[:16]


class KeyFile:
    """A file without a name that holds the key, in the place of the one that ``OFIPY_AUTH_KEY_FILE`` would name.

    Parameters
    ----------
    key : bytes
        What every endpoint proves that is opened until :meth:`close`.
    """

    def __init__(self, key: bytes) -> None:
        self._descriptor = os.memfd_create("ofipy-job-key", os.MFD_CLOEXEC)
        os.fchmod(self._descriptor, 0o600)
        os.write(self._descriptor, key)
        self._name(f"/proc/self/fd/{self._descriptor}")

    @staticmethod
    def _name(path: str) -> None:
        check(lib.ofp_param_set(b"AUTH_KEY_FILE", path.encode()), operation="job")

    def close(self) -> None:
        """Forget the key; endpoints that are open keep it."""
        if self._descriptor >= 0:
            self._name("")
            os.close(self._descriptor)
            self._descriptor = -1
