# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy topology``: this host, or hosts and the fabric between them, as trees, a document, or a picture."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ofipy.cli.host import open_tree
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json, status_console
from ofipy.host.tree import Tree
from ofipy.topology.dot import NoGraphviz, draw, write_dot
from ofipy.topology.fabric import read_names
from ofipy.topology.files import UnknownFile, merge_files
from ofipy.topology.graph import Graph, NodeKind, describe
from ofipy.topology.judge import find_bottlenecks, mark_degraded
from ofipy.topology.machine import read_machine
from ofipy.topology.near import rank_nics
from ofipy.topology.text import print_graph

__all__ = ["show_topology"]

_MOST = 64 << 20  # characters of a file; a fabric of 10,000 ports has 2 MiB


def show_topology(
    files: Sequence[str],
    *,
    root: str | None,
    names: str | None,
    core: int | None,
    as_json: bool,
    dot: str | None,
    svg: str | None,
) -> None:
    """Print or write the graph.

    Parameters
    ----------
    files : sequence of str
        Documents of hosts, outputs of ibnetdiscover; ``-`` is standard input. None: the host itself.
    root : str, optional
        A recorded tree in place of this host.
    names : str, optional
        A node-name-map of infiniband-diags.
    core : int, optional
        Print the NICs by their distance from this processor.
    as_json : bool
        One document in place of trees.
    dot, svg : str, optional
        Files for the graph in Graphviz's language, and for its picture.

    Raises
    ------
    CommandError
        When a file cannot be read or written, or there is no Graphviz.
    """
    try:
        graph = build(files, root, names)
    except UnknownFile as error:
        raise CommandError(str(error)) from error
    mark_degraded(graph)
    bottlenecks = find_bottlenecks(graph)
    if core is not None:
        show_nearest(graph, core)
        return
    if dot is not None or svg is not None:
        text = write_dot(graph, bottlenecks)
        try:
            write(dot, text)
            write(svg, draw(text) if svg is not None else "")
        except NoGraphviz as error:
            raise CommandError(str(error), code=ExitCode.NO_PROVIDER) from error
    elif as_json:
        print_json(describe(graph, bottlenecks))
    else:
        print_graph(data_console(), graph, bottlenecks)


def build(files: Sequence[str], root: str | None, names: str | None) -> Graph:
    """The graph of all files, or of a host."""
    if not files:
        return read_machine(open_tree(root) if root is not None else Tree())
    known = read_names(read(names)) if names is not None else {}
    return merge_files([(file, read(file)) for file in files], known)


def read(file: str) -> str:
    """The contents of a file, or of standard input."""
    try:
        if file == "-":
            return sys.stdin.read(_MOST)
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error


def write(file: str | None, text: str) -> None:
    """Write a file, ``-`` for standard output."""
    if file == "-":
        click.echo(text, nl=False)
    elif file is not None:
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        status_console().print(f"{file}: {len(text)} bytes")


def show_nearest(graph: Graph, core: int) -> None:
    """A line for each NIC, the nearest first."""
    if len(graph.of_kind(NodeKind.HOST)) != 1:
        raise click.UsageError("--near is for one host: give its document alone, or no file")
    ranked = rank_nics(graph, core)
    if not ranked:
        raise CommandError("this host has no NIC", code=ExitCode.NO_PROVIDER)
    for distance, nic in ranked:
        where = (
            "same NUMA node" if distance == 10 else f"distance {distance}" if distance < 255 else "not known"
        )
        data_console().print(f"{nic.name}  {where}  {nic.detail}")
