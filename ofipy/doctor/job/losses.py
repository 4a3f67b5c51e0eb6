# SPDX-License-Identifier: BSD-3-Clause
"""How much of what this host's TCP sent was lost, between two moments."""

from dataclasses import dataclass

from ofipy.doctor.finding import Finding
from ofipy.doctor.rules import LEAST_PACKETS, LEAST_SEGMENTS, SOFTWARE_RETRANSMISSIONS, TCP_REPEATED, judge
from ofipy.host.tree import Tree

__all__ = ["Segments", "judge_losses", "read_segments"]

_SOURCES = ("proc/net/snmp", "proc/net/netstat")
_NAMES = ("OutSegs", "RetransSegs", "TCPLossProbes", "TCPDSACKRecv")


@dataclass(frozen=True, slots=True)
class Segments:
    """Counters of the network namespace."""

    sent: int
    repeated: int
    """Without those that TCP sent in case something was lost, and those that had arrived after all."""


def read_segments(tree: Tree) -> Segments:
    """The counters now; 0 where the kernel has none."""
    found = dict.fromkeys(_NAMES, 0)
    for source in _SOURCES:
        lines = (tree.text(source) or "").splitlines()
        for heading, values in zip(lines[::2], lines[1::2], strict=False):
            for name, value in zip(heading.split()[1:], values.split()[1:], strict=False):
                if name in found and value.isdecimal():
                    found[name] = int(value)
    guesses = found["TCPLossProbes"] + found["TCPDSACKRecv"]
    return Segments(found["OutSegs"], found["RetransSegs"] - guesses)


def judge_losses(before: Segments, now: Segments, *, is_software: bool) -> list[Finding]:
    """Nothing where too little was sent. Networks of software have thresholds of their own."""
    sent, repeated = now.sent - before.sent, max(0, now.repeated - before.repeated)
    if sent < LEAST_PACKETS:
        return []
    share = repeated / sent if repeated >= LEAST_SEGMENTS else 0.0
    text = f"{repeated} of {sent} segments that this host sent were lost and sent again"
    warning, failure = SOFTWARE_RETRANSMISSIONS if is_software else TCP_REPEATED
    return [
        judge("port.retransmit", share, text, place="TCP", sources=_SOURCES, warning=warning, failure=failure)
    ]
