# SPDX-License-Identifier: BSD-3-Clause
"""Banner, rows and report, with perftest's columns and names."""

import json
import sys
from collections.abc import Callable
from typing import Any

import click

from fabtests.base.program import Failed
from fabtests.perf.kinds import Kind
from fabtests.perf.options import Output
from fabtests.perf.plan import Plan
from fabtests.perf.result import Result

__all__ = ["LiveLine", "Report", "banner"]

RULE = "-" * 87
MEBIBYTE = 1 << 20
LINES = 1000  # of samples, in one message to the server

_LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] "
)
_LATENCY_TIMED = " #bytes        #iterations       t_avg[usec]    tps average"


def banner(plan: Plan, kind: Kind, about: dict[str, Any]) -> str:
    """What is measured, between what."""
    connected = plan.ep_type == "msg"
    rows = [
        ("Provider", about["provider"], "Device", about["device"]),
        ("Number of qps", plan.qps, "Processes", plan.processes),
        ("Connection type", "RC" if connected else "RDM", "rdma_cm QPs", "ON" if connected else "OFF"),
        ("TX depth", plan.depth, "CQ Moderation", plan.moderation),
        ("Max inline data", f"{about['inline']}[B]", "Data ex. method", "Ethernet"),
    ]
    way = "Bidirectional " if plan.bidirectional else ""
    lines = [RULE, f"{way + kind.title:^87}".rstrip()]
    lines += [f" {left:<16}: {one!s:<16} {right:<16}: {other}" for left, one, right, other in rows]
    lines += [RULE, f" local address:  {about['local']}", f" remote address: {about['remote']}", RULE]
    return "\n".join(lines)


class LiveLine:
    """How a timed test goes, on standard error where that is a terminal."""

    def __init__(
        self, describe: Callable[[int, float], str], write: Callable[[str], None] | None = None
    ) -> None:
        self._describe = describe
        self._shown = write is not None or sys.stderr.isatty()
        self._write = write or (lambda text: click.echo(text, nl=False, err=True))
        self._rates: dict[int, float] = {}

    def show(self, worker: int, size: int, elapsed: float, rate: float) -> None:
        """What that process reaches now, together with what the others did last."""
        if self._shown:
            self._rates[worker] = rate
            said = self._describe(size, sum(self._rates.values()))
            self._write(f"\r {size} bytes  {elapsed:.1f} s  {said}\x1b[K")

    def clear(self) -> None:
        """Make room for the row."""
        if self._shown:
            self._write("\r\x1b[K")
        self._rates.clear()


class Unit:
    """Of bandwidth: MiB/sec, or Gb/sec."""

    def __init__(self, output: Output) -> None:
        self.name = "Gb/sec" if output.gbits else "MiB/sec"
        self._bytes = 1e9 / 8 if output.gbits else MEBIBYTE

    def of(self, size: int, rate: float) -> float:
        """Of so many messages of that size a second."""
        return size * rate / self._bytes


class Report:
    """Rows as they come, and all of it as JSON at the end.

    Parameters
    ----------
    write : callable
        Where lines go.
    """

    def __init__(self, plan: Plan, kind: Kind, output: Output, write: Callable[[str], None]) -> None:
        self._plan, self._kind, self._output, self._write = plan, kind, output, write
        self.unit = Unit(output)
        self._results: list[dict[str, Any]] = []

    def header(self) -> str:
        """The columns."""
        if self._kind.latency:
            return _LATENCY if self._plan.duration is None else _LATENCY_TIMED
        unit = self.unit.name
        return f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]"

    def describe(self, size: int, rate: float) -> str:
        """A rate, for the live line."""
        messages = f"{rate / 1e6:.6f} Mpps"
        return (
            messages if self._kind.latency else f"{self.unit.of(size, rate):.2f} {self.unit.name}  {messages}"
        )

    def add(self, total: Result, parts: list[Result]) -> None:
        """A size: what all processes together did, and what each.

        Raises
        ------
        Failed
            When a limit that was asked for is not reached.
        """
        values = self._values(total)
        self._results.append(values)
        bare = self._output.bare
        if bare is not None:
            key = {"bandwidth": "BW_average", "message_rate": "MsgRate", "latency": "t_avg"}[bare]
            self._write(f"{values[key]:.6f}")
        else:
            for index, part in enumerate(parts if self._output.per_port else []):
                self._write(self._row(self._values(part)) + f"   process {index}")
            self._write(self._row(values))
            self._list_samples(total)
        self._hold(values)

    def _values(self, result: Result) -> dict[str, Any]:
        values: dict[str, Any] = {"MsgSize": result.size, "n_iterations": result.operations}
        if not self._kind.latency:
            return values | {
                "BW_peak": self.unit.of(result.size, result.peak),
                "BW_average": self.unit.of(result.size, result.rate),
                "MsgRate": result.rate / 1e6,
            }
        if self._plan.duration is None:
            return values | result.statistics()
        turns = 2 if self._kind.answers else 1
        processes = self._plan.processes
        return values | {"t_avg": processes * 1e6 / result.rate / turns, "tps_average": result.rate}

    def _row(self, values: dict[str, Any]) -> str:
        size, count = values["MsgSize"], values["n_iterations"]
        if not self._kind.latency:
            return (
                f" {size:<10} {count:<14} {values['BW_peak']:<18.2f} {values['BW_average']:<20.2f} "
                f"{values['MsgRate']:.6f}"
            )
        if self._plan.duration is not None:
            return f" {size:<13} {count:<17} {values['t_avg']:<14.2f} {values['tps_average']:.2f}"
        return (
            f" {size:<7} {count:<14} {values['t_min']:<14.2f} {values['t_max']:<12.2f} "
            f"{values['t_typical']:<16.2f} {values['t_avg']:<14.2f} {values['t_stdev']:<16.2f} "
            f"{values['percentile_99']:<22.2f} {values['percentile_99.9']:.2f}"
        )

    def _list_samples(self, result: Result) -> None:
        output = self._output
        if not (output.histogram or output.unsorted) or result.samples is None:
            return
        samples = result.samples if output.unsorted else sorted(result.samples)
        self._write("#, usec")
        for begin in range(0, len(samples), LINES):
            part = enumerate(samples[begin : begin + LINES], begin + 1)
            self._write("\n".join(f"{number}, {each:.3f}" for number, each in part))

    def _hold(self, values: dict[str, Any]) -> None:
        bandwidth, rate = self._output.least_bandwidth, self._output.least_rate
        if bandwidth is not None and values["BW_average"] < bandwidth:
            raise Failed(
                f"{values['MsgSize']} bytes: {values['BW_average']:.2f} {self.unit.name}, below the limit "
                f"of {bandwidth:g} (-w)"
            )
        if rate is not None and values["MsgRate"] < rate:
            raise Failed(
                f"{values['MsgSize']} bytes: {values['MsgRate']:.6f} Mpps, below the limit of {rate:g} (-y)"
            )

    def write_json(self, about: dict[str, Any]) -> None:
        """The report: with ``-a`` its results are a list."""
        if self._output.json_file is None:
            return
        plan = self._plan
        info = {
            "test": self._kind.title,
            "Provider": about["provider"],
            "Device": about["device"],
            "Number_of_qps": plan.qps,
            "Number_of_processes": plan.processes,
            "Connection_type": "RC" if plan.ep_type == "msg" else "RDM",
            "TX_depth": plan.depth,
            "CQ_Moderation": plan.moderation,
            "Bidirectional": plan.bidirectional,
            "BW_unit": self.unit.name,
            "local_address": about["local"],
            "remote_address": about["remote"],
        }
        results: Any = self._results if len(plan.sizes) > 1 else self._results[0]
        self._output.json_file.write_text(
            json.dumps({"test_info": info, "results": results}, indent=2) + "\n"
        )
