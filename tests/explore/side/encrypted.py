# SPDX-License-Identifier: BSD-3-Clause
"""The settings with which connections over tcp are encrypted, for programs that are explored."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["encrypting"]

# A handshake that a fault has silenced ends at its deadline, which must come before a program loses its patience.
_SETTINGS = ("OFIPY_AUTH_KEY_FILE", "OFIPY_ENCRYPTION", "OFIPY_CONNECT_TIMEOUT")
_KEY_BYTES = 32

_descriptor = -1


def _open_key() -> str:
    """A key in a file without a name, which the processes of all runs inherit."""
    global _descriptor
    if _descriptor < 0:
        _descriptor = os.memfd_create("explored-key", os.MFD_CLOEXEC)
        os.fchmod(_descriptor, 0o600)
        os.write(_descriptor, os.urandom(_KEY_BYTES))
    return f"/proc/self/fd/{_descriptor}"


@contextmanager
def encrypting() -> Iterator[None]:
    """What is opened in this block encrypts all connections."""
    before = {name: os.environ.get(name) for name in _SETTINGS}
    os.environ.update(zip(_SETTINGS, (_open_key(), "required", "3"), strict=True))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
