# SPDX-License-Identifier: BSD-3-Clause
"""Rules on what a port had to repeat, to slow down for, and to wait for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ofipy.doctor.finding import Finding
from ofipy.doctor.host import NETWORK, Host
from ofipy.doctor.integrity import places
from ofipy.doctor.rules import (
    LEAST_PACKETS,
    LEAST_RETRANSMISSIONS,
    LEAST_SEGMENTS,
    SOFTWARE_RETRANSMISSIONS,
    SOFTWARE_RETRIES,
    TCP_REPEATED,
    XMIT_WAIT,
    judge,
    soften,
)
from ofipy.host.meaning import RETRIES

__all__ = [
    "Share",
    "check_marks",
    "check_pauses",
    "check_retransmissions",
    "check_tcp",
    "judge_retransmissions",
]

# A receiver that is not ready loses nothing, so its refusals are no loss.
_LOST = tuple(sorted(name for name in RETRIES if "rnr" not in name))
_SENT = ("port_xmit_packets", "tx_pkts", "sent_pkts", "ip4OutPkts", "TxPkt")
_RECEIVED = ("port_rcv_packets", "rx_pkts", "rcvd_pkts", "ip4InPkts", "RxPkt")
_MARKS = {
    "np_ecn_marked_roce_packets": _RECEIVED,
    "np_cnp_sent": _RECEIVED,
    "rp_cnp_handled": _SENT,
    "RxECNMrkd": _RECEIVED,
    "cnpSent": _RECEIVED,
    "cnpHandled": _SENT,
    "RcvBECN": _RECEIVED,
}
_IP = ("InNoECTPkts", "InECT1Pkts", "InECT0Pkts", "InCEPkts")
_PAUSED = re.compile(r"[rt]x_(prio[0-7]|global)_pause_duration")  # microseconds
_GUESSES = ("TCPLossProbes", "TCPDSACKRecv")
_STANDING = "since the counters began"


@dataclass(frozen=True, slots=True)
class Share:
    """Some of many, in an interval or since the counters began."""

    part: int
    whole: int
    is_new: bool
    """Both are of the interval between two moments."""
    sources: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Part of the whole; without a whole, all of it."""
        return min(self.part / self.whole, 1.0) if self.whole else float(self.part > 0)


def read_share(host: Host, place: str, parts: tuple[str, ...], wholes: tuple[str, ...]) -> Share | None:
    """The share of an interval in which enough was counted, or else since the counters began."""
    counters = host.counters(place)
    some, all_of = [n for n in parts if n in counters], [n for n in wholes if n in counters]
    if not some or not all_of:
        return None
    sources = tuple(counters[name].source for name in (*some, *all_of))
    new = (sum(host.growth(place, n) or 0 for n in some), sum(host.growth(place, n) or 0 for n in all_of))
    if new[1] >= LEAST_PACKETS or new[0] >= LEAST_PACKETS:
        return Share(*new, True, sources)
    return Share(sum(counters[n].value for n in some), sum(counters[n].value for n in all_of), False, sources)


def first_of(host: Host, place: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The first of these counters that a place has: drivers name the same differently."""
    return next(((name,) for name in names if name in host.counters(place)), ())


def check_retransmissions(host: Host) -> Iterator[Finding]:
    """How much of what ports sent they had to send again."""
    for device, _, place in host.ports():
        share = read_share(host, place, _LOST, first_of(host, place, _SENT))
        if share is not None:
            yield judge_retransmissions(place, share, is_software=device.bus is None)


def check_tcp(host: Host, *, is_measured: bool = False) -> Iterator[Finding]:
    """How much of what TCP sent between both moments was lost, over all connections of the host.

    TCP sends some segments again in case they were lost, and its peers report those that had arrived after all. Neither
    kind is a loss. Unless the connections are those of a measurement, it is at most a warning: some may lead far away.
    """
    repeated, sent = host.growth(NETWORK, "RetransSegs"), host.growth(NETWORK, "OutSegs")
    if repeated is None or sent is None:
        return
    lost = max(0, repeated - sum(host.growth(NETWORK, name) or 0 for name in _GUESSES))
    share = min(lost / sent, 1.0) if sent and lost >= LEAST_SEGMENTS else 0.0
    text = f"{lost} of {sent} segments were lost and sent again in {host.seconds:.1f} s"
    warning, failure = SOFTWARE_RETRANSMISSIONS if host.is_network_software else TCP_REPEATED
    remedy = "ofipy doctor HOST to each host of the job says which way loses; ofipy top shows who sends where"
    counters = host.counters(NETWORK)
    names = ("RetransSegs", *(name for name in _GUESSES if name in counters))
    yield judge(
        "port.retransmit", share, text, place=NETWORK,
        sources=tuple(dict.fromkeys(counters[name].source for name in names)),
        warning=warning, failure=failure if is_measured else float("inf"), remedy=remedy,
    )  # fmt: skip


def judge_retransmissions(place: str, share: Share, *, is_software: bool = False) -> Finding:
    """A few of them are no pattern. A device of software retries when its processor is busy elsewhere, too."""
    ratio = share.ratio if share.part >= LEAST_RETRANSMISSIONS else 0.0
    text = f"{share.part} retries for {share.whole} packets sent"
    warning, failure = SOFTWARE_RETRIES if is_software else (None, None)
    finding = judge(
        "port.retransmit", ratio, text, place=place, sources=share.sources, warning=warning, failure=failure
    )
    return finding if share.is_new else soften(finding, _STANDING)


def check_marks(host: Host) -> Iterator[Finding]:
    """How many packets carried a mark of congestion, or were notifications of one."""
    for _, _, place in host.ports():
        found = [
            (name, share)
            for name, wholes in _MARKS.items()
            if (share := read_share(host, place, (name,), first_of(host, place, wholes))) is not None
        ]
        if found:
            yield judge_marks(place, *max(found, key=lambda each: (weight(each[1]), each[1].is_new)))
    marked = read_share(host, NETWORK, ("InCEPkts",), _IP)
    if marked is not None:
        yield judge_marks(NETWORK, "InCEPkts", marked)


def weight(share: Share) -> float:
    """The ratio, 0 where there are too few packets for one."""
    return share.ratio if share.whole >= LEAST_PACKETS else 0.0


def judge_marks(place: str, name: str, share: Share) -> Finding:
    """A warning above 1 %."""
    text = f"{name}: {share.part} of {share.whole} packets"
    finding = judge("port.congestion", weight(share), text, place=place, sources=share.sources)
    return finding if share.is_new else soften(finding, _STANDING)


def check_pauses(host: Host) -> Iterator[Finding]:
    """How long a port was not allowed to send, or kept others from sending."""
    for place in places(host):
        counters = host.counters(place)
        share = read_share(host, place, ("port_xmit_wait",), ("port_xmit_data",))
        if share is not None:
            # A tick and a word of four bytes are of one length on the wire, so their sum is the time with work.
            words = share.whole // 4
            busy = Share(share.part, share.part + words, share.is_new, share.sources)
            text = f"waited {busy.part} ticks for credits, sent {words} words"
            ratio = busy.ratio if busy.whole >= LEAST_PACKETS else 0.0
            finding = judge(
                "port.pause", ratio, text, place=place, sources=busy.sources,
                warning=XMIT_WAIT[0], failure=XMIT_WAIT[1],
            )  # fmt: skip
            yield finding if busy.is_new else soften(finding, _STANDING)
        paused = {name: host.growth(place, name) for name in counters if _PAUSED.fullmatch(name)}
        known = {name: grown for name, grown in paused.items() if grown is not None}
        if known and host.seconds > 0:
            worst = max(known, key=lambda name: known[name])
            ratio = known[worst] / 1e6 / host.seconds
            text = f"{worst}: {known[worst] / 1e3:g} ms in {host.seconds:.1f} s"
            yield judge("port.pause", ratio, text, place=place, sources=(counters[worst].source,))
