# SPDX-License-Identifier: BSD-3-Clause
"""perftest's programs over every provider: what they print, what they write, and what they refuse."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabtests.perf.kinds import names
from tests.ports import free_port

FABTESTS = [sys.executable, "-P", "-m", "fabtests"]
PERF = [*FABTESTS, "perf"]
LATENCY_COLUMNS = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] "
)
BANDWIDTH_COLUMNS = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]"


def perf(*arguments: str, code: int = 0, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [*PERF, *arguments, "--timeout", "50"],
        capture_output=True, text=True, timeout=55, check=False, cwd=folder,
    )  # fmt: skip
    assert result.returncode == code, result.stdout + result.stderr
    return result


def rows(printed: str) -> list[list[float]]:
    """The numbers of every row."""
    found = [line.split() for line in printed.splitlines() if re.match(r" \d+ +\d+ +[0-9.]+ ", line)]
    return [[float(each) for each in line] for line in found]


@pytest.mark.parametrize("provider", ["shm", "tcp"])
@pytest.mark.parametrize("name", names())
def test_every_program(name: str, provider: str) -> None:
    printed = perf(name, "--local", "-d", provider, "-n", "50").stdout
    assert (LATENCY_COLUMNS if name.endswith("lat") else BANDWIDTH_COLUMNS) in printed.splitlines()
    size = 8 if "atomic" in name else 2 if name.endswith("lat") else 65536
    ((bytes_, iterations, *values),) = rows(printed)
    assert (bytes_, iterations) == (size, 50)
    if name.endswith("lat"):
        least, most, typical, mean, _, p99, p999 = values
        assert 0 < least <= typical <= p99 <= p999 <= most
        assert least <= mean <= most
    else:
        peak, average, rate = values
        assert peak >= average >= 0
        assert rate > 0


def test_a_peak_of_whole_groups_and_an_average() -> None:
    def values(*arguments: str) -> tuple[float, float]:
        printed = perf("write_bw", "--local", "-d", "shm", "-s", "64", *arguments).stdout
        ((_, _, peak, average, _),) = rows(printed)
        return peak, average

    peak, average = values("-n", "1000", "-q", "2")
    assert peak >= average > 0
    # The second group has one operation: what a stretch with it holds is not known.
    peak, average = values("-n", "101")
    assert peak == average > 0
    assert values("-n", "200", "--processes", "2")[0] == 0


def test_all_sizes_in_a_report(tmp_path: Path) -> None:
    perf("write_lat", "--local", "-d", "shm", "-a", "-n", "5", "--out_json", folder=tmp_path)
    report = json.loads((tmp_path / "perftest_out.json").read_text())
    assert [each["MsgSize"] for each in report["results"]] == [2**power for power in range(1, 24)]
    assert set(report["results"][0]) == {
        "MsgSize", "n_iterations", "t_min", "t_max", "t_typical", "t_avg", "t_stdev", "percentile_99",
        "percentile_99.9",
    }  # fmt: skip


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_queue_pairs_and_processes(provider: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    printed = perf(
        "send_bw", "--local", "-d", provider, "-n", "200", "-s", "1K", "-q", "2", "--processes", "2", "-b",
        "-l", "4", "-Q", "7", "-t", "20", "-r", "30", "--report-per-port", "--out_json_file", str(file),
    ).stdout  # fmt: skip
    assert len(re.findall(r"process [01]$", printed, re.MULTILINE)) == 2
    report = json.loads(file.read_text())
    assert report["test_info"]["Number_of_qps"] == 2
    # Both ways, of two queue pairs of two processes.
    assert report["results"]["n_iterations"] == 200 * 2 * 2 * 2
    assert report["results"]["BW_average"] > 0


def test_a_timed_run_of_connected_endpoints() -> None:
    printed = perf("write_bw", "--local", "-d", "tcp", "-D", "1", "-s", "4096", "-R").stdout
    assert "RC" in printed
    ((_, iterations, peak, average, rate),) = rows(printed)
    assert iterations > 0 < average
    assert (peak, rate > 0) == (0, True)


def test_a_timed_latency() -> None:
    printed = perf("send_lat", "--local", "-d", "shm", "-D", "0.5").stdout
    assert " #bytes        #iterations       t_avg[usec]    tps average" in printed.splitlines()


@pytest.mark.parametrize("atomic", ["FETCH_AND_ADD", "CMP_AND_SWAP"])
def test_atomics(atomic: str) -> None:
    assert (
        float(
            perf(
                "atomic_bw", "--local", "-d", "shm", "-n", "50", "-A", atomic, "--output=message_rate"
            ).stdout
        )
        > 0
    )


def test_server_and_client() -> None:
    port = str(free_port())
    command = [
        *PERF,
        "ib_read_bw",
        "-d",
        "tcp",
        "-p",
        port,
        "--bind_source_ip",
        "127.0.0.1",
        "--timeout",
        "50",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        printed = perf("read_bw", "-d", "tcp", "-p", port, "-n", "50", "--report_gbits", "127.0.0.1").stdout
        echoed, _ = server.communicate(timeout=30)
    assert server.returncode == 0
    assert "BW average[Gb/sec]" in printed
    assert rows(echoed) == rows(printed) != []


def test_different_programs_do_not_meet() -> None:
    port = str(free_port())
    with subprocess.Popen([*PERF, "read_bw", "-p", port], stderr=subprocess.PIPE, text=True) as server:
        said = perf("write_bw", "-p", port, "127.0.0.1", code=1).stderr
        server.communicate(timeout=30)
    assert "the client measures write_bw, the server read_bw" in said
    assert server.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("write_lat -q 2", "-q is for bandwidth tests"),
        ("send_lat -b", "-b is for bandwidth tests"),
        ("send_bw -H", "-H is for latency tests"),
        ("write_bw -a -s 8", "one of them is meant"),
        ("write_bw -D 1 -n 8", "one of them is meant"),
        ("write_bw -D 1 -f 0.5", "leaves nothing of -D 1"),
        ("write_bw -Q 200", "-Q 200: no more than the 128"),
        ("write_bw -t 2 -l 4", "-l 4: no more than the 2"),
        ("atomic_bw -a", "atomic operations are of 8 bytes"),
        ("send_bw -n 4", "4 is not in the range"),
        ("send_bw -s many", "'many' is no size"),
        ("send_bw --local there", "give no host with it"),
        ("write_bw -A FETCH_AND_ADD there", "-A is for atomic operations"),
        ("write_bw -r 8 there", "-r is for send_bw"),
        ("send_lat -r 8 there", "-r is for send_bw"),
        ("send_bw -R -c RDM there", "one of them is meant"),
        ("send_lat -H -U there", "one of them is meant"),
        ("send_lat -H -D 1 there", "-H is of single operations"),
        ("send_lat -U --output=latency there", "-U does not go with --output=latency"),
        ("send_bw --report-per-port --output=bandwidth there", "--report-per-port does not go with"),
        ("send_bw --out_json", "--out_json is for the client"),
        ("send_bw -w 0", "-w is for the client"),
        ("send_bw --bind_source_ip 127.0.0.1 there", "--bind_source_ip is for a server"),
        ("send_bw -s 2M -q 1024 --processes 256 there", "memory of all queue pairs"),
    ],
)
def test_options_that_do_not_fit(arguments: str, words: str) -> None:
    said = perf(*arguments.split(), code=2).stderr
    assert words in re.sub(r"[\s│]+", " ", said)


def test_what_is_missing_is_named() -> None:
    said = perf("write_bw", "--local", "-d", "shm", "-R", code=61).stderr
    assert re.search("not run: (the other side: )?endpoint type msg: shm has none", said)
    said = perf("send_bw", "--local", "-d", "nothing", code=3).stderr
    assert "nothing" in said


def test_an_interruption_ends_both_sides() -> None:
    command = [*PERF, "send_bw", "--local", "-d", "shm", "-D", "40"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "#bytes" not in process.stdout.readline():
            pass
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)  # to this one alone: the other side is not of its terminal
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - begin < 4


def test_a_limit_that_is_missed() -> None:
    assert (
        "below the limit of 1e+09 (-w)" in perf("write_bw", "--local", "-n", "50", "-w", "1e9", code=1).stderr
    )


def test_a_report_that_cannot_be_written_is_told_before(tmp_path: Path) -> None:
    result = perf("write_bw", "--local", "--out_json_file", str(tmp_path / "no" / "report"), code=1)
    assert "No such file" in result.stderr
    assert "local address" not in result.stdout


def test_they_are_listed() -> None:
    printed = subprocess.run(
        [*FABTESTS, "list"], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert all(f"perf {name} " in printed for name in names())
