# SPDX-License-Identifier: BSD-3-Clause
"""The server and the client, each with its workers: what is between them beside the fabric, and what is printed."""

import secrets
import socket
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any

import click

from fabtests.base.channel import Channel, connect, listen, printable
from fabtests.base.program import Failed, NotRun
from fabtests.perf.kinds import Kind, find
from fabtests.perf.options import Output
from fabtests.perf.output import LiveLine, Report, banner
from fabtests.perf.plan import Plan
from fabtests.perf.result import Result, merge
from fabtests.perf.worker import measure, serve
from fabtests.perf.workers import FORK, Workers, core_of
from ofipy.cli.support import CommandError
from ofipy.pingpong.pipe import die_with_parent

__all__ = ["client", "local", "server"]

LOOPBACK = "127.0.0.1"
MEET_SECONDS = 30.0  # from the connection to the last process
TOKEN_SECONDS = 2.0
END_SECONDS = 5.0  # of a server here, whose client has ended
MOST_LINES = 1 << 20  # a client's, on our terminal


def server(listener: socket.socket, own: Plan, *, quiet: bool = False) -> None:
    """Serve one client, and print what it finds."""
    with listener, Channel(listener.accept()[0]) as control:
        control.limit = MEET_SECONDS
        plan, token = _agree(control, own)
        channels = _meet(listener, plan.processes, token)
        listener.close()
        control.limit = None
        with Workers(control) as workers:
            for channel in channels:
                core = core_of(first=False) if plan.pinned else None
                workers.start(serve, channel, plan, core=core)
            _echo(workers, plan, quiet=quiet)


def _agree(control: Channel, own: Plan) -> tuple[Plan, str]:
    """The client's plan, over our provider where we were given one, and how its processes prove that they are its."""
    message = control.receive(plan=dict, token=str)
    try:
        plan = Plan.from_dict(message["plan"])
    except ValueError as error:
        plan, problem = own, f"what the client asks for is refused: {error}"
    else:
        differs = plan.test != own.test
        problem = f"the client measures {plan.test}, the server {own.test}" if differs else ""
    if problem:
        control.send(error=problem)
        raise Failed(printable(problem))
    control.send(agreed=True)
    return replace(plan, provider=own.provider or plan.provider), message["token"]


def _meet(listener: socket.socket, count: int, token: str) -> list[Channel]:
    """The client's processes; whoever else connects is dropped."""
    end = time.monotonic() + MEET_SECONDS
    channels: list[Channel] = []
    while len(channels) < count:
        if not wait([listener], max(end - time.monotonic(), 0)):
            raise Failed(f"the client did not connect its processes within {MEET_SECONDS:g} s")
        channel = Channel(listener.accept()[0])
        channel.limit = TOKEN_SECONDS
        with suppress(Failed, NotRun):
            told = channel.receive(token=str)["token"]
            if secrets.compare_digest(_bytes(told), _bytes(token)):
                channel.limit = None
                channels.append(channel)
                continue
        channel.close()
    return channels


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _echo(workers: Workers, plan: Plan, *, quiet: bool) -> None:
    """Print what the client prints, behind a banner of our own."""
    early: list[str] | None = []
    for lines, (number, word, value) in enumerate(workers.messages()):
        if quiet:
            continue
        if word == "control":
            line = value.get("line")
            if not isinstance(line, str) or lines > MOST_LINES:
                raise Failed("the client sent what is no line of fabtests perf, or too many")
            if early is not None:
                early.append(printable(line))
            else:
                click.echo(printable(line))
        elif number == 0 and early is not None:
            click.echo("\n".join([banner(plan, find(plan.test), value), *early]))
            early = None


def local(plan: Plan, output: Output) -> None:
    """Both sides here."""
    listener = listen(0, LOOPBACK)
    process = FORK.Process(target=_serve_here, args=(listener, plan))
    process.start()
    port = listener.getsockname()[1]
    listener.close()
    try:
        client(LOOPBACK, port, plan, output)
    except BaseException:
        process.join(END_SECONDS)  # it sees our connection end, and cleans up behind its workers
        process.kill()
        raise
    finally:
        process.join()


def _serve_here(listener: socket.socket, plan: Plan) -> None:
    die_with_parent()
    # What goes wrong here the client is told, and tells.
    with suppress(CommandError, Failed, KeyboardInterrupt):
        server(listener, plan, quiet=True)


def client(host: str, port: int, plan: Plan, output: Output) -> None:
    """Measure and print."""
    kind = find(plan.test)
    token = secrets.token_hex(16)
    with Channel(connect(host, port)) as control:
        control.limit = MEET_SECONDS
        control.send(plan=plan.as_dict(), token=token)
        control.receive(agreed=bool)
        control.limit = None
        barrier = FORK.Barrier(plan.processes)
        with Workers(control) as workers:
            for _ in range(plan.processes):
                channel = Channel(connect(host, port))
                channel.send(token=token)
                core = core_of(first=True) if plan.pinned else None
                workers.start(_measure, channel, plan, barrier, core=core)
            _report(workers, control, plan, kind, output)


def _measure(channel: Channel, plan: Plan, barrier: Any, tell: Any) -> None:
    measure(channel, plan, tell, barrier.wait)


def _report(workers: Workers, control: Channel, plan: Plan, kind: Kind, output: Output) -> None:
    def write(line: str) -> None:
        click.echo(line)
        control.send(line=line)

    report = Report(plan, kind, output, write)
    live = LiveLine(report.describe)
    about: dict[str, Any] = {}
    parts: list[list[Result]] = [[] for _ in range(plan.processes)]
    for number, word, value in workers.messages():
        if word == "about" and not about:
            about = value
            if output.bare is None:
                click.echo(banner(plan, kind, about))
                write(report.header())
        elif word == "live":
            live.show(number, *value)
        elif word == "result":
            parts[number].append(value)
            if all(parts):
                live.clear()
                each = [found.pop(0) for found in parts]
                report.add(merge(each), each)
    if output.bare is None:
        click.echo("-" * 87)
    report.write_json(about)
