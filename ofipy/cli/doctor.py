# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor``: what on this host, or on a recorded one, helps or hinders, a line each."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ofipy.cli.host import open_tree
from ofipy.cli.support import CommandError, data_console, print_json, status_console
from ofipy.doctor.document import describe
from ofipy.doctor.examine import examine_alone, examine_process
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.look import look
from ofipy.doctor.machine import read_all
from ofipy.doctor.page import write_page
from ofipy.doctor.processes import check_processes, read_processes
from ofipy.doctor.record import RecordingTree
from ofipy.doctor.text import print_findings
from ofipy.host.tree import Tree
from ofipy.statistics import Reader
from ofipy.topology.dot import NoGraphviz, draw, write_dot
from ofipy.topology.graph import NodeKind
from ofipy.topology.judge import find_bottlenecks
from ofipy.topology.machine import read_machine

__all__ = ["name_host", "record_host", "report", "save_page", "show_checks"]


def show_checks(*, root: str | None, as_json: bool, is_strict: bool, html: str | None = None) -> None:
    """Print every finding of a host.

    Parameters
    ----------
    root : str, optional
        A recorded tree; None: this host, and what this process could do on it.
    as_json : bool
        One document in place of a table.
    is_strict : bool
        Whether a warning is a failure, too.
    html : str, optional
        A file for a page of the findings.

    Raises
    ------
    CommandError
        After printing, when a rule has failed.
    """
    tree = open_tree(root)
    if root is not None:
        findings = examine_alone(look(tree))
    else:
        findings = examine_process(tree)
        with Reader() as reader:
            before = read_processes(reader, tree)
            findings += examine_alone(look(tree))
            findings += check_processes(before, read_processes(reader, tree))
    if html is not None:
        save_page(html, tree, findings)
    report(findings, as_json=as_json, is_strict=is_strict, host=name_host(tree))


def record_host(file: str) -> None:
    """Write what the rules, and the commands that look at a host, read of this one into a new archive.

    Raises
    ------
    CommandError
        When it cannot be written.
    """
    tree = RecordingTree()
    host = look(tree)
    findings = examine_alone(host)
    read_machine(tree)
    read_all(tree)
    try:
        tree.write(file, host.seconds)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from error
    bad = sum(each.is_bad for each in findings)
    size = os.path.getsize(file)
    status_console().print(
        f"{file}: {size} bytes; {len(findings)} findings, {bad} to look at (--root {file})"
    )


def save_page(file: str, tree: Tree, findings: Sequence[Finding], *, peer: str | None = None) -> None:
    """Write findings into an HTML file, with pictures of the ladder and, where Graphviz is installed, of the host.

    Raises
    ------
    CommandError
        When it cannot be written.
    """
    graph = read_machine(tree)
    (host,) = graph.of_kind(NodeKind.HOST)
    # A place begins with the name of a device, a port or an interface.
    marked = {f"{host.id}/{each.place.partition(' ')[0]}" for each in findings if each.is_bad and each.place}
    picture = None
    with contextlib.suppress(NoGraphviz):
        picture = draw(write_dot(graph, find_bottlenecks(graph), marked))
    page = write_page(findings, host=name_host(tree), peer=peer, graph=picture)
    try:
        Path(file).write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    status_console().print(f"{file}: {len(page)} bytes")


def name_host(tree: Tree) -> str | None:
    """What a host calls itself."""
    return tree.line("proc/sys/kernel/hostname")


def report(findings: Sequence[Finding], *, as_json: bool, is_strict: bool = False, **more: Any) -> None:
    """Print findings, and end as they demand.

    Parameters
    ----------
    findings : sequence of Finding
        What was found.
    as_json : bool
        One document in place of a table.
    is_strict : bool
        Whether a warning is a failure, too.
    **more
        What else belongs into the document.

    Raises
    ------
    CommandError
        After printing, when a rule has failed.
    """
    if as_json:
        print_json(describe(findings, **more))
    else:
        print_findings(data_console(), findings)
    failed, warned = (name_places(findings, state) for state in (State.FAILED, State.WARNING))
    if is_strict:
        failed = list(dict.fromkeys([*failed, *warned]))
    elif warned:
        status_console().print(f"to look at: {', '.join(warned)}")
    if failed:
        raise CommandError(f"to be mended: {', '.join(failed)}")


def name_places(findings: Sequence[Finding], state: State) -> list[str]:
    """Checks that are in a state, with their places, each once."""
    return list(
        dict.fromkeys(f"{each.rule.name} {each.place}".strip() for each in findings if each.state is state)
    )
