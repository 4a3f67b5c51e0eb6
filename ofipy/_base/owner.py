# SPDX-License-Identifier: BSD-3-Clause
"""Whose object it is: what another domain made is refused, by every call that takes objects.

C knows queues, counters and regions by pointers and ids. Those of another domain could mean one of this domain's own
there, so whose an object is gets decided here, where it is still an object.
"""

import errno as codes
from typing import Any, Protocol

from ofipy._base.errors import InvalidArgument

__all__ = ["check_owner", "foreign"]


class Owner(Protocol):
    """A domain, as far as it is asked whose an object is."""

    @property
    def provider(self) -> str:
        """Name of the provider."""
        ...


def foreign(
    what: str, owner: str, *, operation: str, provider: str | None = None, remedy: str
) -> InvalidArgument:
    """What comes of an object whose owner is another one."""
    return InvalidArgument(
        f"{what} belongs to another {owner}",
        errno=codes.EXDEV,
        operation=operation,
        provider=provider,
        remedy=remedy,
    )


def check_owner(domain: Owner, thing: Any, name: str, operation: str) -> None:
    """Refuse a queue, counter, vector or context of another domain; None is nobody's.

    Raises
    ------
    InvalidArgument
        With the errno EXDEV.
    """
    if thing is not None and thing._domain is not domain:
        raise foreign(
            f"{name}={thing!r}",
            "domain",
            operation=operation,
            provider=domain.provider,
            remedy="use one that was opened from this domain",
        )
