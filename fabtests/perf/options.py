# SPDX-License-Identifier: BSD-3-Clause
"""The options of ``fabtests perf``, named as perftest's."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click

from fabtests.base.options import Number
from fabtests.perf.kinds import Kind
from fabtests.perf.plan import LONGEST_MESSAGE, MOST_ITERATIONS, MOST_PROCESSES, MOST_QPS, Plan
from ofipy.cli.support import Seconds
from ofipy.pingpong.pipeline import LONGEST_LIST

__all__ = ["OPTIONS", "Output", "make_plan"]

ALL = tuple(2**power for power in range(1, 24))
MOST_GROUPS_WITH_PEAK = 20000  # each is compared with those behind it
LEAST_ITERATIONS = 5
CQ_MODERATION = 100
PORT = 18515  # perftest's


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How results are told."""

    gbits: bool
    per_port: bool
    bare: str | None
    json_file: Path | None
    histogram: bool
    unsorted: bool
    least_bandwidth: float | None
    least_rate: float | None


class Bytes(Number):
    """A size, with K or M behind it for the units of 1024."""

    name = "bytes"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        """Read it."""
        found = re.fullmatch(r"(\d+)([kKmM]?)", str(value))
        size = int(found[1]) << {"": 0, "k": 10, "m": 20}[found[2].lower()] if found else 0
        if not 0 < size <= LONGEST_MESSAGE:
            self.fail(
                f"{value!r} is no size: 1 to 2G bytes are meant, such as 4096, 64K or 1M", parameter, context
            )
        return size


_number = click.IntRange(min=1)
_flag: dict[str, Any] = {"is_flag": True}

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("host", required=False),
    click.option("-d", "--provider", metavar="NAME", help="Provider; in perftest this is the device."),
    click.option(
        "-c",
        "--connection",
        type=click.Choice(["RDM", "RC"]),
        help="Endpoints that reach every peer (RDM), or connected ones (RC). Default: RDM.",
    ),
    click.option("-R", "--rdma_cm", "connected", **_flag, help="Connected endpoints, same as -c RC."),
    click.option(
        "-p",
        "--port",
        type=click.IntRange(0, 65535),
        default=PORT,
        show_default=True,
        help="TCP port of the server.",
    ),
    click.option(
        "--bind_source_ip", "bind", metavar="ADDRESS", help="Address on which a server listens. Default: all."
    ),
    click.option("-a", "--all", "every_size", **_flag, help="Sizes from 2 to 2^23."),
    click.option("-s", "--size", type=Bytes(), help="Bytes of a message. Default: 65536, for latencies 2."),
    click.option(
        "-n",
        "--iters",
        type=click.IntRange(LEAST_ITERATIONS, MOST_ITERATIONS),
        help="Operations of each queue pair. Default: 1000, for write_bw 5000.",
    ),
    click.option(
        "-D", "--duration", type=Seconds(), metavar="SECONDS", help="Run for this time instead of -n."
    ),
    click.option(
        "-f",
        "--margin",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Time at each end of -D that is not measured. Default: a quarter of -D.",
    ),
    click.option("-b", "--bidirectional", **_flag, help="Both directions at once."),
    click.option(
        "-q",
        "--qp",
        "qps",
        type=click.IntRange(1, MOST_QPS),
        default=1,
        show_default=True,
        help="Queue pairs of each process, which are endpoints.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(1, MOST_PROCESSES),
        default=1,
        show_default=True,
        help="Processes of each side.",
    ),
    click.option(
        "-t",
        "--tx-depth",
        "depth",
        type=_number,
        help="Operations in flight of each queue pair. Default: 128.",
    ),
    click.option(
        "-r",
        "--rx-depth",
        "receive_depth",
        type=_number,
        help="Posted receives of each queue pair. Default: 512.",
    ),
    click.option(
        "-l",
        "--post_list",
        type=click.IntRange(1, LONGEST_LIST),
        default=1,
        show_default=True,
        help="Operations of one post.",
    ),
    click.option(
        "-Q",
        "--cq-mod",
        "moderation",
        type=_number,
        help="Operations for each completion. Default: 100, or the depth.",
    ),
    click.option(
        "-A",
        "--atomic_type",
        type=click.Choice(["FETCH_AND_ADD", "CMP_AND_SWAP"]),
        help="Atomic operation. Default: FETCH_AND_ADD.",
    ),
    click.option("-N", "--noPeak", "no_peak", **_flag, help="Do not compute the peak."),
    click.option(
        "-F", "--CPU-freq", **_flag, expose_value=False, help="No effect: there is no warning to silence."
    ),
    click.option("-H", "--report-histogram", "histogram", **_flag, help="Print every latency, sorted."),
    click.option(
        "-U", "--report-unsorted", "unsorted", **_flag, help="Print every latency in order of time."
    ),
    click.option(
        "-w",
        "--limit_bw",
        "least_bandwidth",
        type=float,
        help="Fail below this bandwidth, in the unit printed.",
    ),
    click.option("-y", "--limit_msgrate", "least_rate", type=float, help="Fail below this rate, in Mpps."),
    click.option("--report_gbits", "gbits", **_flag, help="Gb/sec instead of MiB/sec."),
    click.option("--report-per-port", "per_port", **_flag, help="Also print a row for each process."),
    click.option(
        "--output",
        "bare",
        type=click.Choice(["bandwidth", "message_rate", "latency"]),
        help="Print only one number for each size.",
    ),
    click.option("--out_json", **_flag, help="Write a report as JSON."),
    click.option(
        "--out_json_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="File for the report. Default: perftest_out.json.",
    ),
    click.option("--local", **_flag, help="Start both sides on this machine."),
    click.option(
        "--timeout", type=Seconds(), metavar="SECONDS", help="End with exit code 124 after this time."
    ),
)


OUTPUT = {
    "least_bandwidth": "-w", "least_rate": "-y", "gbits": "--report_gbits", "per_port": "--report-per-port",
    "histogram": "-H", "unsorted": "-U", "bare": "--output", "out_json": "--out_json",
    "out_json_file": "--out_json_file",
}  # fmt: skip


def _refuse(kind: Kind, given: dict[str, Any]) -> None:
    """What does not go together."""
    bandwidth_only = {
        "bidirectional": "-b", "depth": "-t", "moderation": "-Q", "gbits": "--report_gbits",
        "least_bandwidth": "-w", "least_rate": "-y", "no_peak": "-N",
    }  # fmt: skip
    if kind.latency:
        wrong = [name for key, name in bandwidth_only.items() if given[key]]
        if given["qps"] > 1:
            wrong.append("-q")
        if given["post_list"] > 1:
            wrong.append("-l")
        if given["bare"] in ("bandwidth", "message_rate"):
            wrong.append(f"--output={given['bare']}")
        _say(wrong, "is for bandwidth tests")
    else:
        wrong = [name for key, name in {"histogram": "-H", "unsorted": "-U"}.items() if given[key]]
        if given["bare"] == "latency":
            wrong.append("--output=latency")
        _say(wrong, "is for latency tests")
    if kind.operation == "atomic" and (given["every_size"] or given["size"] not in (None, kind.size)):
        raise click.UsageError(f"atomic operations are of {kind.size} bytes: leave -s and -a out")
    if given["every_size"] and given["size"] is not None:
        raise click.UsageError("-a and -s: one of them is meant")
    if given["duration"] is not None and given["iters"] is not None:
        raise click.UsageError("-D and -n: one of them is meant")
    if given["margin"] is not None and given["duration"] is None:
        raise click.UsageError("-f is a margin of -D SECONDS, which is missing")
    if given["atomic_type"] and kind.operation != "atomic":
        raise click.UsageError("-A is for atomic operations")
    if given["receive_depth"] and (kind.operation != "send" or kind.latency):
        raise click.UsageError("-r is for send_bw")
    if given["connected"] and given["connection"] == "RDM":
        raise click.UsageError("-c RDM and -R: one of them is meant")
    _refuse_output(given)
    if given["local"] and given["host"]:
        raise click.UsageError("--local starts both sides here: give no host with it")


def _refuse_output(given: dict[str, Any]) -> None:
    """What is not printed, or not here."""
    lists = [name for key, name in {"histogram": "-H", "unsorted": "-U"}.items() if given[key]]
    if len(lists) > 1:
        raise click.UsageError("-H and -U: one of them is meant")
    if given["duration"] is not None:
        _say(lists, "is of single operations, which -D does not keep")
    if given["bare"]:
        per_port = ["--report-per-port"] if given["per_port"] else []
        _say(
            [*lists, *per_port], f"does not go with --output={given['bare']}, which prints one number a size"
        )
    if given["host"] is None and not given["local"]:
        _say(
            [name for key, name in OUTPUT.items() if given[key] is not None and given[key] is not False],
            "is for the client, which says how results are told: a server prints what its client does",
        )
    elif given["bind"]:
        raise click.UsageError("--bind_source_ip is for a server")


def _say(wrong: list[str], what: str) -> None:
    if wrong:
        raise click.UsageError(f"{wrong[0]} {what}")


def make_plan(name: str, kind: Kind, given: dict[str, Any]) -> tuple[Plan, Output]:
    """What the command line says.

    Raises
    ------
    click.UsageError
        When its parts do not go together.
    """
    _refuse(kind, given)
    depth = given["depth"] or (1 if kind.latency else 128)
    moderation = given["moderation"] or min(CQ_MODERATION, depth)
    if moderation > depth:
        raise click.UsageError(f"-Q {moderation}: no more than the {depth} operations under way (-t)")
    if given["post_list"] > depth:
        raise click.UsageError(f"-l {given['post_list']}: no more than the {depth} operations under way (-t)")
    duration = given["duration"]
    margin = given["margin"] if given["margin"] is not None else (duration or 0) / 4
    if duration is not None and 2 * margin >= duration:
        raise click.UsageError(f"-f {margin:g} at both ends leaves nothing of -D {duration:g}")
    iterations = given["iters"] or kind.iterations
    try:
        plan = Plan(
            test=name,
            provider=given["provider"],
            ep_type="msg" if given["connected"] or given["connection"] == "RC" else "rdm",
            sizes=ALL if given["every_size"] else (given["size"] or kind.size,),
            iterations=iterations,
            duration=duration,
            margin=margin,
            bidirectional=given["bidirectional"],
            qps=given["qps"],
            processes=given["processes"],
            depth=depth,
            receive_depth=given["receive_depth"] or 512,
            post_list=given["post_list"],
            moderation=moderation,
            compare=given["atomic_type"] == "CMP_AND_SWAP",
            peak=not (given["no_peak"] or kind.latency or duration or given["processes"] > 1)
            and given["qps"] * -(-iterations // moderation) <= MOST_GROUPS_WITH_PEAK,
            pinned=given["local"] and given["processes"] == 1,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    out = given["out_json_file"] or (Path("perftest_out.json") if given["out_json"] else None)
    output = Output(
        json_file=out,
        **{
            each: given[each]
            for each in (
                "gbits",
                "per_port",
                "bare",
                "histogram",
                "unsorted",
                "least_bandwidth",
                "least_rate",
            )
        },
    )
    return plan, output
