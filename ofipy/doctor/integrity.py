# SPDX-License-Identifier: BSD-3-Clause
"""Rules on what a port lost: errors of its link, and packets that it threw away."""

import re
from collections.abc import Iterator, Mapping

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.host import Host
from ofipy.doctor.rules import ERROR_THRESHOLDS, MOST_DISCARDS, find
from ofipy.host.counter import Counter

__all__ = ["check_discards", "check_link_errors"]

# Names of drivers' tables (Linux) and of mlx5, ice and bnxt_en in ethtool -S.
_DISCARDS = re.compile(
    r"port_xmit_discards|rx_roce_discards|rx_drops|ip[46]InDiscards|oos_drop_count|rx_missed_errors|rx_fifo_errors"
    r"|[rt]x_discards_phy|rx_prio[0-7]_(buf_discard|cong_discard|discards)|[rt]x_pause_storm_error_events"
)


def check_link_errors(host: Host) -> Iterator[Finding]:
    """Errors of the link: none may be new, few may be old."""
    for place in places(host):
        counters = host.counters(place)
        known = {name: each for name, each in counters.items() if name in ERROR_THRESHOLDS}
        if known:
            limits = {name: ERROR_THRESHOLDS[name] for name in known}
            yield judge_counts(host, "port.integrity", place, known, limits)


def check_discards(host: Host) -> Iterator[Finding]:
    """Packets that a port or interface dropped, and pauses that lasted so long that the device gave up."""
    for place in places(host):
        counters = host.counters(place)
        known = {name: each for name, each in counters.items() if _DISCARDS.fullmatch(name)}
        if known:
            limits = {name: 0 if "storm" in name else MOST_DISCARDS for name in known}
            yield judge_counts(host, "port.discard", place, known, limits)


def places(host: Host) -> list[str]:
    """Ports of devices, and interfaces of hardware."""
    return [*(place for _, _, place in host.ports()), *host.interfaces()]


def judge_counts(
    host: Host, rule: str, place: str, known: Mapping[str, Counter], limits: Mapping[str, int]
) -> Finding:
    """A new one is a failure, more standing ones than the limit a warning."""
    grown = {name: growth for name in known if (growth := host.growth(place, name))}
    if grown:
        text = ", ".join(f"{name} +{value}" for name, value in grown.items()) + f" in {host.seconds:.1f} s"
        sources = [known[name].source for name in grown]
        measured = sum(grown.values())
        return find(rule, State.FAILED, text, place=place, sources=sources, measured=measured, threshold=0)
    many = {name: each for name, each in known.items() if each.value > limits[name]}
    sources = [each.source for each in (many or known).values()]
    if many:
        text = ", ".join(f"{name} {'≥ ' * each.saturated}{each.value}" for name, each in many.items())
        worst = max(many, key=lambda name: many[name].value / (limits[name] or 1))
        text += " since the counters began"
        return find(
            rule, State.WARNING, text, place=place, sources=sources,
            measured=many[worst].value, threshold=limits[worst],
        )  # fmt: skip
    total = sum(each.value for each in known.values())
    text = f"{total} in {len(known)} counters"
    return find(rule, State.OK, text, place=place, sources=sources, measured=total)
