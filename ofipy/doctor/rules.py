# SPDX-License-Identifier: BSD-3-Clause
"""The table of rules: every id, threshold and remedy of the doctor, and the one comparison with thresholds."""

from collections.abc import Sequence
from dataclasses import replace

from ofipy.doctor.finding import Finding, Rule, State

__all__ = [
    "ERROR_THRESHOLDS",
    "LEAST_MESSAGES",
    "LEAST_PACKETS",
    "LEAST_PEERS",
    "LEAST_RETRANSMISSIONS",
    "LEAST_SEGMENTS",
    "MOST_DISCARDS",
    "RULES",
    "SOFTWARE_RETRANSMISSIONS",
    "SOFTWARE_RETRIES",
    "TCP_REPEATED",
    "XMIT_WAIT",
    "find",
    "judge",
    "soften",
]

_TABLE = (
    # This process: whether open() and the providers can work.
    Rule("process.provider", "provider", "process", "ofipy info says why for each"),
    Rule("process.interfaces", "interfaces", "process", "ip link shows which interfaces are up"),
    Rule("process.congestion_control", "congestion control", "process", "choose one of the kernel's"),
    Rule("process.attach", "attach", "process", "in a container: --cap-add SYS_PTRACE"),
    Rule("process.key", "key", "process", "ofipy key new FILE makes one"),
    Rule("process.accepted_keys", "accepted keys", "process", "copy the key file again"),
    Rule("process.encryption", "encryption", "process", "correct what it names"),
    Rule("process.libibverbs", "libibverbs", "process", "install libibverbs and the device's driver for it"),
    Rule("process.libfabric", "libfabric", "process", "correct or unset OFIPY_LIBFABRIC"),
    # The host.
    Rule(
        "host.shared_memory", "shared memory", "host", "raise it: memory.max, in a container --memory",
        "MiB", warning=256, is_least=True,
    ),
    Rule("host.descriptors", "descriptors", "host", "ulimit -n", "files", warning=1024, is_least=True),
    Rule(
        "host.memlock", "locked memory", "host",
        "ulimit -l unlimited (/etc/security/limits.conf: memlock); in a container --ulimit memlock=-1",
        "MiB", warning=64, is_least=True,
    ),
    Rule(
        "host.numa", "NUMA", "host",
        "numactl --cpunodebind=NODE, or a slot of the other socket; node -1: the BIOS does not say where the slot is",
    ),
    Rule("host.governor", "governor", "host", "cpupower frequency-set -g performance"),
    Rule(
        "host.clock", "clock", "host", "run chrony or ntpd on both hosts: chronyc tracking",
        "s", warning=0.010,
    ),
    Rule(
        "gpu.peermem", "GPU memory", "host",
        "modprobe nvidia-peermem, or a kernel and driver with dma-buf (CONFIG_PCI_P2PDMA, open kernel modules)",
    ),
    Rule("hw.temperature", "temperature", "host", "airflow, dust, a fan", "K", warning=10, failure=0, is_least=True),
    # The link.
    Rule(
        "link.state", "link state", "link",
        "reseat or replace the cable and the transceiver; ip link set IF up; look at the switch port",
    ),
    Rule("link.width", "link width", "link", "reseat or replace the cable", "lanes", is_least=True),
    Rule(
        "link.rate", "link rate", "link", "reseat or replace the cable; forced speeds at the switch",
        "Gb/s", is_least=True,
    ),
    Rule(
        "port.integrity", "link errors", "link", "clean, reseat or replace cable and transceiver",
        "errors", warning=10, failure=0,
    ),
    # PCI Express.
    Rule(
        "pcie.width", "PCIe", "pcie",
        "reseat the card; a slot with more lanes; the BIOS' setting of the slot", "Gb/s", is_least=True,
    ),
    Rule("pcie.aer", "PCIe errors", "pcie", "reseat the card; another slot or riser", "errors", warning=0, failure=0),
    # What a port had to wait for or to repeat.
    Rule(
        "port.retransmit", "retransmissions", "congestion",
        "look for the loss: link errors, discards, PFC and ECN on every switch of the way, MTU",
        "of packets sent", warning=1e-5, failure=1e-4,
    ),
    Rule(
        "port.congestion", "congestion marks", "congestion",
        "too many senders to one receiver, or a slow link behind this one: spread them; ECN thresholds of the switch",
        "of packets", warning=0.01, failure=0.10,
    ),
    Rule(
        "port.pause", "pause", "congestion",
        "a receiver that is too slow: its PCIe, its memory, its processes; the priority of PFC (ofipy counters IF)",
        "of the time", warning=0.01, failure=0.10,
    ),
    Rule(
        "port.discard", "discards", "congestion",
        "a lossless priority: dcb pfc set dev IF prio-pfc 3:on, OFIPY_VERBS_TRAFFIC_CLASS=106; buffers of the switch",
        "packets", warning=0, failure=0,
    ),
    # Between two hosts.
    Rule(
        "net.mtu", "MTU", "reach", "ip link set IF mtu 9000 on both hosts; the MTU of every switch port between",
        "bytes", is_least=True,
    ),
    Rule("net.port", "port", "reach", "start the other side; open the port in the firewalls of both hosts"),
    Rule(
        "ladder.raw", "raw bandwidth", "raw", "the rungs above: link, PCIe, NUMA, congestion",
        "of the rate", warning=0.85, failure=0.5, is_least=True,
    ),
    Rule(
        "ladder.provider", "provider", "provider", "a core for each process, the device's NUMA node, ofipy info --env",
        "of raw", warning=0.9, failure=0.6, is_least=True,
    ),
    Rule(
        "ladder.application", "application", "application", "larger messages, more of them at once; the hook profile",
        "of the provider", warning=0.8, failure=0.5, is_least=True,
    ),
    # Processes.
    Rule(
        "app.no_progress", "no progress", "application",
        "the process is stopped, or computes without calling ofipy: kill -CONT PID, or progress=\"auto\"",
        "s", warning=1,
    ),
    Rule(
        "app.slow_receiver", "slow receiver", "application",
        "post receives earlier, or slow down those who send to this process",
        "of the bound", warning=0.5,
    ),
    Rule(
        "app.peer_lag", "slow peer", "application",
        "look at this peer: ofipy doctor on its host, ofipy doctor HOST from here",
        "times behind its share", warning=10,
    ),
    Rule("app.way", "way", "application", "ofipy info says what verbs misses"),
)  # fmt: skip

# Standing counts above which a link is suspicious: error_thresholds of infiniband-diags, by the kernel's names.
ERROR_THRESHOLDS = {
    "symbol_error": 10,
    "link_error_recovery": 10,
    "link_downed": 10,
    "port_rcv_errors": 10,
    "port_rcv_remote_physical_errors": 100,
    "port_rcv_switch_relay_errors": 100,
    "port_xmit_constraint_errors": 100,
    "port_rcv_constraint_errors": 100,
    "local_link_integrity_errors": 10,
    "excessive_buffer_overrun_errors": 10,
    "rx_crc_errors": 10,
    "rx_symbol_err_phy": 10,
    "rx_crc_errors_phy": 10,
}
MOST_DISCARDS = 100
"""Discards since the counters began that need no attention: PortXmitDiscards of the same file."""
XMIT_WAIT = (0.10, 0.50)
"""Share of the time in which a port had to wait for credits: warning, failure."""
TCP_REPEATED = (1e-3, 1e-2)
"""Share of TCP's segments that were sent again: a share of TCP is usual without a fault. Where the network is software,
those of SOFTWARE_RETRANSMISSIONS: a queue overflows while the processor is busy elsewhere."""
LEAST_PACKETS = 100
"""A share of fewer packets says nothing."""
LEAST_RETRANSMISSIONS = 3
"""Fewer are no pattern."""
LEAST_SEGMENTS = 10
"""Likewise of TCP, which also probes."""
SOFTWARE_RETRANSMISSIONS = (0.01, 0.1)
"""Share of TCP's segments that are sent again in a network of software: warning, failure."""
SOFTWARE_RETRIES = (0.002, 0.02)
"""Retries of an RDMA device of software for each packet that it sent: warning, failure. One retry repeats all that is
in flight, so a loss of 3 % counts as 0.6 %; a network in order has less than 0.001 %."""
LEAST_MESSAGES = 20
"""A peer whose share is smaller may be late by chance."""
LEAST_PEERS = 3
"""With fewer, a peer has nobody to be compared with."""

RULES = {rule.id: rule for rule in _TABLE}
"""By id, in the order of the ladder."""


def find(
    rule: str,
    state: State,
    text: str,
    *,
    place: str = "",
    sources: Sequence[str] = (),
    remedy: str | None = None,
    measured: float | None = None,
    threshold: float | None = None,
) -> Finding:
    """A finding whose state is known. Its remedy is the rule's unless there is a better one; a good state has none."""
    known = RULES[rule]
    told = (known.remedy if remedy is None else remedy) if state in (State.WARNING, State.FAILED) else ""
    return Finding(known, state, text, place, measured, threshold, tuple(sources), told)


def judge(
    rule: str,
    measured: float,
    text: str,
    *,
    place: str = "",
    sources: Sequence[str] = (),
    remedy: str | None = None,
    warning: float | None = None,
    failure: float | None = None,
) -> Finding:
    """Compare a figure with the thresholds of its rule.

    Parameters
    ----------
    rule : str
        Id of the rule.
    measured : float
        In the rule's unit.
    text : str
        What is there, for people.
    place : str
        Where; empty: the whole host.
    sources : sequence of str
        What the figure was read from.
    remedy : str, optional
        What to do, in place of the rule's.
    warning, failure : float, optional
        Thresholds that the table cannot know: those of another figure of the same place.

    Returns
    -------
    Finding
        With the threshold that was passed, or else the one that comes first.
    """
    known = RULES[rule]
    warning = known.warning if warning is None else warning
    failure = known.failure if failure is None else failure

    def is_passed(threshold: float | None) -> bool:
        return threshold is not None and (measured < threshold if known.is_least else measured > threshold)

    state = State.OK
    if is_passed(failure):
        state = State.FAILED
    elif is_passed(warning):
        state = State.WARNING
    threshold = failure if state is State.FAILED or warning is None else warning
    return find(
        rule, state, text, place=place, sources=sources, remedy=remedy, measured=measured, threshold=threshold
    )


def soften(finding: Finding, note: str) -> Finding:
    """A finding on what may be long over: at most a warning, with a note on the time that it stands for."""
    state = State.WARNING if finding.state is State.FAILED else finding.state
    return replace(finding, state=state, text=f"{finding.text} {note}")
