# SPDX-License-Identifier: BSD-3-Clause
"""Keeps sums in a file, so that an exporter that starts again goes on where the last one ended.

Without it, an exporter that starts again begins with what living processes have counted. Prometheus takes the lower
sum for a counter that began at 0, and counts all of it once more. With it, only what a process counts after the last
save is lost, and only if the process ends before the next exporter looks.
"""

import contextlib
import json
import os
import tempfile
from typing import Any

from ofipy.exporter.peers import BusiestPeers
from ofipy.exporter.totals import Totals
from ofipy.host.tree import Tree

__all__ = ["StateError", "load_state", "replace_file", "save_state"]

_VERSION = 1
_BOOT = "proc/sys/kernel/random/boot_id"


class StateError(Exception):
    """A file that no exporter has written."""


def save_state(path: str, tree: Tree, totals: Totals, peers: BusiestPeers) -> None:
    """Write all sums to a file that only its owner may read.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    state = {"version": _VERSION, "boot": tree.line(_BOOT), "totals": totals.dump(), "peers": peers.dump()}
    replace_file(path, json.dumps(state).encode(), 0o600)


def load_state(path: str, tree: Tree, totals: Totals, peers: BusiestPeers) -> None:
    """Go on with the sums in a file; a file that is not there yet has none.

    Raises
    ------
    StateError
        When the file is something else.
    OSError
        When the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            state: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return
    except ValueError as error:
        raise StateError(str(error)) from error
    try:
        if state["version"] != _VERSION:
            raise StateError(f"its version is {state['version']}")
        # After the system has started again, a pid and a start time may be those of another process.
        same_processes = state["boot"] is not None and state["boot"] == tree.line(_BOOT)
        totals.load(state["totals"], same_processes=same_processes)
        peers.load(state["peers"], same_processes=same_processes)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StateError(f"something is missing in it: {error!r}") from error


def replace_file(path: str, contents: bytes, mode: int) -> None:
    """Replace a file at once: a reader sees the old contents or the new ones.

    Parameters
    ----------
    path : str
        A link of this name is replaced, not followed.
    contents : bytes
        All of it.
    mode : int
        Who may read it.

    Raises
    ------
    OSError
        When the file cannot be written. Then the old one is still there.
    """
    folder, name = os.path.split(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
            os.fchmod(file.fileno(), mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
