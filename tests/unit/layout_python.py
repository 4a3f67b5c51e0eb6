# SPDX-License-Identifier: BSD-3-Clause
"""Which module of a package imports which, read from the sources: nothing is imported."""

import ast
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def import_graph(folder: Path) -> Graph:
    """Modules of the package in `folder` by dotted name, each with those of them that it imports.

    Every import statement counts: at the top, inside a function, and for types only. ``from ofipy._base import errors``
    is an arrow to the module, if there is one of that name, else to the package. The packages around a module, which
    Python runs first, are no arrows.
    """
    package = folder.resolve()
    modules = {_dotted(path, package): path for path in sorted(package.rglob("*.py"))}
    graph: Graph = {}
    for name, path in modules.items():
        imported = (_known(dotted, modules) for dotted in _imports(name, path))
        graph[name] = {found for found in imported if found is not None and found != name}
    return graph


def imports_of(folder: Path, name: str) -> dict[str, set[str]]:
    """The modules in `folder` that import the top-level package `name`, with what they import of it."""
    package = folder.resolve()
    found = {}
    for path in sorted(package.rglob("*.py")):
        module = _dotted(path, package)
        of_it = {each for each in _imports(module, path) if each.partition(".")[0] == name}
        if of_it:
            found[module] = of_it
    return found


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module, each sorted, the largest first (Tarjan 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in number:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            place = stack.index(node)
            component = stack[place:]
            del stack[place:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return sorted(found, key=lambda component: (-len(component), component))


def _dotted(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, path: Path) -> Iterator[str]:
    """Dotted names of what a module imports: ``a.b.c`` for ``from a.b import c``."""
    around = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = around[: len(around) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def _known(dotted: str, modules: dict[str, Path]) -> str | None:
    """The module that a dotted name is, or is defined in."""
    if dotted in modules:
        return dotted
    outer = dotted.rpartition(".")[0]
    return outer if outer in modules else None
