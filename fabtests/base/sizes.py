# SPDX-License-Identifier: BSD-3-Clause
"""Sizes of messages as libfabric's programs have them, and the buffers that follow from them."""

from dataclasses import dataclass, field, replace

from ofipy.pingpong.sizes import parse_sizes

__all__ = ["ALL_SIZES", "DEFAULT_SIZES", "Sizes"]

# Powers of two up to 8 MiB, and one and a half times each between them.
ALL_SIZES = (
    1,
    2,
    *(size for exponent in range(1, 23) for size in (3 << (exponent - 1), 2 << exponent)),
)
DEFAULT_SIZES = (64, 256, 1 << 10, 4 << 10, 64 << 10, 1 << 20)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The value of ``-S``."""

    sizes: tuple[int, ...]
    """Sizes to run, in order."""
    longest: int
    """What buffers are made for, which both sides must agree on."""
    written: str | None = field(default=None, compare=False)
    """As the user wrote it; None: not at all."""

    @classmethod
    def parse(cls, text: str | None, *, default: int | None) -> "Sizes":
        """Read it.

        Parameters
        ----------
        text : str, optional
            What the user gave.
        default : int, optional
            The one size of the program; None: a selection.

        Raises
        ------
        ValueError
            When it is no size.
        """
        if text is None:
            if default is not None:
                return cls((default,), default)
            return cls(DEFAULT_SIZES, ALL_SIZES[-1])
        if text == "all":
            found = cls(ALL_SIZES, ALL_SIZES[-1])
        elif text == "0":
            found = cls((0,), 0)
        else:
            sizes = parse_sizes(text)
            found = cls(sizes, sizes[-1])
        return replace(found, written=text)
