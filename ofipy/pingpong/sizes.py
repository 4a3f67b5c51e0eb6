# SPDX-License-Identifier: BSD-3-Clause
"""Message sizes of a run, and how often each is sent."""

__all__ = [
    "ALL_SIZES",
    "DEFAULT_SIZES",
    "default_iterations",
    "parse_number",
    "parse_sizes",
    "shorten_bytes",
    "shorten_count",
]

UNITS = {"k": 10, "m": 20, "g": 30}

DEFAULT_SIZES = (8, 64, 256, 1024, 4096, 65536, 1 << 20)
ALL_SIZES = tuple(1 << exponent for exponent in range(23))


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read the value of ``-S``.

    Parameters
    ----------
    text : str
        One size in bytes, several as ``8,64,1m`` or ``l:8,64,1m``, ``all``, or a range ``r:start,increment,end`` (end
        included). The suffixes k, m and g stand for 2**10, 2**20 and 2**30.

    Returns
    -------
    tuple of int
        Sizes in bytes, in the order given.

    Raises
    ------
    ValueError
        When the text is none of these.
    """
    if text == "all":
        return ALL_SIZES
    kind, colon, rest = text.partition(":")
    if not colon:
        kind, rest = "l", text
    try:
        numbers = tuple(parse_number(number) for number in rest.split(","))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a size: give numbers such as 8,64k,1m, 'all' or r:start,increment,end"
        ) from None
    if kind == "r":
        if len(numbers) != 3 or numbers[1] <= 0:
            raise ValueError(f"a range is r:start,increment,end with a positive increment, not {text!r}")
        numbers = tuple(range(numbers[0], numbers[2] + 1, numbers[1]))
    elif kind != "l":
        raise ValueError(f"{text!r}: sizes begin with l: (list) or r: (range), or are one number or 'all'")
    if not numbers or min(numbers) < 1:
        raise ValueError(f"{text!r}: every size must be at least one byte")
    return numbers


def parse_number(text: str) -> int:
    """Read a number of bytes, as :func:`shorten_bytes` writes whole ones too: ``64``, ``1k``, ``4m``, ``1g``."""
    digits = text.strip()
    exponent = UNITS.get(digits[-1:].lower(), 0)
    return int(digits[:-1] if exponent else digits, 0) << exponent


def default_iterations(size: int) -> int:
    """Round trips for a message of `size` bytes when the user names no number."""
    if size >= 1 << 20:
        return 100
    return 1000 if size >= 1 << 16 else 10000


def shorten_bytes(size: int) -> str:
    """Write a byte count as the table does: ``64``, ``1k``, ``4m``; rounded down."""
    for unit, letter in ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")):
        if size >= unit:
            whole, rest = divmod(size, unit)
            return f"{whole}{letter}" if rest * 100 < unit else f"{size / unit:.2f}{letter}"
    return str(size)


def shorten_count(count: int) -> str:
    """Write a count as the table does: ``500``, ``10k``, ``2m``; rounded down."""
    for unit, letter in ((10**9, "b"), (10**6, "m"), (10**3, "k")):
        if count >= unit:
            return f"{count // unit}{letter}"
    return str(count)
