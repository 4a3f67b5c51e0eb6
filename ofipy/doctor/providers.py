# SPDX-License-Identifier: BSD-3-Clause
"""What the providers of this process can work with: interfaces, devices, libraries."""

import ofipy
from ofipy._base.errors import FabricError
from ofipy._discovery.info import Explanation
from ofipy._objects.open import default_info
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.parameter import parameter
from ofipy.doctor.rules import find

__all__ = ["check_choice", "check_interfaces", "check_libfabric", "check_verbs"]


def check_choice() -> Finding:
    """What ``ofipy.open()`` would take."""
    try:
        chosen = default_info()
    except FabricError as error:
        return find("process.provider", State.FAILED, str(error), remedy="correct what it names")
    if chosen is None:
        return find("process.provider", State.FAILED, "open() finds none")
    return find("process.provider", State.OK, f"open() takes {chosen.provider}, {chosen.domain}")


def check_interfaces(tcp: Explanation | None) -> Finding:
    """Where other hosts are reached."""
    rule = "process.interfaces"
    if tcp is None or not tcp.infos:
        reason = tcp.reason if tcp is not None and tcp.reason else "there is no provider tcp"
        return find(rule, State.WARNING, reason)
    found = list(dict.fromkeys(info.domain for info in tcp.infos))
    if any(ofipy.Cap.REMOTE_COMM in info.caps for info in tcp.infos):
        return find(rule, State.OK, ", ".join(found))
    text = f"{', '.join(found)}: this host alone"
    return find(rule, State.WARNING, text, remedy="to reach others: ip link set eth0 up")


def check_verbs(verbs: Explanation | None, found: list[str]) -> Finding:
    """RDMA devices and the library for them."""
    rule = "process.libibverbs"
    if verbs is not None and verbs.infos:
        return find(rule, State.OK, ", ".join(dict.fromkeys(info.domain for info in verbs.infos)))
    reason = verbs.reason if verbs is not None and verbs.reason else "there is no provider verbs"
    if found:
        return find(rule, State.WARNING, f"{', '.join(found)} cannot be used", remedy=reason)
    return find(rule, State.OK, f"not needed: {reason}")


def check_libfabric(ofi: Explanation | None) -> Finding:
    """An installed libfabric, whose providers are there as ``ofi:…``."""
    rule = "process.libfabric"
    if ofi is not None and ofi.infos:
        return find(rule, State.OK, ", ".join(dict.fromkeys(info.provider for info in ofi.infos)))
    reason = ofi.reason if ofi is not None and ofi.reason else "there is no provider ofi"
    if path := parameter("OFIPY_LIBFABRIC"):
        return find(rule, State.FAILED, f"OFIPY_LIBFABRIC is {path}: {reason}")
    return find(rule, State.OK, f"not needed: {reason}")
