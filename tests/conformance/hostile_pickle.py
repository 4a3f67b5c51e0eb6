# SPDX-License-Identifier: BSD-3-Clause
"""An object whose pickle runs what its sender likes, and a list that tells whether it was unpickled."""

from typing import Any

unpickled: list[str] = []


def run_by_pickle() -> None:
    unpickled.append("code of the sender")


class HostilePickle:
    """Whoever unpickles it calls :func:`run_by_pickle`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return run_by_pickle, ()
