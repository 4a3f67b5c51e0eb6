# SPDX-License-Identifier: BSD-3-Clause
"""Every rule of one host, in the order in which they are shown."""

import ofipy
from ofipy.doctor import congestion, integrity, link, pcie, placement, surroundings
from ofipy.doctor.attach import check_attach, try_attach
from ofipy.doctor.congestion_control import check_congestion_control
from ofipy.doctor.encryption import check_accepted_keys, check_encryption, list_addresses
from ofipy.doctor.finding import Finding
from ofipy.doctor.host import Host
from ofipy.doctor.key import check_key
from ofipy.doctor.limits import check_descriptors, check_locked, check_shared_memory
from ofipy.doctor.providers import check_choice, check_interfaces, check_libfabric, check_verbs
from ofipy.host.device import list_devices
from ofipy.host.tree import Tree

__all__ = ["examine_alone", "examine_host", "examine_process"]

_RULES = (
    placement.check_nodes,
    placement.check_governor,
    surroundings.check_clock,
    surroundings.check_gpu_memory,
    surroundings.check_temperatures,
    link.check_states,
    link.check_widths,
    link.check_rates,
    integrity.check_link_errors,
    pcie.check_slots,
    pcie.check_errors,
    congestion.check_retransmissions,
    congestion.check_marks,
    congestion.check_pauses,
    integrity.check_discards,
    surroundings.check_mtu,
)


def examine_host(host: Host) -> list[Finding]:
    """What the kernel's files say, of this host or of a recorded one."""
    tree = host.tree
    limits = [
        check_shared_memory(tree),
        check_descriptors(tree),
        check_locked(tree, [each.name for each in host.devices]),
    ]
    return limits + [finding for check in _RULES for finding in check(host)]


def examine_alone(host: Host) -> list[Finding]:
    """Likewise, with what TCP tells of all connections; a measurement with a peer tells more exactly."""
    return [*examine_host(host), *congestion.check_tcp(host)]


def examine_process(tree: Tree) -> list[Finding]:
    """What this process could do on this host. It forks: call it before anything has threads."""
    devices = list_devices(tree)
    attach = check_attach(try_attach, tree)
    explained = ofipy.getinfo(provider=("link", "shm", "tcp", "verbs", "ofi"), explain=True)
    providers = {each.provider: each for each in explained}
    tcp = providers.get("tcp")
    return [
        check_choice(),
        check_interfaces(tcp),
        check_congestion_control(tree),
        attach,
        check_key([info for each in explained for info in each.infos]),
        check_accepted_keys(),
        check_encryption(list_addresses(info.domain for info in tcp.infos) if tcp else ()),
        check_verbs(providers.get("verbs"), devices),
        check_libfabric(providers.get("ofi")),
    ]
