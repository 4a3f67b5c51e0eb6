# SPDX-License-Identifier: BSD-3-Clause
"""Agreements of the members of a group that live, and the group of these."""

from __future__ import annotations

import errno as codes
from typing import Any

from ofipy._base.binding import ffi, lib
from ofipy._base.errors import Busy, CollectiveMismatch
from ofipy._operations.collective_start import CollectiveRequest, Members, T

__all__ = ["AgreeRequest", "AgreementRequest", "agree", "start_agreement"]

# Flags of an agreement, which the core combines by and: the program's, then that all members make the same call.
_FLAG, _AGREE, _SHRINK = 1, 2, 4


class AgreementRequest(CollectiveRequest[T]):
    """Ends at all members that live with the same result."""

    __slots__ = ("_found", "_result_values")

    _found: Any
    _result_values: Any

    def _check_calls(self) -> None:
        if not self._found.flags & (_AGREE | _SHRINK):
            raise CollectiveMismatch(
                "some members called agree and others shrink",
                operation=self._name,
                remedy="they have to make the same call",
            )

    def _dead(self) -> tuple[int, ...]:
        """Ranks that all take for dead."""
        return tuple(rank for rank, value in enumerate(self._result_values) if value == lib.OFP_GROUP_DEAD)


class AgreeRequest(AgreementRequest[tuple[bool, tuple[int, ...]]]):
    """An agreement on a flag."""

    __slots__ = ()

    def _finished_value(self) -> tuple[bool, tuple[int, ...]]:
        self._check_calls()
        return bool(self._found.flags & _FLAG), self._dead()


def start_agreement(group: Members, name: str, kind: type[Any], flag: bool, value: int = 0) -> Any:
    """Start an agreement; `value` of each member is in `_result_values` at the end.

    Raises
    ------
    Busy
        When another one runs in this group.
    FabricError
        When it cannot be started.
    """
    pointer = group._pointer(name)
    values = ffi.new("uint32_t[]", max(group.size, 1))
    found = ffi.new("struct ofp_agreement_result *", {"values": values})
    flags = int(flag) | (_SHRINK if name == "shrink" else _AGREE)
    started = group.endpoint._poster.agreement(
        group.endpoint,
        kind,
        int(ffi.cast("uintptr_t", pointer)),
        flags,
        value,
        int(ffi.cast("uintptr_t", found)),
        (found, values),
    )
    if type(started) is int:
        if -started == codes.EBUSY:
            raise Busy("an agreement of this group runs already", operation=name, remedy="wait for it first")
        raise group._refusal(-started, name)
    started._group, started._name, started._value = group, name, None
    started._found, started._result_values = found, values
    return started


def agree(self: Members, flag: bool = True) -> AgreeRequest:
    """Agree on a flag with all members that live, also after the group broke; a call of all of these.

    Parameters
    ----------
    flag : bool
        This member's.

    Returns
    -------
    AgreeRequest
        Its ``wait()`` returns whether the flags of all members are true, and the ranks of those that are dead. Both
        are the same at all members that return. If a member is dead the group breaks.

    Raises
    ------
    Busy
        When another agreement of this group runs.
    GroupBroken
        From ``wait()``: when the others take this member for dead, which ``ranks`` says; or when the members are on
        several hosts and at most half of them can be reached.
    CollectiveMismatch
        From ``wait()``: when other members called :meth:`shrink`.

    Notes
    -----
    One agreement of a group runs at a time at each member. As MPIX_Comm_agree of ULFM.
    """
    return start_agreement(self, "agree", AgreeRequest, bool(flag))  # type: ignore[no-any-return]
