# SPDX-License-Identifier: BSD-3-Clause
"""Rules on what was measured between two hosts.

Ratios are judged on hardware only. How fast a device of software, a virtual machine or shared memory can be, depends
on what else runs there, so their figures are shown and not judged.
"""

from collections.abc import Iterator
from dataclasses import replace

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.peer.measured import Flow, Measured
from ofipy.doctor.rules import LEAST_SEGMENTS, RULES, SOFTWARE_RETRANSMISSIONS, TCP_REPEATED, find, judge

__all__ = ["judge_measured"]

_SOURCE = "measured between both hosts"
_TCP_INFO = "TCP_INFO of the sender's socket"


def judge_measured(measured: Measured) -> list[Finding]:
    """All of them, in the order of the ladder."""
    rules = (
        check_clock,
        check_reach,
        check_mtu,
        check_raw,
        check_provider,
        check_application,
        check_repeated,
        check_marks,
        check_way,
    )
    return [finding for check in rules for finding in check(measured)]


def check_clock(measured: Measured) -> Iterator[Finding]:
    """Whether both clocks agree, as far as a round trip can tell."""
    if measured.clock is not None:
        ahead, error = measured.clock
        text = f"{measured.peer} is {abs(ahead) * 1e3:.1f} ms {'ahead' if ahead > 0 else 'behind'}"
        place = f"to {measured.peer}"
        yield judge(
            "host.clock",
            abs(ahead),
            text,
            place=place,
            sources=(_SOURCE,),
            warning=(RULES["host.clock"].warning or 0) + error,
        )


def check_reach(measured: Measured) -> Iterator[Finding]:
    """Whether each provider that both hosts have leads there."""
    place = f"to {measured.peer}"
    if measured.lost:
        yield find("net.port", State.FAILED, measured.lost, place=place, sources=(_SOURCE,))
    for provider, reason in measured.unreached.items():
        remedy = None
        if provider == "verbs":
            remedy = "RoCE needs UDP port 4791 open in every firewall between both hosts; InfiniBand: ibping, opensm"
        text = f"both hosts have {provider}, but it does not lead there: {reason}"
        yield find("net.port", State.FAILED, text, place=place, sources=(_SOURCE,), remedy=remedy)
    trips = measured.round_trips
    if trips is not None and trips.average_usec is not None:
        text = f"{measured.way}: {trips.min_usec:.1f} µs there and back, on average {trips.average_usec:.1f}"
        yield find("net.port", State.OK, text, place=place, sources=(_SOURCE,))


def check_mtu(measured: Measured) -> Iterator[Finding]:
    """Whether both interfaces have one MTU, and packets of that size arrive."""
    own, peer, probes = measured.path, measured.peer_path, measured.probes
    if own is None or measured.way == "shm":
        return
    place, rule = f"to {measured.peer}", "net.mtu"
    if peer is not None and peer.mtu != own.mtu:
        text = f"{own.interface or 'here'} has {own.mtu} bytes, {peer.interface or 'it'} on {measured.peer} {peer.mtu}"
        least, most = sorted((own.mtu, peer.mtu))
        yield find(
            rule,
            State.FAILED,
            text,
            place=place,
            sources=("IP_MTU of both sockets",),
            measured=least,
            threshold=most,
        )
        return
    if probes is None:
        return
    there, back = max(probes.arrived, default=0), max(probes.returned, default=0)
    sources = ("datagrams that may not be fragmented",)
    if not there or not back:
        direction = "there" if not there else "back"
        text = f"no datagram went {direction}: a firewall may refuse UDP"
        yield find(rule, State.UNJUDGED, text, place=place, sources=sources)
        return
    least = min(there, back)
    text = f"packets of {least} bytes go there and back; {own.interface or 'the interface'} has {own.mtu}"
    yield judge(rule, least, text, place=place, sources=sources, warning=max(probes.sizes))


def check_raw(measured: Measured) -> Iterator[Finding]:
    """What a bare connection moves, beside the rate of the slower link."""
    rates = [each.megabits for each in (measured.path, measured.peer_path) if each is not None]
    known = [each for each in rates if each is not None]
    rate = min(known) * 1e6 / 8 if len(known) == len(rates) == 2 else None
    for direction, flow in measured.raw.items():
        place = f"{direction} {measured.peer}"
        if flow.error:
            yield find("ladder.raw", State.FAILED, flow.error, place=place, sources=(_SOURCE,))
        elif flow.rate is not None:
            text = f"{say_rate(flow)} over a {name_raw(measured)}"
            if rate is None:
                text += "; the rate of the link is not known"
                yield find("ladder.raw", State.UNJUDGED, text, place=place, sources=(_SOURCE,))
            else:
                text += f", of {rate / 1e6:.0f} MB/s"
                yield judge("ladder.raw", flow.rate / rate, text, place=place, sources=(_SOURCE,))


def check_provider(measured: Measured) -> Iterator[Finding]:
    """What the provider moves in messages of 1 MiB, beside the bare connection."""
    for direction, flow in measured.provider.items():
        place = f"{direction} {measured.peer}"
        raw = measured.raw.get(direction, Flow()).rate
        if flow.error:
            yield find("ladder.provider", State.FAILED, flow.error, place=place, sources=(_SOURCE,))
        elif flow.rate is not None:
            text = f"{say_rate(flow)} over {measured.way} in messages of 1 MiB"
            if raw is None:
                yield find("ladder.provider", State.UNJUDGED, text, place=place, sources=(_SOURCE,))
                continue
            text += f", {flow.rate / raw:.2f} of the {name_raw(measured)}"
            judged = judge("ladder.provider", flow.rate / raw, text, place=place, sources=(_SOURCE,))
            yield judged if measured.is_hardware else unjudge(judged)


def check_application(measured: Measured) -> Iterator[Finding]:
    """What programs send while they have more to send, beside what the provider moves in one direction."""
    programs, flow = measured.programs, measured.provider.get("to", Flow())
    if programs.rate is None or flow.rate is None:
        return
    ratio = programs.rate / flow.rate
    text = f"{', '.join(programs.names)}: {programs.rate / 1e6:.0f} MB/s while operations wait"
    text += f", {ratio:.2f} of what {measured.way} moves beside it"
    judged = judge(
        "ladder.application", ratio, text, place=f"to {measured.peer}", sources=("ofipy-stats", _SOURCE)
    )
    yield judged if measured.is_hardware else unjudge(judged)


def unjudge(finding: Finding) -> Finding:
    """The figure of a finding alone."""
    return replace(finding, state=State.UNJUDGED, threshold=None, remedy="")


def check_repeated(measured: Measured) -> Iterator[Finding]:
    """How much of the bare stream was lost on the way. Within one host nothing is, but TCP may suspect it."""
    if measured.path is not None and measured.path.interface == "lo":
        return
    warning, failure = TCP_REPEATED if measured.is_hardware else SOFTWARE_RETRANSMISSIONS
    for direction, flow in measured.raw.items():
        if flow.segments:
            share = flow.repeated / flow.segments if flow.repeated >= LEAST_SEGMENTS else 0.0
            text = f"{flow.repeated} of {flow.segments} segments were sent again"
            yield judge(
                "port.retransmit", share, text, place=f"{direction} {measured.peer}", sources=(_TCP_INFO,),
                warning=warning, failure=failure,
            )  # fmt: skip


def check_marks(measured: Measured) -> Iterator[Finding]:
    """How many packets of the bare stream met a queue that marks."""
    for direction, flow in measured.raw.items():
        if flow.delivered:
            text = f"{flow.marked} of {flow.delivered} packets came with a mark of congestion"
            share = flow.marked / flow.delivered
            yield judge(
                "port.congestion", share, text, place=f"{direction} {measured.peer}", sources=(_TCP_INFO,)
            )


def check_way(measured: Measured) -> Iterator[Finding]:
    """Whether messages take the slower of two networks that both hosts have."""
    both = [each for each in measured.own_providers if each in measured.peer_providers]
    if measured.way == "tcp" and "verbs" in both:
        text = "messages go over tcp, though both hosts have verbs"
        yield find("app.way", State.WARNING, text, place=f"to {measured.peer}", sources=("ep.way()",))


def name_raw(measured: Measured) -> str:
    """What the provider is compared with: something of the same network."""
    return "bare queue pair" if measured.raw_is_pair else "bare socket"


def say_rate(flow: Flow) -> str:
    """A rate for people."""
    return f"{(flow.rate or 0) / 1e6:.0f} MB/s"
