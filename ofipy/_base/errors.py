# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of ofipy: few, named by whose fault it is and what to do.

All are :class:`FabricError`, which is an :class:`OSError`, and each is also the built-in exception that fits,
so programs written for sockets catch what they expect.
"""

import errno as codes
from typing import Any, Self

__all__ = [
    "AccessDenied",
    "AddressInUse",
    "Again",
    "BufferTypeError",
    "Busy",
    "Canceled",
    "Closed",
    "ConfigError",
    "ConnectionRefused",
    "FabricError",
    "ForkedError",
    "IncompatiblePeer",
    "InvalidArgument",
    "MessageTooLong",
    "MissingKeyFile",
    "NoMemory",
    "NoMessage",
    "NotConnected",
    "NotSent",
    "NotSupported",
    "PeerLost",
    "ProviderUnavailable",
    "RemoteAccessError",
    "ThreadingError",
    "TimedOut",
    "Truncated",
    "UnknownPeer",
    "Unreachable",
    "WorkerLost",
]


class FabricError(OSError):
    """Root of every failure that ofipy reports.

    Parameters
    ----------
    message : str
        What went wrong, in one sentence.
    errno : int, optional
        Positive errno, or a code of ofipy's own from 256 on. Default: the one that belongs to the class.
    provider : str, optional
        Name of the provider concerned.
    peer : str, optional
        Address of the peer concerned, as a URI.
    operation : str, optional
        What was asked for, such as ``tsend``.
    remedy : str, optional
        What to try.
    length : int, optional
        Bytes of the message concerned, where that is known.
    provider_error : int
        The provider's own code, 0 without one (fi_cq(3), prov_errno). What it says about it is part of the text.
    """

    default_errno: int = codes.EIO

    def __init__(
        self,
        message: str,
        *,
        errno: int | None = None,
        provider: str | None = None,
        peer: str | None = None,
        operation: str | None = None,
        remedy: str | None = None,
        length: int | None = None,
        provider_error: int = 0,
    ) -> None:
        super().__init__(self.default_errno if errno is None else errno, message)
        self.message = message
        self.provider = provider
        self.peer = peer
        self.operation = operation
        self.remedy = remedy
        self.length = length
        self.provider_error = provider_error

    def __str__(self) -> str:
        subject = self.operation or ""
        if self.peer:
            subject += f" with {self.peer}" if subject else self.peer
        if self.provider:
            subject += f" over {self.provider}" if subject else self.provider
        text = f"{subject}: {self.message}" if subject else self.message
        return f"{text} ({self.remedy})" if self.remedy else text

    def __repr__(self) -> str:
        names = ("operation", "peer", "provider", "remedy")
        said = "".join(f", {name}={text!r}" for name in names if (text := getattr(self, name)) is not None)
        return f"{type(self).__name__}({self.message!r}{said})"

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("errno", "provider", "peer", "operation", "remedy", "length", "provider_error")
        return type(self)._rebuild, (self.message, {name: getattr(self, name) for name in names})

    @classmethod
    def _rebuild(cls, message: str, context: dict[str, Any]) -> Self:
        return cls(message, **context)


class InvalidArgument(FabricError, ValueError):
    """An argument has a value that is never right; :class:`NotSupported` is right elsewhere."""

    default_errno = codes.EINVAL


class BufferTypeError(FabricError, TypeError):
    """The object cannot be this operation's memory: read-only, not a buffer, of Python objects."""

    default_errno = codes.EFAULT


class NotSupported(FabricError, NotImplementedError):
    """The provider or endpoint cannot do it, another one may; see ``info.caps``."""

    default_errno = codes.EOPNOTSUPP


class ConfigError(FabricError, ValueError):
    """A configuration file or variable cannot be understood."""

    default_errno = codes.EINVAL


class MissingKeyFile(ConfigError, FileNotFoundError):
    """The key file that ``OFIPY_AUTH_KEY_FILE``, or ``auth_key_file`` in the configuration file, names is not there."""

    default_errno = codes.ENOENT


class ProviderUnavailable(FabricError, LookupError):
    """No provider of that name, or it cannot run here. One that lacks something is :class:`NotSupported`."""

    default_errno = codes.ENODEV


class TimedOut(FabricError, TimeoutError):
    """The time is over. The operation goes on, unlike after :class:`Canceled`."""

    default_errno = codes.ETIMEDOUT


class Again(FabricError, BlockingIOError):
    """No room now: read completions and post again, or await what was sent; :class:`Busy` needs a wait of your own.

    Of the request tier only where an event loop runs in the thread, and as many operations wait as the queue holds.
    """

    default_errno = codes.EAGAIN


class Busy(FabricError):
    """The object is in use by an operation that you started: wait for that one first."""

    default_errno = codes.EBUSY


class Canceled(FabricError):
    """The operation was cancelled or its endpoint closed before it finished. Nothing was received."""

    default_errno = codes.ECANCELED


class Closed(FabricError, ValueError):
    """You closed the object before; :class:`PeerLost` is about the other side."""

    default_errno = codes.EBADF


class Truncated(FabricError):
    """The message was longer than the receive buffer, which holds its beginning; `length` is the true one."""

    default_errno = codes.EMSGSIZE

    room: int | None = None
    """Bytes of the receive buffer, None where that is not known: a completion record does not say."""

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"room": self.room}


class MessageTooLong(FabricError):
    """A message above ``info.max_msg_size``, or an inject above ``info.inject_size``. Nothing was sent."""

    default_errno = codes.EMSGSIZE


class NoMessage(FabricError):
    """A peek found no message that matches."""

    default_errno = codes.ENOMSG


class NoMemory(FabricError, MemoryError):
    """The machine or a limit refuses more memory, threads or descriptors, or a table has no room for one entry more."""

    default_errno = codes.ENOMEM


class ConnectionRefused(FabricError, ConnectionRefusedError):
    """Nobody listens at the address, so it may work once the peer has started; or the listener rejected the request."""

    default_errno = codes.ECONNREFUSED

    data: bytes = b""
    """What the listener said when it rejected."""

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"data": self.data}


class IncompatiblePeer(FabricError, ConnectionError):
    """The two sides speak no version of a protocol in common; the remedy says on which side ofipy is to be updated."""

    default_errno = codes.EPROTONOSUPPORT


class NotConnected(FabricError, ConnectionError):
    """The endpoint has no connection: not asked for yet, or over."""

    default_errno = codes.ENOTCONN


class PeerLost(FabricError, ConnectionResetError):
    """The peer was there and is gone: its process, its connection, or its address to another one.

    `reason` says how the process of a job's rank ended.
    """

    default_errno = codes.ECONNRESET

    reason: str | None = None
    """``"left"`` or ``"died"`` of a rank of this process's job; None where a connection ended and no more is known."""

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"reason": self.reason}


class GroupBroken(PeerLost):
    """A member of a group is gone, its connection was lost, or it aborted the group.

    What runs in the group ends with this, on all members that are left.
    """

    ranks: tuple[int, ...] = ()
    """Of the members that are gone, as far as it is known here."""
    abort_reason: str | None = None
    """What a member gave to :meth:`Group.abort`; None where nobody did."""

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("reason", "ranks", "abort_reason")
        return *super().__reduce__()[:2], {name: getattr(self, name) for name in names}


class CollectiveMismatch(FabricError, RuntimeError):
    """The members of a group do not make the same calls in the same order: kind, operation, type, size and root."""

    default_errno = codes.EPROTO


class WorkerLost(PeerLost):
    """The worker that ran a task of an executor is gone; or none is left for the task. It may have run in part."""

    task: str | None = None
    """What people call the task: its function and number."""
    worker: str | None = None
    """Which worker it was: its process or rank, and its host."""

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("reason", "task", "worker")
        return *super().__reduce__()[:2], {name: getattr(self, name) for name in names}


class NotSent(FabricError):
    """An endpoint was closed before everything that was posted had left; whoever waits for requests does not meet it.

    Sends, injects, writes and atomics count. Everything is closed all the same.
    """

    default_errno = codes.ECOMM

    count: int = 0
    """Operations that had not left."""
    operations: tuple[str, ...] = ()
    """What they were, each once, such as ``tsend``."""
    peers: tuple[str, ...] = ()
    """Addresses of the peers that they were for, as URIs, each once."""

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("count", "operations", "peers")
        return *super().__reduce__(), {name: getattr(self, name) for name in names}


class Unreachable(FabricError, ConnectionError):
    """The provider has no way to the address; another one may."""

    default_errno = codes.EHOSTUNREACH


class UnknownPeer(FabricError, LookupError):
    """The address vector has no such peer: it was never inserted, or it was removed."""

    default_errno = codes.EADDRNOTAVAIL


class RemoteAccessError(FabricError, PermissionError):
    """The peer refused the operation: key, bounds or rights of its region."""

    default_errno = codes.EACCES


class AccessDenied(FabricError, PermissionError):
    """The system refuses it to this user."""

    default_errno = codes.EACCES


class AddressInUse(FabricError):
    """Another endpoint has this service already."""

    default_errno = codes.EADDRINUSE


class ForkedError(FabricError, RuntimeError):
    """The object belongs to the parent process: open a new one in the child."""

    default_errno = codes.EBADF


class ThreadingError(FabricError, RuntimeError):
    """The domain is bound to another thread: call from there, or hand it over with ``domain.adopt()``."""

    default_errno = codes.EPERM
