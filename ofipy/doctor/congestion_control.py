# SPDX-License-Identifier: BSD-3-Clause
"""What TCP paces itself by."""

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.parameter import parameter
from ofipy.doctor.rules import find
from ofipy.host.tree import Tree

__all__ = ["check_congestion_control"]

_USED = "proc/sys/net/ipv4/tcp_congestion_control"
_AVAILABLE = "proc/sys/net/ipv4/tcp_available_congestion_control"


def check_congestion_control(tree: Tree) -> Finding:
    """What TCP paces itself by."""
    own = parameter("OFIPY_TCP_CONGESTION_CONTROL")
    system = tree.line(_USED)
    available = (tree.line(_AVAILABLE) or "").split()
    rule, sources = "process.congestion_control", (_USED, _AVAILABLE)
    if own and available and own not in available:
        text = f"OFIPY_TCP_CONGESTION_CONTROL is {own}; this kernel has {', '.join(available)}"
        remedy = f"choose one of them, or modprobe tcp_{own}"
        return find(rule, State.FAILED, text, sources=sources, remedy=remedy)
    if own:
        return find(rule, State.OK, f"{own}, as OFIPY_TCP_CONGESTION_CONTROL says", sources=sources)
    text = f"{system or 'unknown'}; reno between processes of this host"
    return find(rule, State.OK, text, sources=sources)
