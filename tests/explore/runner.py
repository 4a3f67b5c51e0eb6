# SPDX-License-Identifier: BSD-3-Clause
"""Starts and asks the process that forks runs of the programs in ``side/``."""

import json
import os
import subprocess
import sysconfig
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.builds import TREE

from .build import Build
from .scenario import CannotRun

__all__ = ["Runner", "locate"]

HERE = TREE / "tests" / "explore"
LIMIT = 10.0
"""Seconds after which a run hangs. A run takes 20 ms; whatever it waits for it waits for 6 s at most."""


@dataclass
class Runner:
    """The programs over one build, and one process that forks their runs."""

    build: Build
    _process: "subprocess.Popen[str] | None" = None
    _lock: Any = field(default_factory=threading.RLock)
    programs: dict[str, int] = field(default_factory=dict)
    """Kinds of steps by program; known once :meth:`start` has returned."""

    def start(self) -> None:
        """Build what is needed, and start the process, unless it runs."""
        with self._lock:
            if self._process is None:
                self._start()

    def _start(self) -> None:
        native, tree = HERE / "native", self.build.tree
        include = f"-I{sysconfig.get_path('include')}"
        core = (f"-I{tree / 'ofipy' / 'requests'}", f"-I{tree / 'native' / 'include'}")
        python = self.build.python
        fault = self.build.library(
            "fault", native / "steps.c", native / "fault_memory.c", native / "fault_system.c"
        )
        calls = self.build.library("calls", native / "fault_calls.c", flags=(include, *core))
        objects = self.build.library("objects", native / "fault_python.c", flags=(include,))
        environment = {
            **os.environ,
            "LD_PRELOAD": str(fault),
            "PYTHONSAFEPATH": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OFIPY_LOG": "error",
        }
        self._process = subprocess.Popen(
            [str(python), "-P", str(HERE / "side" / "serve.py"), str(calls), str(objects)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.programs = self._read()["programs"]

    def ask(
        self, program: str, seed: int, kinds: int, fault: dict[str, Any] | None, *, count: bool = False
    ) -> dict[str, Any]:
        """Make one run."""
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        wish = {
            "program": program,
            "seed": seed,
            "kinds": kinds,
            "fault": fault,
            "limit": LIMIT,
            "count": count,
        }
        with self._lock:
            print(json.dumps(wish), file=self._process.stdin, flush=True)
            return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CannotRun("the process that runs the programs has ended; see above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                assert self._process.stdin is not None
                self._process.stdin.close()
                self._process.wait()
                self._process = None


@lru_cache(4096)
def locate(path: str, offset: int) -> tuple[str, str]:
    """The function at an offset of a library, and its file and line; the library and offset where nothing is known."""
    # The address that a call returns to is behind the call.
    command = ["addr2line", "-fe", path, hex(offset - 1)]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "?", f"{Path(path).name}+{offset:#x}"
    function, place, *_ = done.stdout.splitlines()
    if place.startswith("?"):
        return function, f"{Path(path).name}+{offset:#x}"
    name, _, line = place.split(" ")[0].rpartition(":")
    return function, f"{Path(name).name}:{line}"
