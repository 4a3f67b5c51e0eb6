# SPDX-License-Identifier: BSD-3-Clause
"""The tables of ``fabtests compare`` on a terminal of 80 columns, out of figures that a run recorded."""

import io
import re

import pytest
from rich.console import Console

from fabtests.compare import bars
from fabtests.compare.case import Line
from fabtests.compare.cases import CASES
from fabtests.compare.runner import PeerResult, Row
from fabtests.compare.statistics import Summary
from fabtests.compare.tables import print_tables

# case, mode, size, way, what else was found; then value, spread, p99 and ratio of ofipy and of each peer
Figures = tuple[float, float, float | None, float | None]
RECORDED: list[tuple[str, str, int, str, dict[str, float], dict[str, Figures]]] = [
    (
        "shm-latency", "native", 8, "", {},
        {
            "ofipy": (0.384933, 0.01, 1.663, None),
            "mpi4py": (1.4617, 0.06, 2.851, 0.263),
            "libfabric": (0.47811, 0.07, None, 0.805),
            "multiprocessing": (23.5, 0.21, 61.13, 0.0164),
            "openmpi": (0.9203, 0.04, 2.2, 0.418),
            "pyzmq": (38.3, 0.09, 120.4, 0.0101),
            "ucx": (0.33, 0.02, None, 1.17),
        },
    ),
    (
        "shm-bandwidth", "domain-rewritten", 1 << 20, "", {},
        {
            "ofipy": (7802.4, 0.01, None, None),
            "attach": (6670.1, 0.08, None, 1.17),
            "multiprocessing": (417.2, 0.03, None, 18.7),
        },
    ),
    (
        "fan-in", "batch", 8, "", {"jain": 0.9802, "starved": 0},
        {"ofipy": (991267.0, 0.0851, None, None), "mpi4py": (803112.0, 0.31, None, None)},
    ),
    (
        "link-latency", "native", 8, "shm", {},
        {"ofipy": (0.325, 0.3, None, None), "shm": (0.336, 0.36, None, None)},
    ),
    (
        "shm-rma", "target-idle", 1 << 20, "", {},
        {"ofipy": (45213.0, 0.04, None, None), "attach": (11205.0, 0.02, None, 4.04)},
    ),
]  # fmt: skip


def summary(figures: Figures) -> Summary:
    value, spread, p99, _ = figures
    return Summary(value=value, spread=spread, p99=p99, p999=None)


def recorded_rows() -> list[Row]:
    rows = []
    for case, mode, size, way, facts, results in RECORDED:
        peers = {
            name: PeerResult(summary(figures), figures[3], None, "1.0", facts)
            for name, figures in results.items()
            if name != "ofipy"
        }
        rows.append(Row(CASES[case], Line(mode, size, way), summary(results["ofipy"]), peers, facts))
    return rows


@pytest.fixture(scope="module")
def lines() -> list[str]:
    text = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bars, "this_processor", lambda: "AMD EPYC")
        print_tables(Console(file=text, width=80), recorded_rows(), machine={}, absent={})
    return text.getvalue().splitlines()


def test_nothing_is_wider_or_cut(lines: list[str]) -> None:
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_each_contender_has_one_line_with_all_its_figures(lines: list[str]) -> None:
    assert any(re.match(r"  multiprocessing +23\.5 ±21% +61\.1 +0\.0164 *$", line) for line in lines), lines
    assert any(
        re.match(r"  libfabric +0\.478 ±7% +- +0\.805 +≤ 1 × libfabric met *$", line) for line in lines
    )
    assert any(re.match(r"  attach +6670 ±8% +1\.17 +≥ 2 × attach missed *$", line) for line in lines)
    assert any(re.match(r"  ofipy +991267 ±9% +0\.9802 +0 +≥ 0\.95 jain met", line) for line in lines)
    assert any(re.match(r"  best: ucx +1\.17 +behind *$", line) for line in lines)
    assert any(re.match(r"  best: attach +1\.17 +ahead, ≥ 0\.95 × best met *$", line) for line in lines)
    assert any(re.match(r"  shm +0\.336 ±36% +\? +≤ 1\.1 × shm not judged *$", line) for line in lines)


def test_each_row_of_the_result_has_a_heading(lines: list[str]) -> None:
    headings = [line.strip() for line in lines]
    for heading in ("native, 8", "domain-rewritten, 1m", "batch, 8", "native by shm, 8"):
        assert heading in headings
