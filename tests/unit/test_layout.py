# SPDX-License-Identifier: BSD-3-Clause
"""The judge of the layout: storeys that know only what lies below them, in files that one can read.

A file knows another when it includes it, imports it, or uses a function that the other defines; ``source_graph.py``
finds out. Files that know each other in a circle can only be read, tested and changed together: a *knot*. ``python
tests/unit/test_layout.py FOLDER`` judges any tree of ofipy's sources, prints its knots with the arrows to cut, and
exits with 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from source_graph import (
    INCLUDE,
    LINKED,
    REQUESTS,
    Arrow,
    Graph,
    arrows_upwards,
    circles,
    cuts,
    functions_of_c,
    functions_of_python,
    graph_of_c,
    graph_of_python,
    imports,
    modules,
    sources,
)

ROOT = Path(__file__).resolve().parents[2]
LINES = 500  # of a file, at most
FUNCTION = 60  # lines of a function, at most: a screen
CIRCLE = 2  # files of C, at most: a type and what creates it may belong together
FOLDERS = ("native", "providers", "ofipy", "fabtests", "tests")

# Folders of native/src, from the bottom; docs/explanation/layers.md says what lives in each.
STOREYS = (
    *("base", "atomic", "object", "match", "progress", "completion", "memory", "peer"),
    *("operation", "collective", "request", "provider", "hook", "open"),
)

# The C seam to Python, from the bottom; docs/explanation/requests.md says what lives in each layer.
REQUEST_LAYERS = ("core", "lock", "memory", "request", "await", "submit", "module")

# The provider "link" is built into the core and uses these internal headers of it. Each new one is a decision.
HEADERS_OF_LINK = {
    *(
        f"base/{name}.h"
        for name in ("address_vector", "check", "ids", "log", "param", "process_lock", "reason")
    ),
    *("base/ticks.h", "match/receive_context.h", "object/domain.h", "object/endpoint.h", "object/peer.h"),
    *("operation/atomic_query.h", "peer/peer_find.h", "progress/progress.h"),
    *("provider/provider_registry.h", "provider/provider_tables.h"),
}

# Names of asyncio's that are not public: they may change with any release of Python.
PRIVATE_ASYNCIO = re.compile(
    r"\b(_asyncio_\w+|_[gs]et_running_loop|_run_once)\b|[\"']_(ready|selector)[\"']|\._(ready|selector)\b"
)
PRIVATE_ASYNCIO_FILES = {"ofipy/_completion/aio.py", "ofipy/requests/await/asyncio.c"}


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
    functions: dict[str, int] = field(default_factory=dict)  # file: function -> lines

    def __bool__(self) -> bool:
        return bool(self.knots or self.long or self.upwards or self.functions)


# The verdict


def long_functions(tree: Path) -> dict[tuple[str, str], int]:
    return {
        (path.relative_to(tree).as_posix(), name): count
        for folder in FOLDERS[:-1]  # a test may be a long list of steps
        for path in sources(tree / folder, ".c", ".h", ".py")
        for name, count in (functions_of_python if path.suffix == ".py" else functions_of_c)(path)
        if count > FUNCTION
    }


def parts_of_c(tree: Path) -> list[str]:
    """The core, what providers link, the seam to Python, and each provider in C: graphs of their own."""
    found = {path.parent.relative_to(tree).parts[:2] for path in sources(tree / "providers", ".c")}
    linked = (each for each in (*LINKED, REQUESTS) if (tree / each).is_dir())
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
    functions = {f"{path}: {name}": count for (path, name), count in long_functions(tree).items()}
    return Verdict(
        [knot for part in parts for knot in knots(tree, part)], long_files(tree), upwards(tree), functions
    )


def report(verdict: Verdict) -> Iterator[str]:
    """For people who have to cut."""
    for knot in verdict.knots:
        yield f"{knot.graph}: {len(knot.members)} of {knot.files} files in one knot: {' '.join(knot.members)}"
        yield f"  {len(knot.cuts)} arrows close it; without them it is open:"
        yield from (f"    {line}" for line in arrows(knot.cuts))
    for path, lines in verdict.long.items():
        yield f"{path}: {lines} lines, of {LINES} at most"
    for name, lines in verdict.functions.items():
        yield f"{name}: {lines} lines, of {FUNCTION} at most"
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


def test_calls_in_a_circle_of_more_than_two_files_are_a_knot(tmp_path: Path) -> None:
    (knot,) = knots(write(tmp_path, ring(3)), "native")
    assert knot.members == ["src/part0", "src/part1", "src/part2"]
    assert [len(arrow.names) for arrow in knot.cuts] == [1]
    heading = "native: 3 of 3 files in one knot: src/part0 src/part1 src/part2"
    assert next(report(Verdict([knot], {}, []))) == heading


def test_calls_in_a_circle_of_two_files_are_none(tmp_path: Path) -> None:
    assert not knots(write(tmp_path, ring(2)), "native")


def test_a_variable_of_another_layer_is_an_arrow(tmp_path: Path) -> None:
    low = "extern int (*high)(void);\nint low(void)\n{ return high(); }\n"
    high = "static int f(void)\n{ return 1; }\nint (*high)(void) = f;\n"
    write(tmp_path, {f"{REQUESTS}/memory/low.c": low, f"{REQUESTS}/request/high.c": high})
    graph = graph_of_c(tmp_path, REQUESTS)
    assert arrows_upwards(graph, REQUEST_LAYERS) == [Arrow("memory/low", "request/high", ["high"])]


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
    assert arrows_upwards(graph, ("low", "high"), "src/") == [Arrow("src/low/a", "src/high/b", ["high/b.h"])]


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


def test_long_functions_are_found(tmp_path: Path) -> None:
    lines = "    f();\n" * 60
    files = {
        "native/long.c": f"int f(void)\n{{ return 1; }}\n\nint g(int a,\n      int b)\n{{\n{lines}}}\n",
        "native/short.c": f"int f(void)\n{{\n{lines[9 * 3 :]}}}\n",
        "ofipy/a.py": f'def f():\n    """What.\n\n    More.\n    """\n{lines}\n\ndef g():\n{lines}    f()\n',
    }
    assert long_functions(write(tmp_path, files)) == {("native/long.c", "g"): 64, ("ofipy/a.py", "g"): 61}


def test_the_program_tells_its_verdict(tmp_path: Path) -> None:
    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-P", __file__, *arguments], capture_output=True, text=True)

    ran = program(str(write(tmp_path, ring(2))))
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
    complain(Verdict([], {}, arrows_upwards(own_graph_of_c("native"), STOREYS, "src/")))


def test_layers_of_requests_know_only_those_below() -> None:
    complain(Verdict([], {}, arrows_upwards(own_graph_of_c(REQUESTS), REQUEST_LAYERS)))


def test_no_layer_of_requests_is_called_through_a_variable() -> None:
    """A function pointer that a layer above sets would be an arrow upwards that no object shows."""
    pointer = re.compile(r"\(\*\w+\)\s*\(")
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for layer in REQUEST_LAYERS[1:-1]
        for path in sources(ROOT / REQUESTS / layer, ".c", ".h")
        for line in path.read_text().splitlines()
        if pointer.search(line)
    ]
    assert found == []


def test_private_names_of_asyncio_are_in_two_files() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sources(ROOT / "ofipy", ".c", ".h", ".py")
        if PRIVATE_ASYNCIO.search(path.read_text())
    }
    assert found == PRIVATE_ASYNCIO_FILES


def test_link_is_above_the_core_and_uses_few_of_its_headers() -> None:
    graph = own_graph_of_c("native")
    assert [
        node
        for node in graph
        if node.startswith("src/") and any(each.startswith("link/") for each in graph[node])
    ] == []
    used = {
        included
        for path in sources(ROOT / "native/link", ".c", ".h")
        for included in INCLUDE.findall(path.read_text())
        if "/" in included and included.split("/")[0] in STOREYS
    }
    assert used <= HEADERS_OF_LINK


def test_no_file_is_long() -> None:
    complain(Verdict([], long_files(ROOT), []))


def test_functions_fit_a_screen() -> None:
    assert not long_functions(ROOT)


if __name__ == "__main__":
    sys.exit(main())
