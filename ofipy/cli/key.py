# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy key``: files with a key that peers prove to each other, as ``OFIPY_AUTH_KEY_FILE`` names them."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

import click

from ofipy.cli.support import CommandError, status_console

__all__ = ["new_key"]

KEY_BYTES = 32


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
