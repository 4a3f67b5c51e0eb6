# SPDX-License-Identifier: BSD-3-Clause
"""Graphs of a tree's sources: which file knows which, by includes, imports, and uses of functions and variables.

``test_layout.py`` judges them.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)

# What providers link and the core does not: it reaches the core as they do, by the headers that are installed.
LINKED = ("native/rdm",)

REQUESTS = "ofipy/requests"  # the C seam to Python

# node -> node -> the names by which the first knows the second
Graph = dict[str, dict[str, set[str]]]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One file knows another, by these names."""

    source: str
    target: str
    names: list[str]


def sources(folder: Path, *endings: str) -> list[Path]:
    """The files below a folder, without what a build or an interpreter left there."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in endings
        and not any(
            part.startswith((".", "_build")) or part == "build" for part in path.relative_to(folder).parts
        )
    )


# Circles


def circles(graph: Graph, most: int) -> list[list[str]]:
    """The largest sets of nodes that all reach each other, of more than ``most`` nodes."""
    reached = {node: reachable(graph, node) for node in graph}
    found = {
        frozenset(other for other in reached[node] if node in reached[other])
        for node in graph
        if node in reached[node]
    }
    return sorted((sorted(each) for each in found if len(each) > most), key=lambda each: (-len(each), each))


def reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), {}).keys() - seen
        seen |= new
        waiting.extend(new)
    return seen


def cuts(graph: Graph, members: list[str], most: int) -> list[Arrow]:
    """Few arrows, of few names, that open a knot: those that point upwards in the best order found of its members."""
    inside = {node: {to: names for to, names in graph[node].items() if to in members} for node in members}
    order = best_order(inside)
    place = {node: index for index, node in enumerate(order)}
    upward = [
        Arrow(node, to, sorted(names))
        for node in order
        for to, names in inside[node].items()
        if place[to] < place[node]
    ]
    for arrow in upward:
        del inside[arrow.source][arrow.target]
    # Small circles may stay: what costs most to cut is put back as long as none becomes too large.
    needed = []
    for arrow in sorted(upward, key=lambda arrow: (-len(arrow.names), arrow.source, arrow.target)):
        inside[arrow.source][arrow.target] = set(arrow.names)
        if circles(inside, most):
            del inside[arrow.source][arrow.target]
            needed.append(arrow)
    return needed[::-1]


def best_order(graph: Graph) -> list[str]:
    """The nodes from the top to the bottom: each is moved where fewest names point upwards, until none moves."""

    def surplus(node: str) -> int:
        return sum(node in targets for targets in graph.values()) - len(graph[node])

    order = sorted(graph, key=lambda node: (surplus(node), node))
    moved = True
    while moved:
        moved = False
        for node in list(order):
            here = order.index(node)
            rest = [other for other in order if other != node]
            # What points upwards with the node above all, then with it a step lower each time; only differences count.
            cost = [0]
            for other in rest:
                cost.append(cost[-1] + len(graph[node].get(other, ())) - len(graph[other].get(node, ())))
            best = min(range(len(cost)), key=lambda place: (cost[place], place))
            if cost[best] < cost[here]:
                order = [*rest[:best], node, *rest[best:]]
                moved = True
    return order


# Files of C


def graph_of_c(tree: Path, part: str) -> Graph:
    """Includes, and uses of functions, of one part: ``native``, a provider or ``ofipy/requests``.

    A header and the source of its name are one node. In ``ofipy/requests`` variables are counted as functions are.
    """
    apart = [tree / each for each in LINKED if each != part]
    files = [
        path
        for path in sources(tree / part, ".c", ".h")
        if not any(path.is_relative_to(each) for each in apart)
    ]
    nodes = nodes_of_c(tree / part, files)
    graph: Graph = {name: defaultdict(set) for name in nodes.values()}
    own, include = (
        (tree / part / "src", tree / part / "include")
        if part == "native"
        else (tree / part, tree / "native/include")
    )
    # What providers share, as meet/, is included by its folder.
    folders = [include, *folders_of_headers(own), tree / "native"]
    if part == REQUESTS:
        folders = [include, own]
    for path, node in nodes.items():
        for included in INCLUDE.findall(path.read_text()):
            header = next(
                (each / included for each in [path.parent, *folders] if each / included in nodes), path
            )
            if nodes[header] != node:
                graph[node][nodes[header]].add(included)
    symbols = symbols_of(
        [path for path in files if path.suffix == ".c"],
        [*folders, *(headers_of_python() if part == REQUESTS else [])],
        # Elsewhere variables are tables that the core passes once, which are for all files of the part.
        variables=part == REQUESTS,
    )
    defining = {name: nodes[path] for path, (defined, _) in symbols.items() for name in defined}
    for path, (_, used) in symbols.items():
        for name in used:
            if defining.get(name, nodes[path]) != nodes[path]:
                graph[nodes[path]][defining[name]].add(name)
    return graph


def nodes_of_c(folder: Path, files: list[Path]) -> dict[Path, str]:
    """The path of each file without its ending; a header that stands elsewhere joins the only source of its name."""
    names = {path: path.relative_to(folder).with_suffix("").as_posix() for path in files}
    homes: dict[str, set[str]] = defaultdict(set)
    for path in files:
        if path.suffix == ".c":
            homes[path.stem].add(names[path])
    return {
        path: next(iter(homes[path.stem])) if len(homes[path.stem]) == 1 else name
        for path, name in names.items()
    }


def headers_of_python() -> list[Path]:
    import numpy as np  # to judge one folder alone

    return [Path(sysconfig.get_path("include")), Path(np.get_include())]


def folders_of_headers(folder: Path) -> list[Path]:
    return sorted({folder, *(path.parent for path in sources(folder, ".h"))})


def symbols_of(
    files: list[Path], include: list[Path], variables: bool = False
) -> dict[Path, tuple[set[str], set[str]]]:
    """The functions, and maybe variables, that each source defines for others, and those of others that it uses."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = {path: Path(folder) / f"{index}.o" for index, path in enumerate(files)}
        compiler = [*os.environ.get("CC", "cc").split(), "-std=c11", "-D_GNU_SOURCE", "-O0", "-w", "-c"]
        compiler += ["-fno-common", "-DPy_LIMITED_API=0x030b0000", *(f"-I{each}" for each in include)]
        list(pool.map(lambda path: run(*compiler, str(path), "-o", str(objects[path])), files))
        listing = run("nm", "-A", "-P", "-g", *(str(each) for each in objects.values()))
    symbols: dict[str, tuple[set[str], set[str]]] = {f"{path}:": (set(), set()) for path in objects.values()}
    for line in listing.splitlines():
        owner, name, kind, *_ = line.split()
        if kind in ("TDBRU" if variables else "TU"):
            symbols[owner][kind == "U"].add(name)
    return {path: symbols[f"{objects[path]}:"] for path in files}


def run(*command: str) -> str:
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stderr}")
    return ran.stdout


# Modules of Python


def imports(path: Path, module: str) -> Iterator[str]:
    """What a module imports by name, wherever it does so, and for the eyes of a type checker too."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def modules(folder: Path) -> dict[str, Path]:
    """The modules of a package by their dotted names."""
    return {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources(folder, ".py")
    }


def graph_of_python(folder: Path) -> Graph:
    """Who imports whom in a package. A name that is no module of it belongs to the module before the last dot."""
    known = modules(folder)
    graph: Graph = {module: defaultdict(set) for module in known}
    for module, path in known.items():
        for name in imports(path, module):
            owner = name if name in known else name.rpartition(".")[0]
            if owner in known and owner != module:
                graph[module][owner].add(name)
    return graph


def arrows_upwards(graph: Graph, storeys: tuple[str, ...], within: str = "") -> list[Arrow]:
    """Who knows a file of a layer above its own; ``storeys`` begins with the lowest. A layer is a folder, or a file."""
    place = {
        node: storeys.index(node.removeprefix(within).split("/")[0])
        for node in graph
        if node.startswith(within)
    }
    return [
        Arrow(node, target, sorted(names))
        for node in place
        for target, names in graph[node].items()
        if place.get(target, 0) > place[node]
    ]


# Functions


def functions_of_c(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file that clang-format has laid out, and the lines from their first to their last."""
    lines = path.read_text().splitlines()
    for index, line in enumerate(lines):
        if line != "{":
            continue
        start = index
        while start and lines[start - 1] and not lines[start - 1].startswith(("#", "/*", " */", "}")):
            start -= 1
        name = re.search(r"(\w+)\(", " ".join(lines[start:index]))
        yield name[1] if name else "?", lines.index("}", index) + 1 - start


def functions_of_python(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a module, and the lines of their bodies, without their documentation."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body:
                yield node.name, (node.end_lineno or 0) - body[0].lineno + 1
