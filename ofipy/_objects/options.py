# SPDX-License-Identifier: BSD-3-Clause
"""Options of an open endpoint (fi_endpoint(3))."""

from ofipy._base.binding import ffi, lib
from ofipy._base.limits import LIMITS, UINT64_MAX, whole_number
from ofipy._operations.initiator import Initiator
from ofipy._operations.refused import check_option

__all__ = ["option", "set_option"]


def option(self: Initiator, name: str) -> int:
    """Read an option (fi_endpoint(3), fi_getopt).

    Parameters
    ----------
    name : str
        ``min_multi_recv``, ``inject_size``, ``max_msg_size``, ``max_rma_size``, ``max_atomic_size`` (bytes),
        ``tx_size``, ``rx_size`` (operations), ``tx_flags`` or ``rx_flags`` (bits of Flag).

    Raises
    ------
    NotSupported
        When this endpoint has no such option.
    """
    value = ffi.new("uint64_t *")
    result = lib.ofp_endpoint_option_get(self._pointer("option"), name.encode(), value)
    check_option(result, name, operation="option", provider=self._domain.provider)
    return int(value[0])


def set_option(self: Initiator, name: str, value: int) -> None:
    """Change an option, for operations from now on (fi_endpoint(3), fi_setopt).

    Parameters
    ----------
    name : str
        ``min_multi_recv``, ``tx_size``, ``tx_flags`` or ``rx_flags``.
    value : int
        As :meth:`option` returns it: ``min_multi_recv`` 1 to 2**40, ``tx_size`` 1 to 2**24.

    Raises
    ------
    NotSupported
        When this endpoint has no such option.
    AccessDenied
        When the option cannot be changed.
    InvalidArgument
        When the value does not fit.
    """
    range = LIMITS.get(name, (0, UINT64_MAX, ""))
    number = whole_number(name, value, *range, operation="set_option")
    result = lib.ofp_endpoint_option_set(self._pointer("set_option"), name.encode(), number)
    check_option(result, name, operation="set_option", provider=self._domain.provider)
