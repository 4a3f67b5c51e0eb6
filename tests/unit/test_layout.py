# SPDX-License-Identifier: BSD-3-Clause
"""The judge of the layout: storeys that know only what lies below them, in files that one can read.

A file knows another when it includes it, imports it, or calls a function that the other defines. Files that know each
other in a circle can only be read, tested and changed together: a *knot*. ``python tests/unit/test_layout.py FOLDER``
judges any tree of ofipy's sources, prints its knots with the arrows to cut, and exits with 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES = 500  # of a file, at most
CIRCLE = 3  # files of C, at most: a type, what makes it and what uses it may belong together
FOLDERS = ("native", "providers", "ofipy", "fabtests", "tests")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)

# Folders of native/src, from the bottom; docs/explanation/layers.md says what lives in each.
STOREYS = (
    *("base", "atomic", "object", "match", "progress", "completion", "memory", "peer"),
    *("operation", "request", "provider", "hook", "open"),
)

# What providers link and the core does not: it reaches the core as they do, by the headers that are installed.
LINKED = ("native/rdm",)

# node -> node -> the names by which the first knows the second
Graph = dict[str, dict[str, set[str]]]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One file knows another, by these names."""

    source: str
    target: str
    names: list[str]


@dataclass(frozen=True, slots=True)
class Knot:
    """Files of one graph that all know each other by some way round."""

    graph: str
    files: int  # in the graph
    members: list[str]
    cuts: list[Arrow]  # a small set of arrows without which no circle is too large


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that is wrong with a tree."""

    knots: list[Knot]
    long: dict[str, int]  # file -> lines
    upwards: list[Arrow]

    def __bool__(self) -> bool:
        return bool(self.knots or self.long or self.upwards)


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
    """Includes and calls of one part, ``native`` or a provider; a header and the source of its name are one node."""
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
    for path, node in nodes.items():
        for included in INCLUDE.findall(path.read_text()):
            header = next(
                (each / included for each in [path.parent, *folders] if each / included in nodes), path
            )
            if nodes[header] != node:
                graph[node][nodes[header]].add(included)
    symbols = symbols_of([path for path in files if path.suffix == ".c"], folders)
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


def folders_of_headers(folder: Path) -> list[Path]:
    return sorted({folder, *(path.parent for path in sources(folder, ".h"))})


def symbols_of(files: list[Path], include: list[Path]) -> dict[Path, tuple[set[str], set[str]]]:
    """The functions that each source defines for others, and what it wants from others, as its object says."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = {path: Path(folder) / f"{index}.o" for index, path in enumerate(files)}
        compiler = [*os.environ.get("CC", "cc").split(), "-std=c11", "-D_GNU_SOURCE", "-O0", "-w", "-c"]
        compiler += [f"-I{each}" for each in include]
        list(pool.map(lambda path: run(*compiler, str(path), "-o", str(objects[path])), files))
        listing = run("nm", "-A", "-P", "-g", *(str(each) for each in objects.values()))
    symbols: dict[str, tuple[set[str], set[str]]] = {f"{path}:": (set(), set()) for path in objects.values()}
    for line in listing.splitlines():
        owner, name, kind, *_ = line.split()
        if kind in "TU":
            symbols[owner]["TU".index(kind)].add(name)
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


def arrows_upwards(graph: Graph, storeys: tuple[str, ...]) -> list[Arrow]:
    """Who knows a file of a folder of ``src`` above its own; ``storeys`` begins with the lowest."""
    place = {node: storeys.index(node.split("/")[1]) for node in graph if node.startswith("src/")}
    return [
        Arrow(node, target, sorted(names))
        for node in place
        for target, names in graph[node].items()
        if place.get(target, 0) > place[node]
    ]


# The verdict


def parts_of_c(tree: Path) -> list[str]:
    """The core, what providers link, and each provider that has sources of C: graphs of their own."""
    found = {path.parent.relative_to(tree).parts[:2] for path in sources(tree / "providers", ".c")}
    linked = (each for each in LINKED if (tree / each).is_dir())
    return ["native", *linked, *("/".join(each) for each in sorted(found))]


def knots(tree: Path, part: str) -> list[Knot]:
    graph, most = (graph_of_python(tree / part), 1) if part == "ofipy" else (graph_of_c(tree, part), CIRCLE)
    return knots_in(graph, part, most)


def knots_in(graph: Graph, part: str, most: int) -> list[Knot]:
    return [Knot(part, len(graph), each, cuts(graph, each, most)) for each in circles(graph, most)]


def long_files(tree: Path) -> dict[str, int]:
    lines = {
        path.relative_to(tree).as_posix(): len(path.read_text().splitlines())
        for folder in FOLDERS
        for path in sources(tree / folder, ".c", ".h", ".py")
    }
    return {path: count for path, count in lines.items() if count > LINES}


def upwards(tree: Path) -> list[Arrow]:
    """Imports of the benchmarks by what they measure."""
    return [
        Arrow(path.relative_to(tree).as_posix(), "fabtests", found)
        for module, path in modules(tree / "ofipy").items()
        if (found := sorted(name for name in imports(path, module) if name.split(".")[0] == "fabtests"))
    ]


def judge(tree: Path) -> Verdict:
    parts = [*parts_of_c(tree), "ofipy"]
    return Verdict([knot for part in parts for knot in knots(tree, part)], long_files(tree), upwards(tree))


def report(verdict: Verdict) -> Iterator[str]:
    """For people who have to cut."""
    for knot in verdict.knots:
        yield f"{knot.graph}: {len(knot.members)} of {knot.files} files in one knot: {' '.join(knot.members)}"
        yield f"  {len(knot.cuts)} arrows close it; without them it is open:"
        yield from (f"    {line}" for line in arrows(knot.cuts))
    for path, lines in verdict.long.items():
        yield f"{path}: {lines} lines, of {LINES} at most"
    for line in arrows(verdict.upwards):
        yield f"upwards: {line}"


def arrows(found: Iterable[Arrow]) -> Iterator[str]:
    for arrow in found:
        more = f" and {len(arrow.names) - 6} more" if len(arrow.names) > 6 else ""
        yield f"{arrow.source} -> {arrow.target}: {', '.join(arrow.names[:6])}{more}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge the layout of a tree of ofipy's sources.")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--json", action="store_true", help="print everything for programs")
    options = parser.parse_args()
    verdict = judge(options.folder.resolve())
    if options.json:
        print(json.dumps({"schema": 1, **asdict(verdict)}, indent=1))
    else:
        print(*report(verdict) if verdict else ["no finding"], sep="\n")
    return 1 if verdict else 0


# The judge before its own court


def write(tree: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


def ring(count: int) -> dict[str, str]:
    """Sources each of which calls the next, and the last one the first."""
    return {
        f"native/src/part{i}.c": f"void f{(i + 1) % count}(void);\nvoid f{i}(void)\n{{ f{(i + 1) % count}(); }}\n"
        for i in range(count)
    }


def test_calls_in_a_circle_of_more_than_three_files_are_a_knot(tmp_path: Path) -> None:
    (knot,) = knots(write(tmp_path, ring(4)), "native")
    assert knot.members == ["src/part0", "src/part1", "src/part2", "src/part3"]
    assert [len(arrow.names) for arrow in knot.cuts] == [1]
    heading = "native: 4 of 4 files in one knot: src/part0 src/part1 src/part2 src/part3"
    assert next(report(Verdict([knot], {}, []))) == heading


def test_calls_in_a_circle_of_three_files_are_none(tmp_path: Path) -> None:
    assert not knots(write(tmp_path, ring(3)), "native")


def test_a_header_and_the_source_of_its_name_are_one_node(tmp_path: Path) -> None:
    files = {f"native/src/part{i}.c": f'#include "part{i + 1}.h"\n' for i in range(3)}
    files |= {f"native/src/part{i}.h": "" for i in range(1, 4)}
    write(tmp_path, {**files, "native/include/ofipy/part0.h": ""})
    assert not knots(tmp_path, "native")
    # Closed by an include alone, of a header that stands in another folder than its source.
    write(tmp_path, {"native/src/part3.h": '#include "ofipy/part0.h"\n'})
    (knot,) = knots(tmp_path, "native")
    assert knot.members == ["src/part0", "src/part1", "src/part2", "src/part3"]


def test_arrows_between_folders_that_point_upwards_are_found(tmp_path: Path) -> None:
    files = {
        "low/a.c": '#include "high/b.h"\n',
        "low/b.h": "",
        "high/a.c": '#include "low/b.h"\n',
        "high/b.h": "",
    }
    write(tmp_path, {f"native/src/{name}": text for name, text in files.items()})
    graph = graph_of_c(tmp_path, "native")
    assert arrows_upwards(graph, ("low", "high")) == [Arrow("src/low/a", "src/high/b", ["high/b.h"])]


def test_a_source_that_does_not_compile_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"native/src/broken\.c"):
        knots(write(tmp_path, {"native/src/broken.c": "int\n"}), "native")


def test_imports_in_a_circle_are_a_knot_wherever_they_stand(tmp_path: Path) -> None:
    for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .two import Two\n"
    files = {"__init__.py": "from .one import One\n", "one.py": for_types}
    files["two.py"] = "def f():\n    from ofipy import one\n"
    (knot,) = knots(write(tmp_path, {f"ofipy/{name}": text for name, text in files.items()}), "ofipy")
    assert (knot.members, len(knot.cuts)) == (["ofipy.one", "ofipy.two"], 1)


def test_modules_that_import_downwards_are_no_knot(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from .parts import one\n",
        "parts/__init__.py": "",
        "low.py": "import ofipy_other\n",
    }
    files["parts/one.py"] = "from .. import low\nfrom ..low import name\n"
    assert not knots(write(tmp_path, {f"ofipy/{name}": text for name, text in files.items()}), "ofipy")


def test_few_cheap_arrows_open_a_knot() -> None:
    # Two circles through one arrow: b -> c; opposite to it in each stands a dearer one.
    graph: Graph = {node: {} for node in "abcde"}
    for source, target, names in (
        ("a", "b", "xy"),
        ("b", "c", "x"),
        ("c", "a", "xy"),
        ("c", "d", "xy"),
        ("d", "b", "xy"),
    ):
        graph[source][target] = set(names)
    assert circles(graph, CIRCLE) == [["a", "b", "c", "d"]]
    assert cuts(graph, ["a", "b", "c", "d"], 1) == [Arrow("b", "c", ["x"])]


def test_long_files_and_arrows_upwards_are_found(tmp_path: Path) -> None:
    files = {"tests/long.py": "\n" * 501, "tests/build/made.py": "\n" * 501, "tests/short.py": "\n" * 500}
    write(tmp_path, {**files, "ofipy/cli/speed.py": "def f():\n    from fabtests.base import run\n"})
    assert long_files(tmp_path) == {"tests/long.py": 501}
    assert upwards(tmp_path) == [Arrow("ofipy/cli/speed.py", "fabtests", ["fabtests.base.run"])]


def test_the_program_tells_its_verdict(tmp_path: Path) -> None:
    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-P", __file__, *arguments], capture_output=True, text=True)

    ran = program(str(write(tmp_path, ring(3))))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "no finding\n", "")
    ran = program(str(write(tmp_path, ring(4))), "--json")
    assert (ran.returncode, ran.stderr) == (1, "")
    (knot,) = json.loads(ran.stdout)["knots"]
    assert len(knot["members"]) == 4


# Our own tree


own_graph_of_c = cache(partial(graph_of_c, ROOT))  # compiled once for all tests


def complain(verdict: Verdict) -> None:
    assert not verdict, "\n".join(report(verdict))


def test_the_modules_of_ofipy_are_no_knot() -> None:
    complain(Verdict(knots(ROOT, "ofipy"), {}, []))


def test_ofipy_imports_nothing_of_fabtests() -> None:
    complain(Verdict([], {}, upwards(ROOT)))


@pytest.mark.parametrize("part", parts_of_c(ROOT))
def test_the_sources_of_c_are_no_knot(part: str) -> None:
    complain(Verdict(knots_in(own_graph_of_c(part), part, CIRCLE), {}, []))


def test_folders_of_the_core_know_only_those_below() -> None:
    assert {path.name for path in (ROOT / "native/src").iterdir()} == set(STOREYS)
    complain(Verdict([], {}, arrows_upwards(own_graph_of_c("native"), STOREYS)))


def test_no_file_is_long() -> None:
    complain(Verdict([], long_files(ROOT), []))


if __name__ == "__main__":
    sys.exit(main())
