# SPDX-License-Identifier: BSD-3-Clause
"""The interface of this host that leads to another host."""

import array
import fcntl
import ipaddress
import socket
import struct
from dataclasses import asdict, dataclass
from typing import Any

from ofipy.doctor.peer.sockets import route_mtu
from ofipy.doctor.peer.wire import read_number, read_text
from ofipy.host.network import INTERFACES, read_interface
from ofipy.host.tree import Tree

__all__ = ["Path", "find_path", "read_path"]

_SIOCGIFADDR = 0x8915
_NAME = 16


@dataclass(frozen=True, slots=True)
class Path:
    """Where packets to the other host leave."""

    interface: str
    """Empty: not known."""
    address: str
    mtu: int
    """Of the route, bytes."""
    megabits: int | None
    """Rate of the link; None: of software, or of an emulated device."""

    def as_dict(self) -> dict[str, Any]:
        """For the other side."""
        return asdict(self)


def find_path(tree: Tree, host: str, *, is_guest: bool) -> Path | None:
    """The path to a host; None: no route leads there."""
    try:
        mtu, address = route_mtu(host)
    except OSError:
        return None
    name = name_interface(address)
    known = read_interface(tree, name) if name else None
    is_hardware = tree.place(f"{INTERFACES}/{name}/device") is not None and not is_guest
    return Path(name, address, mtu, known.megabits if known is not None and is_hardware else None)


def name_interface(address: str) -> str:
    """The interface that has an address; empty: none."""
    wanted = ipaddress.ip_address(address.partition("%")[0])
    if wanted.version == 6 and wanted.ipv4_mapped is not None:
        wanted = wanted.ipv4_mapped
    if wanted.version == 6:
        return name_interface_of_six(wanted)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = array.array("B", struct.pack(f"{_NAME}s16x", name.encode()))
            try:
                fcntl.ioctl(asking, _SIOCGIFADDR, request)
            except OSError:  # it has no address
                continue
            own = ipaddress.ip_address(bytes(request[_NAME + 4 : _NAME + 8]))
            if own == wanted or (wanted.is_loopback and own.is_loopback):
                return name
    return ""


def name_interface_of_six(wanted: ipaddress.IPv6Address) -> str:
    """The same for an address of IPv6, out of the kernel's table."""
    try:
        with open("/proc/net/if_inet6") as table:
            rows = [line.split() for line in table]
    except OSError:
        return ""
    digits = wanted.exploded.replace(":", "")
    return next((row[5] for row in rows if len(row) > 5 and row[0] == digits), "")


def read_path(said: dict[str, Any], name: str) -> Path | None:
    """The path that the other side has told; None: none."""
    value = said.get(name)
    mtu = read_number(value, "mtu") if isinstance(value, dict) else None
    if not isinstance(value, dict) or mtu is None:
        return None
    rate = read_number(value, "megabits")
    return Path(
        read_text(value, "interface"),
        read_text(value, "address"),
        int(mtu),
        int(rate) if rate is not None else None,
    )
