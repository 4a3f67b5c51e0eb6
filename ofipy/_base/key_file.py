# SPDX-License-Identifier: BSD-3-Clause
"""The key that peers prove to each other, and which endpoints' peers have proven it.

The key is in the file that ``OFIPY_AUTH_KEY_FILE`` names. A domain reads it when it is opened, and follows the file:
a peer that connects later proves what is in it then. The setting may change afterwards, too: :func:`ofipy.job` sets the
job's key. What a peer has proven is the key of the file that the domain was opened with.
"""

import os

from ofipy._base import config
from ofipy._base.errors import AccessDenied, ConfigError, FabricError, MissingKeyFile
from ofipy._base.flags import PeerProof

__all__ = ["Proof", "read_key"]

_SIZES = range(16, 1025)  # bytes of a key
_NAME = "AUTH_KEY_FILE"
_DESCRIPTORS = ("/proc/", "/dev/fd/")  # what a path leads to that begins so may be another file meanwhile

_last: tuple[tuple[object, ...], bytes] | None = (
    None  # what tells a file and its state from others; its fingerprint
)


def read_key(path: str, *, operation: str) -> bytes:
    """The key in a file that the setting names.

    Raises
    ------
    MissingKeyFile
        When it is not there.
    AccessDenied
        When this user may not read it.
    ConfigError
        When it is no key.
    """
    try:
        with open(path, "rb") as file:
            key = file.read(_SIZES.stop)
    except FileNotFoundError:
        raise MissingKeyFile(
            f"OFIPY_AUTH_KEY_FILE={path}: the key file is missing; it is named by {config.origin(_NAME)}",
            operation=operation,
            remedy=f"copy the peer's to {os.path.abspath(path)}, or make one: ofipy key new {path}",
        ) from None
    except PermissionError as error:
        raise AccessDenied(f"OFIPY_AUTH_KEY_FILE={path}: {error.strerror}", operation=operation) from None
    except OSError as error:
        raise ConfigError(f"OFIPY_AUTH_KEY_FILE={path}: {error.strerror}", operation=operation) from None
    if len(key) not in _SIZES:
        has = f"{len(key)} bytes" if len(key) < _SIZES.stop else "more"
        raise ConfigError(
            f"OFIPY_AUTH_KEY_FILE={path}: a key of 16 to 1024 bytes is meant, and it has {has}",
            operation=operation,
        )
    return key


def _key_now(path: str, operation: str) -> bytes:
    """As :func:`read_key`, which is called once for each state of the file."""
    global _last
    try:
        status = os.stat(path)
    except OSError:
        return read_key(path, operation=operation)  # which says what is wrong
    state = (path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    last = _last
    if last is None or last[0] != state:
        last = _last = state, read_key(path, operation=operation)
    return last[1]


class Proof:
    """What peers have proven to the endpoints of one domain; made when that is opened.

    Parameters
    ----------
    required : PeerProof
        What the domain's endpoints require of peers: ``info.peer_proof``.

    Raises
    ------
    MissingKeyFile, AccessDenied, ConfigError
        When the key is to be proven, and cannot be read.
    """

    __slots__ = ("_key", "_path", "_required")

    def __init__(self, required: PeerProof) -> None:
        self._required = required
        self._path = config.value(_NAME) if required is PeerProof.KEY else None
        self._key = None if self._path is None else _key_now(self._path, "open a domain")

    def lack(self) -> tuple[str, str] | None:
        """Say which proof its peers lack, and the remedy; None: they lack none, or no key is set now."""
        # A process of the same user can read the file of the key.
        if self._required is PeerProof.USER or not (path := config.value(_NAME)):
            return None
        if self._required is PeerProof.NONE:
            return (
                "a key is set (OFIPY_AUTH_KEY_FILE), and peers of this provider do not prove it",
                "use link, tcp or shm",
            )
        if self._key is None:
            return (
                "a key is set (OFIPY_AUTH_KEY_FILE, ofipy.job()), and this endpoint was opened before, so its "
                "peers have not proven it",
                "open it after the key is set: after ofipy.job()",
            )
        if self._is_set_now(path):
            return None
        return (
            "another key is set (OFIPY_AUTH_KEY_FILE, ofipy.job()) than this endpoint was opened with, so its "
            "peers have not proven it",
            "open it after the key is set: after ofipy.job()",
        )

    def _is_set_now(self, path: str) -> bool:
        """Whether the key is still the one that the domain was opened with, or what has come in its place.

        Providers follow the file of a key, whose path then stays. A job's key is in a file without a name.
        """
        if path == self._path and not path.startswith(_DESCRIPTORS):
            return True
        try:
            return _key_now(path, "receive an object") == self._key
        except FabricError:
            return path == self._path  # the same file, which was removed after it had been read
