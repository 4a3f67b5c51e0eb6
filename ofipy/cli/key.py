# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy key``: files with a key that peers prove to each other, as ``OFIPY_AUTH_KEY_FILE`` names them."""

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from ofipy._base.key_file import read_key
from ofipy.cli.support import CommandError, print_json, status_console

__all__ = ["new_key", "show_tls_key"]

SCHEMA = 1
KEY_BYTES = 32
# Uses of the key (HKDF's info), which providers/tcp/stream/tls_context.c has as well.
TLS_KEY_USE = b"ofipy tls13 psk 1"
TLS_IDENTITY_USE = b"ofipy tls13 identity 1"
TLS_IDENTITY_BYTES = 16


@dataclass(frozen=True, slots=True)
class TlsKey:
    """The pre-shared key of TLS 1.3 (RFC 8446, 4.2.11) that endpoints derive from a key file."""

    identity: str
    """The name by which the connector names the key: 32 hexadecimal digits."""
    psk: str
    """The key: 64 hexadecimal digits, as secret as the key file."""


def derive_tls_key(key: bytes) -> TlsKey:
    """Derive the pre-shared key of TLS, and its name, from the contents of a key file (HKDF-SHA256, RFC 5869)."""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), key, "sha256")
    psk, identity = (
        hmac.digest(extracted, use + b"\x01", "sha256") for use in (TLS_KEY_USE, TLS_IDENTITY_USE)
    )
    return TlsKey(identity=identity[:TLS_IDENTITY_BYTES].hex(), psk=psk.hex())


def show_tls_key(file: Path, *, as_json: bool) -> None:
    """Print what a program that is not ofipy needs to speak TLS with endpoints that have this key."""
    found = derive_tls_key(read_key(str(file), operation="read a key"))
    if as_json:
        print_json({"schema": SCHEMA, **asdict(found)})
        return
    click.echo(f"identity  {found.identity}\npsk       {found.psk}")
    status_console().print("Whoever knows the psk can connect as a member. openssl s_client takes both:")
    status_console().print(
        "    openssl s_client -tls1_3 -alpn ofipy/1 -psk_identity IDENTITY -psk PSK -connect HOST:PORT",
        soft_wrap=True,
    )


def new_key(file: Path) -> None:
    """Write a random key, for its owner alone, and print where it is.

    Parameters
    ----------
    file : Path
        A file that does not exist yet, in a folder that does.

    Raises
    ------
    CommandError
        When it exists, or cannot be made. Nothing is left behind then.
    """
    with _new_file(file) as descriptor:
        os.write(descriptor, secrets.token_hex(KEY_BYTES).encode() + b"\n")
        os.fchmod(descriptor, 0o600)
        if os.fstat(descriptor).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise CommandError(
                f"{file}: this file system cannot keep others from reading the key; choose another"
            )
    click.echo(file.absolute())
    status_console().print(
        "Copy it to every host that is to take part, with mode 600, and set OFIPY_AUTH_KEY_FILE to it there and here."
    )


@contextlib.contextmanager
def _new_file(file: Path) -> Iterator[int]:
    try:
        # Never another's file, or one that a link of somebody else leads to.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise CommandError(
            f"{file} exists already, and a key is never overwritten: choose another name"
        ) from None
    except FileNotFoundError:
        raise CommandError(
            f"{file}: there is no folder {file.absolute().parent}; make it first: mkdir -p -m 700 {file.parent}"
        ) from None
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    try:
        with contextlib.closing(os.fdopen(descriptor, "wb", buffering=0)):
            yield descriptor
    except BaseException as error:
        file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise CommandError(f"{file}: {error.strerror}") from None
        raise
