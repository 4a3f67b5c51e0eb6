# SPDX-License-Identifier: BSD-3-Clause
"""The machine a figure was taken on: without it a figure says nothing."""

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ofipy._base.binding import check
from ofipy._base.measure_binding import lib

__all__ = ["StealClock", "cpu_model", "describe_machine", "measure_handover", "read_cpuinfo"]

HANDOVERS = 20000  # there and back
STEAL_FIELD = 8  # of the "cpu" line in /proc/stat, see proc_stat(5)
CPUINFO = Path("/proc/cpuinfo")
REVISION = {"family": "cpu family", "model": "model", "stepping": "stepping"}  # as x86 has them in that file


def read_line(path: str) -> str | None:
    """The first line of a file of the kernel, None where it has none."""
    try:
        return Path(path).read_text().partition("\n")[0].strip()
    except OSError:
        return None


def read_cpuinfo() -> dict[str, str]:
    """What the kernel tells of the first processor, by its words for it, and of all together."""
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return {}
    facts: dict[str, str] = {}
    for line in lines:
        key, colon, value = line.partition(":")
        if colon:
            facts.setdefault(key.strip(), value.strip())
    return facts


def cpu_model(facts: Mapping[str, str]) -> str:
    """The processor's name as the kernel prints it."""
    named = (facts[key] for key in ("model name", "Model", "cpu model") if key in facts)
    return next(named, "") or platform.processor() or platform.machine()


def describe_processor(facts: Mapping[str, str]) -> str:
    """The processor's name with family, model and stepping: a hypervisor may shorten the name to that of the brand."""
    known = [f"{word} {facts[key]}" for word, key in REVISION.items() if key in facts]
    name = cpu_model(facts)
    return f"{name} ({', '.join(known)})" if known else name


class StealClock:
    """Measures how much time the hypervisor gave to others since it was made."""

    def __init__(self) -> None:
        self._start = self._read()

    @staticmethod
    def _read() -> list[int]:
        line = read_line("/proc/stat") or ""
        return [int(field) for field in line.split()[1:9]]

    def percent(self) -> float | None:
        """Stolen share of all processor time since the start; None where the kernel does not say."""
        spent = [now - then for now, then in zip(self._read(), self._start, strict=True)]
        if len(spent) < STEAL_FIELD:
            return None
        return round(100 * spent[STEAL_FIELD - 1] / max(1, sum(spent)), 2)


def measure_handover(cores: tuple[int, int]) -> float | None:
    """How long a cache line takes from one core to another, µs; None where it is one core.

    Machines differ in this by the day, and all that is short with it. The caller is on the first core meanwhile.
    """
    here, there = cores
    if here == there:
        return None
    elapsed = lib.ofp_measure_handover(here, there, HANDOVERS)
    return check(elapsed, operation="handover") / HANDOVERS / 2 / 1e3


def describe_machine(*, cores: tuple[int, ...] = (), steal: StealClock | None = None) -> dict[str, Any]:
    """Describe the machine for a result document.

    Parameters
    ----------
    cores : tuple of int
        The cores that the workers were pinned to.
    steal : StealClock, optional
        Running since the measurement began.

    Returns
    -------
    dict
        Keys ``cpu``, ``processor`` (the same with what distinguishes processors of one name), ``architecture``,
        ``cores``, ``pinned``, ``kernel``, ``governor``, ``steal_percent``, ``load``, ``python``, ``numpy`` and
        ``ofipy``; None where the machine does not tell.
    """
    facts = read_cpuinfo()
    governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    return {
        "cpu": cpu_model(facts),
        "processor": describe_processor(facts),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "pinned": list(cores),
        "kernel": platform.release(),
        "governor": read_line(governor),
        "steal_percent": steal.percent() if steal is not None else None,
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "ofipy": version("ofipy"),
    }
