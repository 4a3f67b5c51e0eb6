# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of RoCE's congestion control (DCQCN), as the driver names them.

mlx5 has them in debugfs, which root alone reads, and its vendor's release of the driver beside the interface, for
everybody. bnxt_re has them in debugfs from Linux 6.15 on. In names, ``np`` is the notification point, ``rp`` the
reaction point.
"""

from ofipy.host.device import Device
from ofipy.host.network import INTERFACES
from ofipy.host.tree import Tree

__all__ = ["read_parameters"]

_DEBUG = "sys/kernel/debug"
_FOLDERS = (("mlx5", "cc_params"), ("bnxt_re", "cc_config"))
_MOST = 64


def read_parameters(tree: Tree, device: Device) -> dict[str, int]:
    """The parameters of a device by name; empty: they are not known."""
    function = device.bus.function if device.bus is not None else None
    folders = [(f"{_DEBUG}/{driver}/{function}/{name}", "") for driver, name in _FOLDERS if function]
    folders += [
        (f"{INTERFACES}/{interface}/ecn/roce_{role}", f"{role}_")
        for interface in device.interfaces
        for role in ("np", "rp")
    ]
    found: dict[str, int] = {}
    for folder, prefix in folders:
        for name in tree.names(folder)[:_MOST]:
            value = tree.number(f"{folder}/{name}")
            if value is not None:
                found.setdefault(prefix + name, value)
    return found
