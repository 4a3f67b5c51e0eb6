# SPDX-License-Identifier: BSD-3-Clause
"""One result against an earlier one: what has become slower, beyond the noise that both measured.

A machine is not the same on two days, and peers say by how much: the median of what they changed by in a case is taken
for the machine's share, and ofipy is judged by the rest. The noise of a row is what its rounds spread, then and now,
and what those of the peers do.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["LEAST_NOISE", "Change", "compare_documents", "row_name"]

LEAST_NOISE = 0.05
"""What two runs differ by however quiet the machine was."""

Row = dict[str, Any]
Key = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class Change:
    """A row that both results have."""

    name: str
    then: float
    now: float
    unit: str
    machine: float
    """Times as slow as then the peers of the case are."""
    slowdown: float
    """Times as slow as then ofipy is, the machine's share taken out; below 1 it is faster."""
    noise: float
    """What a slowdown has to exceed to be one: 0.1 is 10 %."""

    @property
    def is_regression(self) -> bool:
        """Whether it is slower beyond the noise."""
        return self.slowdown > 1 + self.noise

    @property
    def is_gain(self) -> bool:
        """Whether it is faster beyond the noise."""
        return self.slowdown < 1 / (1 + self.noise)


def key_of(row: Row) -> Key:
    """What makes two rows of two results the same."""
    return row["case"], row["provider"], row["mode"], row.get("way", ""), size_of(row)


def size_of(row: Row) -> int:
    """Bytes, or the depth."""
    size: int = row["bytes"] if "bytes" in row else row["depth"]
    return size


def row_name(row: Row) -> str:
    """A row as people name it."""
    way = f" by {row['way']}" if "way" in row else ""
    return f"{row['case']} {row['mode']}{way} {size_of(row)}"


def slowdown(then: float, now: float, metric: str) -> float:
    """Times as slow."""
    return now / then if metric.startswith("usec") else then / now


def compare_documents(then: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    """Every row that both results have.

    Parameters
    ----------
    then, now : dict
        Documents of ``fabtests compare --json``.

    Raises
    ------
    ValueError
        When they are not of one schema, or have no row in common.
    """
    for document in (then, now):
        if document.get("schema") != now["schema"] or not isinstance(document.get("rows"), list):
            raise ValueError(f"not a result of fabtests compare, schema {now['schema']}")
    before = {key_of(row): row for row in then["rows"]}
    pairs = [(before[key_of(row)], row) for row in now["rows"] if key_of(row) in before]
    if not pairs:
        raise ValueError("it has no row in common with this run")
    machines = {
        case: machine_share([each for each in pairs if each[1]["case"] == case]) for case in cases(pairs)
    }
    return [judge(old, new, *machines[new["case"]]) for old, new in pairs]


def cases(pairs: list[tuple[Row, Row]]) -> list[str]:
    """Their cases, each once."""
    return list(dict.fromkeys(new["case"] for _, new in pairs))


def peers_of(old: Row, new: Row) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Peers that both have, of one version."""
    for name, peer in new["peers"].items():
        if name in old["peers"] and old["peers"][name]["version"] == peer["version"]:
            yield old["peers"][name], peer


def machine_share(pairs: list[tuple[Row, Row]]) -> tuple[float, float]:
    """By how much the peers of a case are slower, and how far that is noise."""
    found = [
        (slowdown(then["value"], now["value"], new["metric"]), then["spread"] + now["spread"])
        for old, new in pairs
        for then, now in peers_of(old, new)
    ]
    if not found:
        return 1.0, 0.0
    return statistics.median(each for each, _ in found), statistics.median(each for _, each in found)


def judge(old: Row, new: Row, machine: float, machine_noise: float) -> Change:
    """One row."""
    then, now = old["ofipy"], new["ofipy"]
    return Change(
        name=row_name(new),
        then=then["value"],
        now=now["value"],
        unit=new["metric"],
        machine=machine,
        slowdown=slowdown(then["value"], now["value"], new["metric"]) / machine,
        noise=max(LEAST_NOISE, then["spread"] + now["spread"] + machine_noise),
    )
