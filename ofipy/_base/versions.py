# SPDX-License-Identifier: BSD-3-Clause
"""Versions of a protocol that two sides agree on, in the messages that Python writes; native/meet has those of C.

A hello carries the newest version that its sender speaks, and how many earlier ones it speaks too. Both sides speak the
smaller of the newest ones.
"""

from __future__ import annotations

from ofipy._base.errors import IncompatiblePeer
from ofipy._base.record import Record

__all__ = ["Versions"]


class Versions(Record):
    """All versions of a protocol that one side speaks.

    Parameters
    ----------
    newest : int
        From 1 on.
    earlier : int
        How many before the newest; 0: none.
    """

    newest: int
    earlier: int = 0

    @property
    def oldest(self) -> int:
        """The first version that is spoken."""
        return max(self.newest - self.earlier, 1)

    def __str__(self) -> str:
        if self.oldest == self.newest:
            return f"version {self.newest}"
        return f"versions {self.oldest} to {self.newest}"

    def include_one_of(self, theirs: Versions) -> bool:
        """Whether the other side speaks one of these versions."""
        return min(self.newest, theirs.newest) >= max(self.oldest, theirs.oldest)

    def incompatible(
        self, theirs: Versions, protocol: str, *, operation: str | None = None, peer: str | None = None
    ) -> IncompatiblePeer:
        """What to raise when no version is common.

        Parameters
        ----------
        theirs : Versions
            Of the peer.
        protocol : str
            Its name, with its article.
        operation, peer : str, optional
            For the exception.
        """
        older = "the peer's side" if theirs.newest < self.oldest else "this side"
        return IncompatiblePeer(
            f"the peer speaks {theirs} of {protocol}, and this side {self}",
            operation=operation,
            peer=peer,
            remedy=f"update ofipy on {older}",
        )
