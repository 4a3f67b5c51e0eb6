# SPDX-License-Identifier: BSD-3-Clause
"""What ``ofipy doctor`` looks at: limits and rights of this process, and the libraries and devices of this host."""

import ctypes
import enum
import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import ofipy
from ofipy._base.errors import FabricError
from ofipy._discovery.info import Explanation
from ofipy._objects.open import default_info
from ofipy.host.device import list_devices
from ofipy.host.tree import Tree
from ofipy.jobs.keys import configured

__all__ = ["Check", "State", "examine"]

_MIB = 1 << 20
_DESCRIPTORS_ENOUGH = 1024
_LOCKED_ENOUGH = 64 * _MIB
_SHARED_ENOUGH = 256 * _MIB
_PR_SET_PTRACER = 0x59616D61
_GROUPS = "sys/fs/cgroup"


class State(enum.StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    """It works, with less than it could."""
    FAILED = "failed"
    """What was asked for cannot work."""


@dataclass(frozen=True, slots=True)
class Check:
    """A line of what the doctor says."""

    name: str
    state: State
    finding: str
    remedy: str = ""
    """What to do; empty where there is nothing."""


def examine() -> list[Check]:
    """Make every check, in the order in which they are shown."""
    tree = Tree()
    devices = list_devices(tree)
    attach = check_attach(try_attach, tree)  # forks: before anything has threads
    explained = ofipy.getinfo(provider=("link", "shm", "tcp", "verbs", "ofi"), explain=True)
    providers = {each.provider: each for each in explained}
    return [
        check_choice(),
        check_interfaces(providers.get("tcp")),
        check_congestion(tree),
        attach,
        check_shared_memory(tree),
        check_descriptors(*resource.getrlimit(resource.RLIMIT_NOFILE)),
        check_locked(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], devices),
        check_key([info for each in explained for info in each.infos]),
        check_verbs(providers.get("verbs"), devices),
        check_libfabric(providers.get("ofi")),
    ]


def check_choice() -> Check:
    """What ``ofipy.open()`` would take."""
    try:
        chosen = default_info()
    except FabricError as error:
        return Check("provider", State.FAILED, str(error), "correct what it names")
    if chosen is None:
        return Check("provider", State.FAILED, "open() finds none", "ofipy info says why for each")
    return Check("provider", State.OK, f"open() takes {chosen.provider}, {chosen.domain}")


def check_interfaces(tcp: Explanation | None) -> Check:
    """Where other hosts are reached."""
    name = "interfaces"
    if tcp is None or not tcp.infos:
        reason = tcp.reason if tcp is not None and tcp.reason else "there is no provider tcp"
        return Check(name, State.WARNING, reason, "ip link shows which interfaces are up")
    found = list(dict.fromkeys(info.domain for info in tcp.infos))
    if any(ofipy.Cap.REMOTE_COMM in info.caps for info in tcp.infos):
        return Check(name, State.OK, ", ".join(found))
    return Check(
        name, State.WARNING, f"{', '.join(found)}: this host alone", "to reach others: ip link set eth0 up"
    )


def check_congestion(tree: Tree) -> Check:
    """What TCP paces itself by."""
    own = parameter("OFIPY_TCP_CONGESTION_CONTROL")
    system = tree.line("proc/sys/net/ipv4/tcp_congestion_control")
    available = (tree.line("proc/sys/net/ipv4/tcp_available_congestion_control") or "").split()
    name = "congestion control"
    if own and available and own not in available:
        return Check(
            name,
            State.FAILED,
            f"OFIPY_TCP_CONGESTION_CONTROL is {own}; this kernel has {', '.join(available)}",
            f"choose one of them, or modprobe tcp_{own}",
        )
    if own:
        return Check(name, State.OK, f"{own}, as OFIPY_TCP_CONGESTION_CONTROL says")
    return Check(name, State.OK, f"{system or 'unknown'}; reno between processes of this host")


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


def check_attach(attempt: Callable[[], int], tree: Tree) -> Check:
    """Whether large messages go between processes with a single copy."""
    name = "attach"
    if parameter("OFIPY_SHM_ATTACH") == "no":
        return Check(name, State.OK, "switched off by OFIPY_SHM_ATTACH")
    error = attempt()
    scope = tree.line("proc/sys/kernel/yama/ptrace_scope")
    text = f"Yama's ptrace_scope is {scope}" if scope is not None else "no Yama"
    if not error:
        return Check(name, State.OK, f"processes of this user read each other's memory; {text}")
    remedy = "in a container: --cap-add SYS_PTRACE"
    if scope == "1":
        remedy = f"OFIPY_SHM_PTRACER=yes, or sysctl kernel.yama.ptrace_scope=0; {remedy}"
    finding = (
        f"refused ({os.strerror(error)}; {text}): large messages wait for a sender that computes or sleeps"
    )
    return Check(name, State.WARNING, finding, remedy)


def check_shared_memory(tree: Tree) -> Check:
    """Whether there is memory that processes can share, and how much the control group allows."""
    name = "shared memory"
    try:
        descriptor = os.memfd_create("ofipy-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(descriptor, 0, _MIB)
        finally:
            os.close(descriptor)
    except OSError as error:
        return Check(name, State.FAILED, f"memfd_create: {error.strerror}", "raise the limit on memory")
    left, where = min(memory_left(tree), default=(None, ""))
    if left is None:
        return Check(name, State.OK, "no limit of a control group; /dev/shm is not used")
    finding = f"the control group has {left // _MIB} MiB left of {where}"
    if left < _SHARED_ENOUGH:
        return Check(name, State.WARNING, finding, "raise it: memory.max, in a container --memory")
    return Check(name, State.OK, finding)


def memory_left(tree: Tree) -> Iterator[tuple[int, str]]:
    """Bytes that each control group above this process has left, and which file says so."""
    lines = (tree.text("proc/self/cgroup") or "").splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if path is None:
        return
    groups = [part for part in path.split("/") if part]
    for depth in range(len(groups), -1, -1):
        folder = "/".join((_GROUPS, *groups[:depth]))
        limit, used = tree.number(f"{folder}/memory.max"), tree.number(f"{folder}/memory.current")
        if limit is not None and used is not None:
            yield limit - used, f"/{folder}/memory.max"


def check_descriptors(soft: int, hard: int) -> Check:
    """Open files: two for each process that is met."""
    name = "descriptors"
    if soft == resource.RLIM_INFINITY:
        return Check(name, State.OK, "no limit")
    finding = f"{soft} open files, two for each peer process"
    if soft >= _DESCRIPTORS_ENOUGH:
        return Check(name, State.OK, finding)
    most = "unlimited" if hard == resource.RLIM_INFINITY else hard
    return Check(name, State.WARNING, finding, f"ulimit -n {most}")


def check_locked(soft: int, found: list[str]) -> Check:
    """Locked memory, which registrations with RDMA devices count as."""
    name = "locked memory"
    if soft == resource.RLIM_INFINITY:
        return Check(name, State.OK, "no limit")
    finding = f"{soft // 1024} KiB may be locked"
    if not found:
        return Check(name, State.OK, f"{finding}; RDMA devices need it, and there are none")
    if soft >= _LOCKED_ENOUGH:
        return Check(name, State.OK, finding)
    remedy = "ulimit -l unlimited (/etc/security/limits.conf: memlock); in a container --ulimit memlock=-1"
    return Check(name, State.WARNING, f"{finding}, and {', '.join(found)} registers more", remedy)


def check_key(infos: Sequence[ofipy.Info] = ()) -> Check:
    """The key that peers prove to each other, who can read it, and the providers whose peers do not prove it."""
    name = "key"
    path = parameter("OFIPY_AUTH_KEY_FILE")
    try:
        if configured() is None:
            return Check(name, State.OK, "none: peers on other hosts are not asked who they are")
    except FabricError as error:
        return Check(name, State.FAILED, str(error.message), "ofipy key new FILE makes one")
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        finding = f"{path} has mode {mode:o}: others than its owner may use it"
        return Check(name, State.FAILED, finding, f"chmod 600 {path}")
    finding = f"{path}, mode {mode:o}"
    for proof, says in (
        (ofipy.PeerProof.KEY, "proven by peers of"),
        (ofipy.PeerProof.NONE, "not by those of"),
        (ofipy.PeerProof.USER, "processes of the same user need none over"),
    ):
        if names := ", ".join(requiring(infos, proof)):
            finding += f"; {says} {names}"
    return Check(name, State.OK, finding)


def requiring(infos: Sequence[ofipy.Info], proof: ofipy.PeerProof) -> list[str]:
    """Providers that require this of peers; with the type of endpoint, where a provider's types differ."""
    kinds: dict[str, dict[str, ofipy.PeerProof]] = {}
    for info in infos:
        kinds.setdefault(info.provider.partition(":")[0], {})[info.ep_type.name.lower()] = info.peer_proof
    names = []
    for provider, types in kinds.items():
        if len(set(types.values())) == 1:
            names += [provider] if proof in types.values() else []
        else:
            names += [f"{provider} {ep_type}" for ep_type, required in types.items() if required is proof]
    return names


def check_verbs(verbs: Explanation | None, found: list[str]) -> Check:
    """RDMA devices and the library for them."""
    name = "libibverbs"
    if verbs is not None and verbs.infos:
        return Check(name, State.OK, ", ".join(dict.fromkeys(info.domain for info in verbs.infos)))
    reason = verbs.reason if verbs is not None and verbs.reason else "there is no provider verbs"
    if found:
        return Check(name, State.WARNING, f"{', '.join(found)} cannot be used", reason)
    return Check(name, State.OK, f"not needed: {reason}")


def check_libfabric(ofi: Explanation | None) -> Check:
    """An installed libfabric, whose providers are there as ``ofi:…``."""
    name = "libfabric"
    if ofi is not None and ofi.infos:
        return Check(name, State.OK, ", ".join(dict.fromkeys(info.provider for info in ofi.infos)))
    reason = ofi.reason if ofi is not None and ofi.reason else "there is no provider ofi"
    if path := parameter("OFIPY_LIBFABRIC"):
        return Check(name, State.FAILED, f"OFIPY_LIBFABRIC is {path}: {reason}", "correct or unset it")
    return Check(name, State.OK, f"not needed: {reason}")


def parameter(name: str) -> str:
    """The value in force; empty where nobody has set one."""
    return next((each.value for each in ofipy.parameters() if each.name == name), "")
