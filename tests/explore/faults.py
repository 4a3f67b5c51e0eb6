# SPDX-License-Identifier: BSD-3-Clause
"""What may happen at a step: every legal answer of each call of the core, and the errors of each system call.

An answer of the core is legal here if the comments of ``native/include/ofipy/request.h`` allow it in any state and
without anything having been done: "not yet", "the lock is busy", "a signal came", "there is no space". A call that ends
an operation (discard, unclaim, abandon) has no such answer.
"""

import errno
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ACTIONS", "ANSWERS", "KINDS", "Choice", "list_choices"]

KINDS = {"call": 1, "system": 2, "memory": 4, "object": 8, "bytecode": 16, "await": 32}
ACTIONS = ("pass", "fail", "short", "die", "late", "interrupt", "fork", "cancel", "drop")
FOR_GOOD = 2**32 - 1
STALL = 1200
"""Milliseconds for which a thread stands still at a step, as on a host that swaps; then it is late."""


@dataclass(frozen=True)
class Choice:
    """One thing that may happen at a step."""

    action: str
    value: int = 0
    """An errno, what a call returns, or milliseconds."""
    more: int = 0
    """So many later steps of the function and thread fail too."""

    def __str__(self) -> str:
        value = self.value
        shown = errno.errorcode.get(abs(value), str(value)) if self.action == "fail" else f"{value} ms"
        words = [self.action] + [shown] * (self.action in ("fail", "late", "fork"))
        return " ".join(
            words + ["for good" if self.more == FOR_GOOD else f"{self.more + 1} times"] * bool(self.more)
        )


# Of a call: answers once, and answers that it may give for ever, since the caller has another way.
ANSWERS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "ofp_request_start": ((-errno.EAGAIN, -errno.EINTR, -errno.ENOLCK), (-errno.ENOLCK,)),
    "ofp_request_finished": ((), ()),
    "ofp_request_take": ((0, -errno.EINTR), ()),
    "ofp_request_take_finished": ((0,), (0,)),
    "ofp_request_take_at_once": ((0,), (0,)),
    "ofp_request_accept": ((-errno.ENOLCK,), (-errno.ENOLCK,)),
    "ofp_request_notify": ((-errno.ENOLCK,), (-errno.ENOLCK,)),
    "ofp_request_spin": ((0,), (0,)),
    "ofp_cq_finished": ((0,), ()),
    "ofp_cq_take_finished": ((0, -errno.ENOLCK), (0, -errno.ENOLCK)),
    "ofp_cq_arm": ((0,), ()),
    "ofp_cq_arm_at_once": ((0, -errno.ENOLCK), (0, -errno.ENOLCK)),
    "ofp_cq_spin": ((0,), (0,)),
    "ofp_start_many": ((-errno.EAGAIN, -errno.EINTR, -errno.ENOLCK), (-errno.ENOLCK,)),
}

# Of a system call: errors that its manual page names and that a program may meet. None of write: it makes eventfds
# readable that never block, so no signal interrupts it. Not ENOTCONN of getpeername: the kernel says it before
# and after the connection, each of which has an event.
_ERRORS: dict[str, tuple[int, ...]] = {
    "socket": (errno.EMFILE, errno.ENOBUFS),
    "bind": (errno.EADDRINUSE, errno.EACCES),
    "listen": (errno.EADDRINUSE,),
    "connect": (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EINTR, errno.EAGAIN),
    "accept": (errno.EMFILE, errno.ECONNABORTED, errno.EINTR),
    "accept4": (errno.EMFILE, errno.ECONNABORTED, errno.EINTR),
    "getpeername": (errno.ENOBUFS,),
    "getsockname": (errno.ENOBUFS,),
    "setsockopt": (errno.ENOPROTOOPT, errno.ENOMEM),
    "epoll_create1": (errno.EMFILE, errno.ENOMEM),
    "epoll_ctl": (errno.ENOMEM, errno.ENOSPC),
    "eventfd": (errno.EMFILE,),
    "timerfd_create": (errno.EMFILE,),
    "memfd_create": (errno.EMFILE, errno.ENOMEM),
    "ftruncate": (errno.EINTR, errno.ENOSPC),
    "fallocate": (errno.EINTR, errno.ENOSPC),
    "mmap": (errno.ENOMEM,),
    "open": (errno.EMFILE, errno.EACCES, errno.EINTR),
    "read": (errno.EINTR,),
    "send": (errno.EINTR, errno.EAGAIN, errno.ECONNRESET, errno.ENOBUFS),
    "sendmsg": (errno.EINTR, errno.EAGAIN, errno.ECONNRESET, errno.ENOBUFS),
    "writev": (errno.EINTR, errno.EAGAIN, errno.ECONNRESET),
    "recv": (errno.EINTR, errno.ECONNRESET),
    "readv": (errno.EINTR, errno.ECONNRESET),
    "process_vm_readv": (errno.EPERM, errno.ESRCH, errno.ENOMEM),
    "pthread_create": (errno.EAGAIN,),
    "pidfd_open": (errno.EMFILE, errno.EPERM),
    "ppoll": (errno.EINTR,),
}
_SHORT = frozenset(("send", "sendmsg", "writev", "recv", "readv", "process_vm_readv", "ofp_start_many"))
_PASSING = frozenset((errno.EINTR, errno.EAGAIN, errno.ECONNABORTED))


def list_choices(kind: str, function: str, wanted: frozenset[str]) -> Iterator[Choice]:
    """What may happen at a step of this function, of the actions that a program has."""
    if "fail" in wanted:
        yield from _failures(kind, function)
    if "short" in wanted and function in _SHORT:
        yield Choice("short")
    for action, value in (
        ("die", 0),
        ("late", 60),
        ("stall", STALL),
        ("interrupt", 0),
        ("fork", 60),
        ("cancel", 0),
        ("drop", 0),
    ):
        if action in wanted:
            yield Choice("late" if action == "stall" else action, value)


def _failures(kind: str, function: str) -> Iterator[Choice]:
    if kind == "call":
        once, ever = ANSWERS.get(function, ((), ()))
        yield from (Choice("fail", value) for value in once)
        yield from (Choice("fail", value, FOR_GOOD) for value in ever)
    elif kind == "memory":
        yield Choice("fail", errno.ENOMEM)
        yield Choice("fail", errno.ENOMEM, FOR_GOOD)
    elif kind == "object":
        # Not for good: without any memory the interpreter could do nothing, not even end the fault.
        yield Choice("fail", errno.ENOMEM)
    else:
        for error in _ERRORS.get(function, ()):
            yield Choice("fail", error)
            # What is tried again at once would be tried for ever.
            if error not in _PASSING:
                yield Choice("fail", error, FOR_GOOD)
