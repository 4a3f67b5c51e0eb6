# SPDX-License-Identifier: BSD-3-Clause
"""Rules on where a process runs: the NUMA node of the device, and the clock of the processors."""

from collections.abc import Iterator

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.host import Host
from ofipy.doctor.rules import find
from ofipy.host.device import DEVICES

__all__ = ["check_governor", "check_nodes", "read_processors"]

_STATUS = "proc/self/status"
_PROCESSORS = "sys/devices/system/cpu"
_WIDEST = 1 << 16  # processors of one range


def read_processors(text: str | None) -> set[int]:
    """The numbers in ``0-3,8``."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, dash, last = part.strip().partition("-")
        if first.isdecimal() and first.isascii() and (not dash or (last.isdecimal() and last.isascii())):
            begin, end = int(first[:6]), int((last if dash else first)[:6])
            found.update(range(begin, min(end + 1, begin + _WIDEST)))
    return found


def allowed_processors(host: Host, status: str = _STATUS) -> set[int]:
    """Processors that a process may use, out of its status."""
    for line in (host.tree.text(status) or "").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return read_processors(value)
    return set()


def check_nodes(host: Host) -> Iterator[Finding]:
    """Whether processes may use processors near the device. With one node there is no choice."""
    if len(host.nodes) < 2:
        return
    allowed = allowed_processors(host)
    for device in host.devices:
        if device.bus is None:
            continue
        folder = f"{DEVICES}/{device.name}/device"
        place, sources = device.name, (f"{folder}/numa_node", f"{folder}/local_cpulist", _STATUS)
        near = read_processors(device.bus.processors)
        if device.bus.numa_node is None:
            text = f"the node of the device is not known; the host has {len(host.nodes)}"
            remedy = "the BIOS does not say at which socket the slot is: update it"
            yield find("host.numa", State.WARNING, text, place=place, sources=sources, remedy=remedy)
        elif near and allowed and not near & allowed:
            node = device.bus.numa_node
            text = f"the device is at node {node}; this process may use none of its processors {device.bus.processors}"
            remedy = f"numactl --cpunodebind={node} --preferred={node}, or the launcher's binding"
            yield find("host.numa", State.WARNING, text, place=place, sources=sources, remedy=remedy)
        else:
            text = f"node {device.bus.numa_node}, processors {device.bus.processors}"
            yield find("host.numa", State.OK, text, place=place, sources=sources)


def check_governor(host: Host) -> Iterator[Finding]:
    """Whether processors run at full clock before there is work for them."""
    found: dict[str, int] = {}
    source = ""
    for name in host.tree.names(_PROCESSORS):
        if name.startswith("cpu") and name[3:].isdecimal():
            file = f"{_PROCESSORS}/{name}/cpufreq/scaling_governor"
            governor = host.tree.line(file)
            if governor is not None:
                found[governor] = found.get(governor, 0) + 1
                source = source or file
    if found:
        text = ", ".join(f"{name} on {count} processors" for name, count in found.items())
        state = State.OK if set(found) == {"performance"} else State.WARNING
        yield find("host.governor", state, text, sources=(source,))
