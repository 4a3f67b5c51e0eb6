# SPDX-License-Identifier: BSD-3-Clause
"""Limits of a process and of its control group, as the kernel's files have them."""

import errno
import os
import re
from collections.abc import Iterator, Sequence

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.rules import find, judge
from ofipy.host.tree import Tree

__all__ = ["check_descriptors", "check_locked", "check_shared_memory", "try_shared_memory"]

_MIB = 1 << 20
_GROUPS = "sys/fs/cgroup"
_MEMBERSHIP = "proc/self/cgroup"
_LIMITS = "proc/self/limits"


def try_shared_memory() -> str | None:
    """Share a mebibyte. Returns what the kernel says against it."""
    try:
        descriptor = os.memfd_create("ofipy-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(descriptor, 0, _MIB)
        finally:
            os.close(descriptor)
    except OSError as error:
        return error.strerror or errno.errorcode.get(error.errno or 0, "unknown error")
    return None


def check_shared_memory(tree: Tree) -> Finding:
    """How much memory the control group allows; whether it can be shared at all, if this is the host that runs."""
    rule = "host.shared_memory"
    refused = try_shared_memory() if tree.is_live else None
    if refused is not None:
        return find(
            rule,
            State.FAILED,
            f"memfd_create: {refused}",
            sources=("memfd_create",),
            remedy="raise the limit on memory",
        )
    left, where = min(memory_left(tree), default=(None, ""))
    if left is None:
        return find(
            rule, State.OK, "no limit of a control group; /dev/shm is not used", sources=(_MEMBERSHIP,)
        )
    text = f"the control group has {left // _MIB} MiB left of /{where}"
    return judge(rule, left / _MIB, text, sources=(where,))


def memory_left(tree: Tree) -> Iterator[tuple[int, str]]:
    """Bytes that each control group above the process has left, and which file says so."""
    lines = (tree.text(_MEMBERSHIP) or "").splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if path is None:
        return
    groups = [part for part in path.split("/") if part]
    for depth in range(len(groups), -1, -1):
        folder = "/".join((_GROUPS, *groups[:depth]))
        limit, used = tree.number(f"{folder}/memory.max"), tree.number(f"{folder}/memory.current")
        if limit is not None and used is not None:
            yield limit - used, f"{folder}/memory.max"


def read_limit(tree: Tree, name: str) -> tuple[float, float] | None:
    """The soft and the hard limit of that name; infinity where there is none, None where the kernel does not say."""
    for line in (tree.text(_LIMITS) or "").splitlines():
        found = re.fullmatch(rf"{name} +(unlimited|[0-9]{{1,20}}) +(unlimited|[0-9]{{1,20}})\b.*", line)
        if found:
            soft, hard = (float("inf" if text == "unlimited" else text) for text in found.groups())
            return soft, hard
    return None


def check_descriptors(tree: Tree) -> Finding:
    """Open files: two for each process that is met."""
    rule, sources = "host.descriptors", (_LIMITS,)
    limits = read_limit(tree, "Max open files")
    if limits is None:
        return find(rule, State.ABSENT, "the limit is not known", sources=sources)
    soft, hard = limits
    if soft == float("inf"):
        return find(rule, State.OK, "no limit", sources=sources)
    most = "unlimited" if hard == float("inf") else f"{hard:.0f}"
    text = f"{soft:.0f} open files, two for each peer process"
    return judge(rule, soft, text, sources=sources, remedy=f"ulimit -n {most}")


def check_locked(tree: Tree, devices: Sequence[str]) -> Finding:
    """Locked memory, which registrations with RDMA devices count as."""
    rule, sources = "host.memlock", (_LIMITS,)
    limits = read_limit(tree, "Max locked memory")
    if limits is None:
        return find(rule, State.ABSENT, "the limit is not known", sources=sources)
    soft = limits[0]
    if soft == float("inf"):
        return find(rule, State.OK, "no limit", sources=sources)
    text = f"{soft // 1024:.0f} KiB may be locked"
    if not devices:
        return find(rule, State.OK, f"{text}; RDMA devices need it, and there are none", sources=sources)
    finding = judge(rule, soft / _MIB, text, sources=sources)
    if finding.is_bad:
        text = f"{text}, and {', '.join(devices)} registers more"
        return judge(rule, soft / _MIB, text, sources=sources)
    return finding
