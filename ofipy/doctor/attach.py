# SPDX-License-Identifier: BSD-3-Clause
"""Whether large messages go between processes with a single copy."""

import ctypes
import errno
import os
from collections.abc import Callable

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.parameter import parameter
from ofipy.doctor.rules import find
from ofipy.host.tree import Tree

__all__ = ["check_attach", "try_attach"]

_PR_SET_PTRACER = 0x59616D61
_SCOPE = "proc/sys/kernel/yama/ptrace_scope"


def try_attach() -> int:
    """Have a process that is no ancestor read this one's memory: 0, or the error's number."""
    libc = ctypes.CDLL(None, use_errno=True)
    if parameter("OFIPY_SHM_PTRACER") == "yes":
        libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    source, target = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(target), 8)  # a struct iovec
    there = (ctypes.c_void_p * 2)(ctypes.addressof(source), 8)
    owner = os.getpid()
    child = os.fork()
    if child == 0:
        done = libc.process_vm_readv(
            owner, here, ctypes.c_ulong(1), there, ctypes.c_ulong(1), ctypes.c_ulong(0)
        )
        os._exit(0 if done == 8 else ctypes.get_errno() or errno.EIO)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else errno.EPERM  # a filter of system calls may kill


def check_attach(attempt: Callable[[], int], tree: Tree) -> Finding:
    """Whether large messages go between processes with a single copy."""
    rule = "process.attach"
    if parameter("OFIPY_SHM_ATTACH") == "no":
        return find(rule, State.OK, "switched off by OFIPY_SHM_ATTACH")
    error = attempt()
    scope = tree.line(_SCOPE)
    text = f"Yama's ptrace_scope is {scope}" if scope is not None else "no Yama"
    if not error:
        text = f"processes of this user read each other's memory; {text}"
        return find(rule, State.OK, text, sources=(_SCOPE,))
    remedy = "in a container: --cap-add SYS_PTRACE"
    if scope == "1":
        remedy = f"OFIPY_SHM_PTRACER=yes, or sysctl kernel.yama.ptrace_scope=0; {remedy}"
    finding = (
        f"refused ({os.strerror(error)}; {text}): large messages wait for a sender that computes or sleeps"
    )
    return find(rule, State.WARNING, finding, sources=(_SCOPE,), remedy=remedy)
