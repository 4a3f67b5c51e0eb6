# SPDX-License-Identifier: BSD-3-Clause
"""The edge to the C core: the one importer of ``_ofp``, where codes become exceptions, its log Python's."""

import errno as codes
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from ofipy._base import errors

if TYPE_CHECKING:
    import logging

try:
    from ofipy._ofp import ffi as _ffi
    from ofipy._ofp import lib as _lib
except ModuleNotFoundError as error:
    raise ImportError(
        f"ofipy comes from {__file__.rsplit('/', 2)[0]}, which has no C core. In a checkout, start Python "
        "elsewhere, or with -P, so that the installed package is found, or install it editable"
    ) from error

__all__ = ["Text", "check", "drain_log", "failure", "ffi", "lib", "logger", "nanoseconds", "provider_handles"]

# Untyped on purpose: what leaves this layer is typed by the classes above it.
lib: Any = _lib
ffi: Any = _ffi

_REASON: int = lib.OFP_REASON
_TEXT_TYPE = ffi.typeof("char[]")

provider_handles: dict[str, Any] = {}
"""Of the providers that are loaded, by the names of their entry points: each explains codes of its own."""

_LONGEST = 2.0**62 / 1e9  # seconds, 146 years

_KINDS: dict[int, type[errors.FabricError]] = {
    codes.EINVAL: errors.InvalidArgument,
    codes.ERANGE: errors.InvalidArgument,
    codes.EXDEV: errors.InvalidArgument,
    codes.EDOM: errors.InvalidArgument,
    codes.EFAULT: errors.BufferTypeError,
    codes.E2BIG: errors.BufferTypeError,
    codes.EOPNOTSUPP: errors.NotSupported,
    codes.ENOSYS: errors.NotSupported,
    codes.ENOPROTOOPT: errors.NotSupported,
    codes.ETIMEDOUT: errors.TimedOut,
    codes.EAGAIN: errors.Again,
    codes.EBUSY: errors.Busy,
    codes.ECANCELED: errors.Canceled,
    codes.EMSGSIZE: errors.MessageTooLong,
    codes.ENOMSG: errors.NoMessage,
    codes.ENOMEM: errors.NoMemory,
    codes.EMFILE: errors.NoMemory,
    codes.ENFILE: errors.NoMemory,
    codes.ECONNREFUSED: errors.ConnectionRefused,
    codes.EPROTONOSUPPORT: errors.IncompatiblePeer,
    codes.ENOTCONN: errors.NotConnected,
    codes.ECONNRESET: errors.PeerLost,
    codes.ECONNABORTED: errors.PeerLost,
    codes.ESHUTDOWN: errors.PeerLost,
    codes.EPIPE: errors.PeerLost,
    codes.EHOSTUNREACH: errors.Unreachable,
    codes.ENETUNREACH: errors.Unreachable,
    codes.EACCES: errors.AccessDenied,
    codes.EPERM: errors.AccessDenied,
    codes.EADDRINUSE: errors.AddressInUse,
    codes.ENODEV: errors.ProviderUnavailable,
    lib.OFP_EADDRNOTAVAIL: errors.UnknownPeer,
    lib.OFP_EMISMATCH: errors.CollectiveMismatch,
    lib.OFP_ETRUNC: errors.Truncated,
    lib.OFP_ETOOLONG: errors.Truncated,
    lib.OFP_ENOKEY: errors.RemoteAccessError,
    lib.OFP_EREMOTE: errors.RemoteAccessError,
    lib.OFP_EPEERLOST: errors.PeerLost,
    lib.OFP_EPEERLEFT: errors.PeerLost,
    lib.OFP_EPEERDIED: errors.PeerLost,
    lib.OFP_EFORKED: errors.ForkedError,
    lib.OFP_ETHREAD: errors.ThreadingError,
    lib.OFP_ENOREGION: errors.Closed,
    lib.OFP_EEXHAUSTED: errors.NoMemory,
}

_REMEDIES: dict[int, str] = {
    codes.ECONNREFUSED: "start the peer first, or check its address",
    codes.ENOTCONN: "call connect() or accept() first; an endpoint is connected once",
    codes.EAGAIN: "read completions, then post the rest again",
    codes.EBUSY: "wait for the operation that uses it",
    codes.EDOM: "tags below 2**59 never have it",
    codes.E2BIG: "send a contiguous copy: numpy.ascontiguousarray",
    lib.OFP_ETRUNC: "receive into a larger buffer, or with trecv() of unknown size",
    lib.OFP_EMISMATCH: "have all members make the same calls in the same order, then make a new group",
    lib.OFP_ETOOLONG: "set OFIPY_BOUNCE_SIZE higher, or receive into a buffer with trecv_into()",
    lib.OFP_EPEERLOST: "start it again; insert(address, wait=30) waits for it, an endpoint of type msg is opened anew",
    lib.OFP_EFORKED: "open a new one in this process",
    lib.OFP_ETHREAD: "call from the domain's thread, or hand the domain over with domain.adopt()",
    lib.OFP_EADDRNOTAVAIL: "insert its address",
    lib.OFP_ENOREGION: "register the memory, again if its region was closed",
    lib.OFP_EEXHAUSTED: "close or remove what is no longer used, or open a new domain or address vector",
}

# How a rank of a job is told to have ended.
_DEPARTURES: dict[int, str] = {lib.OFP_EPEERLEFT: "left", lib.OFP_EPEERDIED: "died"}


def failure(
    code: int,
    *,
    operation: str | None = None,
    provider: str | None = None,
    peer: str | None = None,
    text: str | None = None,
    remedy: str | None = None,
    length: int | None = None,
    room: int | None = None,
    provider_error: int = 0,
) -> errors.FabricError:
    """Make the exception for an error code of either sign, and the provider's own code, 0 without one.

    `length` is what the message has, `room` what its receive buffer has, in bytes.
    """
    drain_log()
    code = abs(code)
    if code == codes.ENOMEM and not provider_error:
        provider_error = lib.ofp_explained()
    said = _said(provider, provider_error)
    if provider_error >= _REASON:
        what, _, said = _reason(provider_error).partition("; ")
        text, remedy, provider_error = text or what, remedy or said or _REMEDIES.get(code), 0
    if code == codes.EMFILE:
        text, remedy = _of_open_files(text)
    kind = _KINDS.get(code, errors.FabricError)
    if kind is errors.Truncated:
        length = length or None  # a transport that does not tell says 0
    error = kind(
        text or _both_sizes(code, length, room) or ffi.string(lib.ofp_strerror(code)).decode(),
        errno=code,
        provider=provider,
        peer=peer,
        operation=operation,
        remedy=remedy or said or (_REMEDIES.get(code) if not text else None),
        length=length,
        provider_error=provider_error,
    )
    if isinstance(error, errors.Truncated):
        error.room = room
    if isinstance(error, errors.PeerLost):
        error.reason = _DEPARTURES.get(code)
    return error


def _of_open_files(text: str | None) -> tuple[str, str]:
    """What happened where no more files can be opened, with the limit, and what to do."""
    what = (text or "too many open files").partition("; ")[0]
    if "ulimit -n" not in what:
        what += f": ulimit -n lets this process have {os.sysconf('SC_OPEN_MAX')}"
    return what, "close some, or raise it"


def _both_sizes(code: int, length: int | None, room: int | None) -> str | None:
    """What a truncation is told as, as far as its sizes are known."""
    if code != lib.OFP_ETRUNC or (length is None and room is None):
        return None
    message = "the message" if length is None else f"the message of {length} bytes"
    buffer = "the receive buffer" if room is None else f"the receive buffer of {room} bytes"
    return f"{message} was longer than {buffer}"


def _reason(code: int) -> str:
    """The core's sentence about a failure: what happened; what to do. Empty when it is so old that it was forgotten."""
    text = Text()
    lib.ofp_reason(code, text.pointer, text.size)
    return str(text)


def _said(provider: str | None, code: int) -> str | None:
    """What a provider says about a code of its own, None without a code."""
    if not code or code >= _REASON:
        return None
    said = _error_text(provider, code) if provider is not None else None
    return f"{said}; provider code {code}" if said else f"provider code {code}"


def _error_text(provider: str, code: int) -> str | None:
    """What a provider that is loaded says, or the core for it, about a code, None when nobody says anything."""
    handle = provider_handles.get(provider.partition(":")[0])
    said = lib.ofp_provider_error_text(handle, code) if handle is not None else ffi.NULL
    return None if said == ffi.NULL else ffi.string(said).decode()


def check(
    result: int,
    *,
    text: "Text | None" = None,
    operation: str | None = None,
    provider: str | None = None,
    peer: str | None = None,
) -> int:
    """Return what a C function returned, unless it is an error code.

    Parameters
    ----------
    result : int
        Its result; negative: an error.
    text : Text, optional
        The buffer where the function may have left a sentence for the user.
    operation, provider, peer : str, optional
        For the exception.

    Raises
    ------
    FabricError
        The subclass that belongs to the code.
    """
    if result >= 0:
        return result
    said = str(text) if text is not None else ""
    raise failure(result, text=said or None, operation=operation, provider=provider, peer=peer)


class Text:
    """Room for a sentence that a C function writes."""

    __slots__ = ("pointer", "size")

    def __init__(self, size: int = lib.OFP_TEXT_MAX) -> None:
        self.size = size
        self.pointer = ffi.new(_TEXT_TYPE, size)

    def __str__(self) -> str:
        text: str = ffi.string(self.pointer).decode(errors="replace")
        return text


def nanoseconds(timeout: float | None, none_does: str = "waits for ever") -> int:
    """C's form of a time-out in seconds: nanoseconds, -1 for ever. 146 years and more, infinity too, are 146 years.

    Raises
    ------
    InvalidArgument
        When it is negative or not a number; it says what None would do (`none_does`).
    """
    if timeout is None:
        return -1
    try:
        if timeout >= 0:
            return int(min(timeout, _LONGEST) * 1e9)
    except (TypeError, ValueError):
        pass  # no number, or an array
    raise errors.InvalidArgument(f"a time-out of {timeout!r} seconds; 0 or more is meant, None {none_does}")


@cache
def logger(name: str = "ofipy") -> "logging.Logger":
    """A logger of ours.

    Looked up once each: Ctrl-C inside getLogger() leaves logging's own lock taken for good.
    """
    # It takes a twentieth of numpy's import, and most programs have nothing to say.
    import logging

    found = logging.getLogger(name)
    if name == "ofipy":
        found.addHandler(logging.NullHandler())
    else:
        logger()
    return found


def drain_log() -> None:
    """Hand the core's waiting log records to :mod:`logging`."""
    # Who has not imported it has not configured it, and nobody would print the records: dropped, as it would do.
    # To import it for them could fail, where what they tell of is that no file can be opened.
    heard = "logging" in sys.modules
    if heard:
        lib.ofp_log_set_level(logger().getEffectiveLevel())
    if not lib.ofp_log_waiting():
        return
    level, provider, text = ffi.new("int *"), Text(32), Text()
    while lib.ofp_log_next(level, provider.pointer, provider.size, text.pointer, text.size) == 1:
        if heard:
            # A record may be read later, when the buffer holds another text.
            logger(f"ofipy.{provider}").log(level[0], "%s", str(text))
