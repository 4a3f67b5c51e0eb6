# SPDX-License-Identifier: BSD-3-Clause
"""Network interfaces and the kernel's TCP: state, congestion control of RoCE, counters."""

from dataclasses import dataclass

from ofipy.host.counter import Counter, build_counter, read_counters
from ofipy.host.tree import Tree

__all__ = [
    "INTERFACES",
    "Interface",
    "list_interfaces",
    "read_interface",
    "read_interface_counters",
    "read_tcp_counters",
]

INTERFACES = "sys/class/net"
_LOOPBACK = 772  # ARPHRD_LOOPBACK of linux/if_arp.h
_LINK_LAYERS = {1: "Ethernet", 32: "InfiniBand"}  # ARPHRD_ETHER, ARPHRD_INFINIBAND
_SETTINGS = frozenset(("RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn"))
# Of more than a hundred: what says that something was lost, refused, or had to wait.
_EXTENDED = {
    "TcpExt": frozenset(
        (
            "ListenDrops",
            "ListenOverflows",
            "TCPAbortOnMemory",
            "TCPAbortOnTimeout",
            "TCPBacklogDrop",
            "TCPDSACKRecv",
            "TCPDeliveredCE",
            "TCPFastRetrans",
            "TCPFromZeroWindowAdv",
            "TCPLossProbes",
            "TCPLostRetransmit",
            "TCPMemoryPressures",
            "TCPOFODrop",
            "TCPRcvQDrop",
            "TCPSlowStartRetrans",
            "TCPSynRetrans",
            "TCPSpuriousRTOs",
            "TCPTimeouts",
            "TCPToZeroWindowAdv",
            "TCPZeroWindowDrop",
        )
    ),
    "IpExt": frozenset(
        ("InCEPkts", "InCsumErrors", "InECT0Pkts", "InECT1Pkts", "InNoECTPkts", "InTruncatedPkts")
    ),
}


@dataclass(frozen=True, slots=True)
class Interface:
    """One network interface."""

    name: str
    state: str | None
    mtu: int | None
    """Bytes."""
    megabits: int | None
    """Rate of the link, Mb/s; None: down, or software."""
    numa_node: int | None
    link_layer: str | None
    """``Ethernet``, ``InfiniBand``."""
    ecn_notification: tuple[int, ...] | None
    """Priorities on which RoCE answers marks with notifications; None: the driver does not say."""
    ecn_reaction: tuple[int, ...] | None
    """Priorities on which RoCE slows down when notified."""


def list_interfaces(tree: Tree, *, loopback: bool = False) -> list[str]:
    """Their names."""
    names = tree.names(INTERFACES)
    return [name for name in names if loopback or tree.number(f"{INTERFACES}/{name}/type") != _LOOPBACK]


def read_interface(tree: Tree, name: str) -> Interface | None:
    """One interface, None where there is none of that name."""
    folder = f"{INTERFACES}/{name}"
    if "/" in name or tree.place(folder) is None:
        return None
    speed, node = tree.number(f"{folder}/speed"), tree.number(f"{folder}/device/numa_node")
    return Interface(
        name=name,
        state=tree.line(f"{folder}/operstate"),
        mtu=tree.number(f"{folder}/mtu"),
        megabits=speed if speed is not None and speed > 0 else None,
        numa_node=node if node is not None and node >= 0 else None,
        link_layer=_LINK_LAYERS.get(tree.number(f"{folder}/type") or 0),
        ecn_notification=read_priorities(tree, f"{folder}/ecn/roce_np/enable"),
        ecn_reaction=read_priorities(tree, f"{folder}/ecn/roce_rp/enable"),
    )


def read_priorities(tree: Tree, folder: str) -> tuple[int, ...] | None:
    """The priorities that are switched on, of files 0 to 7."""
    values = {priority: tree.number(f"{folder}/{priority}") for priority in range(8)}
    if all(value is None for value in values.values()):
        return None
    return tuple(priority for priority, value in values.items() if value)


def read_interface_counters(tree: Tree, name: str) -> list[Counter]:
    """What an interface has counted."""
    return list(read_counters(tree, f"{INTERFACES}/{name}/statistics"))


def read_tcp_counters(tree: Tree) -> list[Counter]:
    """What the kernel's TCP has counted, of all connections of the network namespace."""
    found = []
    for source, groups in (("proc/net/snmp", {"Tcp": None}), ("proc/net/netstat", _EXTENDED)):
        lines = (tree.text(source) or "").splitlines()
        for heading, values in zip(lines[::2], lines[1::2], strict=False):
            group, _, names = heading.partition(":")
            again, _, numbers = values.partition(":")
            if group != again or group not in groups:
                continue
            wanted = groups[group]
            for name, number in zip(names.split(), numbers.split(), strict=False):
                listed = name in wanted if wanted is not None else name not in _SETTINGS
                if listed and number.isdecimal() and number.isascii() and len(number) <= 20:
                    found.append(build_counter(name, int(number), source))
    return found
