# SPDX-License-Identifier: BSD-3-Clause
"""Facts that decide about copies between two cores: the processor, its flags for copying, and its caches."""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["describe", "describe_caches"]

FLAGS = ("erms", "fsrm", "avx2", "avx512f", "3dnowprefetch")
CORES = Path("/sys/devices/system/cpu")
STEAL = 8  # field of the line "cpu" in /proc/stat, see proc_stat(5)


def read_cpuinfo() -> dict[str, str]:
    """The kernel's description of the first processor."""
    facts: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    return facts


def name_processor(facts: dict[str, str]) -> str:
    """The name with family, model and stepping: a hypervisor may shorten the name to that of the brand."""
    name = facts.get("model name") or platform.machine()
    return f"{name} (family {facts.get('cpu family')}, model {facts.get('model')}, stepping {facts.get('stepping')})"


def read_times() -> list[int]:
    """Processor time since the start of the machine, by what it was used for."""
    return [int(field) for field in Path("/proc/stat").read_text().split()[1:9]]


def read_caches(core: int) -> dict[str, dict[str, str]]:
    """The caches of a core for data, and the cores that share them."""
    caches = {}
    for folder in sorted((CORES / f"cpu{core}" / "cache").glob("index*")):
        facts = {
            name: (folder / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
        }
        if facts["type"] != "Instruction":
            name = f"L{facts['level']}{'d' if facts['type'] == 'Data' else ''}"
            caches[name] = {"size": facts["size"], "cores": facts["shared_cpu_list"]}
    return caches


def list_cores(text: str) -> set[int]:
    """The numbers of a list of the kernel's, such as "0,2-4"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def describe(cores: tuple[int, int]) -> Callable[[], dict[str, Any]]:
    """Begin a description of the machine. Call the result when the measurement has ended."""
    start = read_times()

    def finish() -> dict[str, Any]:
        spent = [now - then for now, then in zip(read_times(), start, strict=True)]
        facts, caches = read_cpuinfo(), read_caches(cores[0])
        siblings = CORES / f"cpu{cores[0]}" / "topology" / "thread_siblings_list"
        return {
            "processor": name_processor(facts),
            "flags": [flag for flag in FLAGS if flag in facts.get("flags", "").split()],
            "caches": caches,
            "shared_caches": [
                name for name, cache in caches.items() if cores[1] in list_cores(cache["cores"])
            ],
            "siblings": siblings.exists() and cores[1] in list_cores(siblings.read_text().strip()),
            "pinned": list(cores),
            "steal_percent": round(100 * spent[STEAL - 1] / max(1, sum(spent)), 2),
            "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()),
        }

    return finish


def describe_caches(machine: dict[str, Any]) -> str:
    """One line about them."""
    sizes = ", ".join(f"{name} {cache['size']}" for name, cache in machine["caches"].items())
    shared = " and ".join(machine["shared_caches"]) or "no cache"
    kind = "two threads of one core" if machine["siblings"] else "two cores"
    return f"caches: {sizes or 'unknown'}; {kind} that share {shared}"
