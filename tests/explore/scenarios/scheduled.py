# SPDX-License-Identifier: BSD-3-Clause
"""Programs in C over the core and its providers, with their threads scheduled: a scenario for each and provider."""

import hashlib
import json
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..build import Build
from ..native_build import build_programs, list_programs
from ..runner import locate
from ..scenario import CannotRun, Decision, Outcome, Scenario

__all__ = ["ScheduleScenario", "Server", "list_scenarios"]

TRIES = 400
"""Runs by which a failing schedule is made shorter."""
SHRINK_SECONDS = 20.0
"""For so long: a run in which no thread can run waits for the kernel for two seconds."""
NOT_COVERED = (
    "Schedules of Python's threads, of remote memory, and of connections of type MSG.",
    "Memory orders: threads that are scheduled see every store at once.",
)


@dataclass
class Server:
    """The process that forks the runs of all programs of a build."""

    build: Build
    _process: "subprocess.Popen[str] | None" = None
    _lock: Any = field(default_factory=threading.Lock)
    path: Path | None = None

    def start(self) -> None:
        """Build the programs and start the process, unless it runs."""
        with self._lock:
            if self._process is None:
                self.path = build_programs(self.build)
                self._process = subprocess.Popen(
                    [str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )

    def ask(self, name: str, seed: int, decisions: Sequence[Decision]) -> dict[str, Any]:
        """Make one run. Without decisions the seed's strategy makes them."""
        assert self._process is not None
        assert self._process.stdin is not None
        lines = [f"{name} {seed} {len(decisions)}"]
        lines += [f"{at.thread}\t{at.function}\t{at.occurrence}\t{at.action}" for at in decisions]
        with self._lock:
            print("\n".join(lines), file=self._process.stdin, flush=True)
            answer: dict[str, Any] = self._read()
        return answer

    def _read(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CannotRun("the process that runs the scheduled programs has ended; see above")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                assert self._process.stdin is not None
                self._process.stdin.close()
                self._process.wait()
                self._process = None


@dataclass
class ScheduleScenario(Scenario):
    """A program over a provider."""

    server: Server = field(kw_only=True)

    def prepare(self) -> None:
        self.server.start()

    def runs(self, seed: int) -> int | None:
        del seed
        return None

    def run(self, seed: int, number: int, trace: Sequence[Decision] | None = None) -> Outcome:
        program = self.name.removeprefix("order/")
        # A trace without decisions is the schedule that none changes, as that of the first run.
        answer = self.server.ask(program, mix(seed, number), trace or ())
        verdict = answer["verdict"] or None
        return Outcome(
            verdict=verdict,
            steps=answer["steps"],
            faults=0,
            virtual=answer["virtual"] / 1e9,
            story=tuple(self._tell(answer["story"])) if verdict else (),
            trace=tuple(Decision(*decision) for decision in answer["decisions"]),
            is_stale=answer["unused"] > 0,
        )

    def _tell(self, story: list[Any]) -> list[str]:
        lines: list[str] = []
        last = ""
        for thread, function, file, line, caller, at in story:
            place = (
                f"{Path(file).name}:{line}"
                if file
                else " ".join(reversed(locate(str(self.server.path), caller)))
            )
            # Of what a thread does again and again, the first time.
            if (what := f"{thread} {function} ({place})") != last:
                lines.append(f"{at / 1e6:10.6f} ms  {what}")
            last = what
        return lines

    def shrink(self, seed: int, number: int, outcome: Outcome) -> Outcome:
        """Leave out decisions, in ever smaller parts, while the verdict stays the same kind."""
        kept, tries, until = outcome, TRIES, time.monotonic() + SHRINK_SECONDS
        size = max(len(kept.trace) // 2, 1)
        while kept.trace and tries > 0 and time.monotonic() < until:
            for begin in range(0, len(kept.trace), size):
                shorter = kept.trace[:begin] + kept.trace[begin + size :]
                if not shorter or tries <= 0 or time.monotonic() > until:
                    continue
                tries -= 1
                made = self.run(seed, number, shorter)
                if kind_of(made.verdict) == kind_of(outcome.verdict) and len(made.trace) < len(kept.trace):
                    kept = made
                    break
            else:
                if size == 1:
                    break
                size = max(size // 2, 1)
        return kept

    def close(self) -> None:
        self.server.close()


def kind_of(verdict: str | None) -> str | None:
    """What stays when a run is made shorter: a verdict without its numbers."""
    return verdict.split(":")[0] if verdict else None


def mix(seed: int, number: int) -> int:
    """The seed of one run, below 2**63."""
    return int.from_bytes(hashlib.blake2b(f"{seed}:{number}".encode(), digest_size=8).digest()) >> 1


def list_scenarios(build: Build) -> list[Scenario]:
    """One for each program and provider; they share the process that runs them."""
    server = Server(build)
    return [
        ScheduleScenario(
            f"order/{name}",
            "schedules",
            # When bytes are readable that were sent over the kernel's TCP, the kernel decides.
            is_deterministic=not name.endswith(("/tcp", "/link")),
            not_covered=NOT_COVERED,
            server=server,
        )
        for name in list_programs()
    ]
