# SPDX-License-Identifier: BSD-3-Clause
"""What ``tests.imports`` starts: imports ofipy, and prints what each part of that took.

The output is one JSON object, of nanoseconds and of counts. The time of a part does not include the parts within it.
With the argument ``plain`` it imports numpy too, and prints the nanoseconds of both imports, without any hook.
"""

import builtins
import enum
import gc
import importlib
import importlib.machinery
import json
import sys
from collections import Counter
from time import perf_counter_ns
from typing import Any

# Members of importlib without a type stub; nothing public is called once for each import.
_bootstrap: Any = importlib.import_module("importlib._bootstrap")

MACHINERY, FILES, CLASSES, ENUMS = "import machinery", "files", "classes", "enumerations"
OWN, OTHERS, EXTENSIONS, COLLECTOR = "ofipy", "standard library", "extensions", "collector"


class Parts:
    """Stopwatches of parts within parts. Only the innermost one runs."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.count: Counter[str] = Counter()
        self._within: list[str] = []
        self._since = 0

    def _charge(self) -> None:
        now = perf_counter_ns()
        if self._within:
            self.spent[self._within[-1]] += now - self._since
        self._since = now

    def begin(self, part: str) -> None:
        """Stop the outer part's stopwatch and start this one's."""
        self._charge()
        self._within.append(part)
        self.count[part] += 1

    def end(self) -> None:
        """Return to the outer part."""
        self._charge()
        self._within.pop()

    def timed(self, function: Any, part: Any) -> Any:
        """The function with a stopwatch; `part` is a name, or a function of the arguments that returns one."""

        def call(*arguments: Any, **named: Any) -> Any:
            self.begin(part if isinstance(part, str) else part(*arguments))
            try:
                return function(*arguments, **named)
            finally:
                self.end()

        return call

    def collected(self, phase: str, details: dict[str, int]) -> None:
        """The garbage collector reports the begin and the end of its runs."""
        if phase == "start":
            self.begin(COLLECTOR)
        else:
            self.end()


def part_of_module(loader: Any, module: Any) -> str:
    return OWN if module.__name__.partition(".")[0] == "ofipy" else OTHERS


def part_of_class(body: Any, name: str, *bases: Any) -> str:
    return ENUMS if any(isinstance(base, enum.EnumType) for base in bases) else CLASSES


def main() -> None:
    if sys.argv[1:] == ["plain"]:
        times = [perf_counter_ns()]
        for name in ("ofipy", "numpy"):
            importlib.import_module(name)
            times.append(perf_counter_ns())
        print(json.dumps([times[1] - times[0], times[2] - times[1]]))
        return
    parts = Parts()
    source, extension = importlib.machinery.SourceFileLoader, importlib.machinery.ExtensionFileLoader
    for owner, name, part in (
        (_bootstrap, "_find_and_load", MACHINERY),
        (source, "get_code", FILES),
        (source, "exec_module", part_of_module),
        (extension, "create_module", EXTENSIONS),
        (extension, "exec_module", EXTENSIONS),
        (builtins, "__build_class__", part_of_class),
    ):
        setattr(owner, name, parts.timed(getattr(owner, name), part))
    gc.callbacks.append(parts.collected)
    importlib.import_module("ofipy")
    print(json.dumps({"spent": parts.spent, "count": parts.count}))


if __name__ == "__main__":
    main()
