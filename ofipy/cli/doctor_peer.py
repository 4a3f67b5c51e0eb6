# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor HOST`` and ``ofipy doctor --serve``: the ladder between two hosts."""

import contextlib
import time
from typing import Any

import ofipy
from ofipy.cli.doctor import report, save_page
from ofipy.cli.ping import client_place, list_providers, server_place, tell_place, wait_for_signal
from ofipy.cli.support import CommandError, ExitCode, status_console
from ofipy.doctor.examine import examine_host
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.host import Host, read_host, read_moment
from ofipy.doctor.peer.client import Client, Refused
from ofipy.doctor.peer.service import DoctorServer
from ofipy.doctor.peer.wire import SERVICE
from ofipy.doctor.rules import RULES, find
from ofipy.host.tree import Tree
from ofipy.ping.lane import Lane, NoServer
from ofipy.ping.place import Place
from ofipy.ping.port import knock
from ofipy.ping.server import open_server
from ofipy.ping.wire import WireError

__all__ = ["examine_peer", "meet", "serve_doctor", "server_place"]

_CONNECT = 5.0


def serve_doctor(place: Place, *, provider: str | None) -> None:
    """Be the other side of measurements until Ctrl-C or SIGTERM.

    Parameters
    ----------
    place : Place
        Where; without a host see :func:`ofipy.ping.server.open_server`.
    provider : str, optional
        Only this one.
    """
    ended = wait_for_signal()
    endpoint = open_server(place, provider)
    with DoctorServer(endpoint, place.host, Tree()) as server:
        tell_place(server, place, "ofipy doctor")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve(ended.is_set)


def examine_peer(
    target: str,
    *,
    provider: str | None,
    seconds: float,
    as_json: bool,
    is_strict: bool,
    html: str | None = None,
) -> None:
    """Measure with a server, and print what both hosts have found.

    Parameters
    ----------
    target : str
        The server, as HOST or HOST:PORT.
    provider : str, optional
        Only this one.
    seconds : float
        Of each stream.
    as_json : bool
        One document in place of a table.
    is_strict : bool
        Whether a warning is a failure, too.
    html : str, optional
        A file for a page of the findings.

    Raises
    ------
    CommandError
        After printing, when a rule has failed; at once, when the server is another one's.
    """
    place = client_place(target)
    tree = Tree()
    before, began = read_moment(tree), time.monotonic()
    is_guest = read_host(tree).is_guest
    document: dict[str, Any] = {"host": tree.line("proc/sys/kernel/hostname"), "peer": str(place)}
    absent = ""
    try:
        with meet(place, provider) as lane:
            # A provider that was asked for is the only one that is wanted.
            own = None if provider is not None else list_providers()
            client = Client(lane, tree, seconds=seconds, is_guest=is_guest, providers=own)
            measure(client)
            between = client.finish()
            document |= {"peer": client.measured.peer, "measurements": client.measured.describe()}
    except NoServer as error:
        absent = str(error)
        between = [judge_absence(place, absent)]
    except ofipy.FabricError as error:
        between = [
            find("net.port", State.FAILED, str(error.message), place=f"to {place}", remedy=error.remedy)
        ]
    except (Refused, WireError) as error:
        raise CommandError(f"{place}: {error}") from error
    host = read_host(tree, before, time.monotonic() - began)
    document["counters"] = list_growth(host)
    findings = sort([*examine_host(host), *between])
    if html is not None:
        save_page(html, tree, findings, peer=str(document["peer"]))
    try:
        report(findings, as_json=as_json, is_strict=is_strict, **document)
    except CommandError as error:
        if absent:
            error.code = ExitCode.NO_PROVIDER
        raise


def meet(place: Place, provider: str | None) -> Lane:
    """A lane to a server that measures.

    If the best lane leads nowhere, such as one of RoCE behind a firewall, tcp may. The measurement tells then what is
    wrong with the other one.

    Raises
    ------
    NoServer
        When nobody answers.
    CommandError
        When the server does something else.
    """
    try:
        return try_lane(place, provider)
    except NoServer:
        if provider is not None:
            raise
        try:
            return try_lane(place, "tcp")
        except (ofipy.FabricError, NoServer):
            pass
        raise


def try_lane(place: Place, provider: str | None) -> Lane:
    """A lane over one provider."""
    lane = Lane(place, provider=provider)
    try:
        serves = lane.meet(_CONNECT)
        if SERVICE not in serves:
            raise CommandError(
                f"the server at {place} serves {', '.join(serves)}: ofipy doctor --serve is meant"
            )
    except BaseException:
        lane.close()
        raise
    return lane


def measure(client: Client) -> None:
    """Measure, telling on standard error how far it is."""
    console = status_console()
    with console.status("", refresh_per_second=2) as status:
        client.run(lambda step: status.update(f"measuring: {step}"))


def judge_absence(place: Place, said: str) -> Finding:
    """Why nobody answered, as far as a bare socket can tell."""
    reason, remedy = knock(place)
    return find("net.port", State.FAILED, f"{said}; {reason}", place=f"to {place}", remedy=remedy)


def list_growth(host: Host) -> list[dict[str, Any]]:
    """Counters that have grown meanwhile."""
    return [
        {"place": place, "name": name, "delta": grown, "unit": counter.unit, "source": counter.source}
        for place, counters in host.now.counters.items()
        for name, counter in counters.items()
        if (grown := host.growth(place, name))
    ]


def sort(findings: list[Finding]) -> list[Finding]:
    """In the order of the ladder; findings of one rule stay in theirs."""
    order = {rule: number for number, rule in enumerate(RULES)}
    return sorted(findings, key=lambda each: order.get(each.rule.id, len(order)))
