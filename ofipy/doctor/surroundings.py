# SPDX-License-Identifier: BSD-3-Clause
"""Rules on what surrounds a device: temperature, MTU of its interfaces, the host's clock, GPU memory."""

import re
from collections.abc import Iterator

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.host import Host
from ofipy.doctor.rules import find, judge
from ofipy.host.command import command_file, read_command
from ofipy.host.device import DEVICES
from ofipy.host.network import INTERFACES, Interface, read_interface

__all__ = ["check_clock", "check_gpu_memory", "check_mtu", "check_temperatures"]

_TRACKING = ("chronyc", "-n", "tracking")
_OFFSET = re.compile(r"^System time\s*:\s*([0-9.]{1,20}) seconds (slow|fast) of NTP time", re.MULTILINE)
_NVIDIA = "proc/driver/nvidia/version"
_PEERS = "sys/kernel/mm/memory_peers"


def check_temperatures(host: Host) -> Iterator[Finding]:
    """How far each device is from where it shuts down."""
    for device in host.devices:
        sensors = device.bus.temperatures if device.bus is not None else ()
        known = [each for each in sensors if each.critical is not None]
        if known:
            hottest = min(known, key=lambda each: (each.critical or 0) - each.celsius)
            margin = round((hottest.critical or 0) - hottest.celsius, 3)
            text = f"{hottest.label} {hottest.celsius:g} °C, critical at {hottest.critical:g} °C"
            source = f"{DEVICES}/{device.name}/device/hwmon"
            yield judge("hw.temperature", margin, text, place=device.name, sources=(source,))


def check_mtu(host: Host) -> Iterator[Finding]:
    """Whether interfaces of one rate, over which RDMA goes, have one MTU."""
    names = dict.fromkeys(name for device in host.devices for name in device.interfaces)
    found = [each for name in names if (each := read_interface(host.tree, name)) is not None]
    for each in found:
        if each.mtu is None or each.state == "down":
            continue
        alike = [other for other in found if is_alike(each, other)]
        best = max(other.mtu or 0 for other in alike)
        more = (
            f"; {', '.join(other.name for other in alike if other.mtu == best)} has {best}"
            if best > each.mtu
            else ""
        )
        yield judge(
            "net.mtu", each.mtu, f"{each.mtu} bytes{more}", place=each.name,
            sources=(f"{INTERFACES}/{each.name}/mtu",), warning=best,
        )  # fmt: skip


def is_alike(each: Interface, other: Interface) -> bool:
    """Whether two interfaces belong to networks of one kind."""
    return (each.link_layer, each.megabits) == (other.link_layer, other.megabits) and other.state != "down"


def check_clock(host: Host) -> Iterator[Finding]:
    """How far this host's clock is from its time servers', if chrony runs."""
    match = _OFFSET.search(read_command(host.tree, *_TRACKING) or "")
    if match:
        offset = float(match[1])
        text = f"{offset:g} s {match[2]} of its time servers"
        yield judge(
            "host.clock",
            offset,
            text,
            sources=(command_file(*_TRACKING),),
            remedy="chronyc makestep; chronyc sources",
        )


def check_gpu_memory(host: Host) -> Iterator[Finding]:
    """Whether RDMA devices can reach the memory of NVIDIA's GPUs.

    A module that is loaded need not have registered with the RDMA core, so its registration counts. The open kernel
    modules export GPU memory as dma-buf, which needs no module beside.
    """
    version = host.tree.line(_NVIDIA)
    hardware = [device.name for device in host.devices if device.bus is not None]
    if version is None or not hardware:
        return
    sources = (_NVIDIA, _PEERS)
    registered = host.tree.names(_PEERS)
    if registered:
        yield find("gpu.peermem", State.OK, f"registered: {', '.join(registered)}", sources=sources)
    elif "Open Kernel Module" in version:
        yield find("gpu.peermem", State.OK, "dma-buf of the open kernel modules", sources=sources)
    else:
        loaded = host.tree.place("sys/module/nvidia_peermem") is not None
        text = (
            "nvidia_peermem is loaded, but has not registered"
            if loaded
            else "neither nvidia-peermem nor dma-buf"
        )
        remedy = (
            "reload it after the RDMA drivers: modprobe -r nvidia-peermem; modprobe nvidia-peermem"
            if loaded
            else None
        )
        text += f"; {', '.join(hardware)} cannot reach GPU memory"
        yield find("gpu.peermem", State.WARNING, text, sources=sources, remedy=remedy)
