# SPDX-License-Identifier: BSD-3-Clause
"""Worker processes on hosts, as the tests see them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hosts import Host

WORKER = Path(__file__).with_name("worker.py")
USER_TIMEOUT = 2  # s, of all workers
ANSWER_SECONDS = 80


class RemoteError(AssertionError):
    """What a worker raised."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(f"{answer['error']}: {answer['text']}")
        self.kind: str = answer["error"]
        self.now: float = answer["now"]


class Node:
    """A worker process on a host; its methods are those of worker.py's Node."""

    def __init__(self, host: Host, runtime: str | None = None, **variables: object) -> None:
        """`runtime`: the folder that the user's session has for such files, where it is not this one's."""
        self.process = subprocess.Popen(
            host.inside(sys.executable, "-P", str(WORKER)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),
            env={
                **os.environ,
                **({"XDG_RUNTIME_DIR": runtime} if runtime is not None else {}),
                "OFIPY_TCP_USER_TIMEOUT": str(USER_TIMEOUT),
                **{f"OFIPY_{name}": str(value) for name, value in variables.items()},
            },
        )
        self._caller = ThreadPoolExecutor(1)

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
            raise AssertionError(f"{name} has not ended after {ANSWER_SECONDS} s")
        line = self.process.stdout.readline()
        assert line, f"the worker ended with {self.process.wait()} at {name}"
        answer = json.loads(line)
        if "error" in answer:
            raise RemoteError(answer)
        return answer["result"]

    def begin(self, name: str, **arguments: Any) -> Future[Any]:
        """Have it done meanwhile; ``result()`` of what this returns waits for it."""
        return self._caller.submit(self._call, name, arguments)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda **arguments: self._caller.submit(self._call, name, arguments).result()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._caller.shutdown()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
