# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, counts and other whole numbers that calls take: each is in its range, or refused with it."""

import operator
from typing import TYPE_CHECKING, Any

from ofipy._binding import lib
from ofipy._errors import InvalidArgument

if TYPE_CHECKING:
    from ofipy._region import Region

__all__ = [
    "LIMITS",
    "UINT32_MAX",
    "UINT64_MAX",
    "limit",
    "part_length",
    "service_text",
    "whole_number",
]

UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1

LIMITS: dict[str, tuple[int, int, str]] = {
    "backlog": (1, lib.OFP_COUNT_MAX, "requests"),
    "completions": (1, lib.OFP_COUNT_MAX, "completions"),
    "events": (1, lib.OFP_COUNT_MAX, "events"),
    "min_multi_recv": (1, lib.OFP_BYTES_MAX, "bytes"),
    "tx_size": (1, lib.OFP_COUNT_MAX, "operations"),
    "unexpected_size": (1, lib.OFP_BYTES_MAX, "bytes"),
}
"""Bounds, both allowed, and unit of what bounds an object."""


def limit(name: str, value: int | None, *, of: str | None = None) -> int:
    """C's form of an optional limit, 0 for the default; `of`: its entry in LIMITS, when that is not its name.

    Raises
    ------
    InvalidArgument
        When it is out of its range.
    """
    return 0 if value is None else whole_number(name, value, *LIMITS[of or name])


def whole_number(
    name: str,
    value: Any,
    least: int,
    most: int,
    unit: str = "",
    *,
    operation: str | None = None,
) -> int:
    """A size, count, index or other whole number that a call was given.

    Parameters
    ----------
    name : str
        What the call names it.
    value
        What was given.
    least, most : int
        Both allowed.
    unit : str
        For the message, such as ``bytes``.
    operation : str, optional
        For the exception.

    Raises
    ------
    InvalidArgument
        When it is no whole number, or out of the range, which the message names.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        meant = f"{_readable(least)} to {_readable(most)} {unit}".rstrip()
        raise InvalidArgument(
            f"{name}={value!r}; {meant} {'are' if unit else 'is'} meant", operation=operation
        )
    return number


def service_text(service: int | str, operation: str) -> str:
    """A service as providers read it; what names may look like is theirs to say.

    Raises
    ------
    InvalidArgument
        When it is a number, and no port.
    """
    return (
        service
        if isinstance(service, str)
        else str(whole_number("service", service, 0, 65535, operation=operation))
    )


def part_length(region: "Region", offset: int, length: int | None, operation: str) -> int:
    """Bytes of a part of a region; no length means up to its end.

    Raises
    ------
    InvalidArgument
        When it is not within the region.
    """
    try:
        size = region._length - offset if length is None else length
        if offset >= 0 and size >= 0 and offset + size <= region._length:
            return size
    except TypeError:
        pass  # the next lines say which
    whole_number("offset", offset, 0, region._length, "bytes", operation=operation)
    if length is not None:
        whole_number("length", length, 0, region._length, "bytes", operation=operation)
    raise InvalidArgument(f"{length} bytes at {offset} of a region of {region._length}", operation=operation)


def _readable(bound: int) -> str:
    """A bound as text; large ones are powers of two, or one below."""
    for offset, ending in ((0, ""), (1, " - 1")):
        power = (bound + offset).bit_length() - 1
        if power >= 20 and bound + offset == 2**power:
            return f"2**{power}{ending}"
    return str(bound)
