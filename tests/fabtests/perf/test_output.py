# SPDX-License-Identifier: BSD-3-Clause
"""The live line and the peak."""

import numpy as np

from fabtests.perf.output import LiveLine
from fabtests.perf.result import Result, find_peak, merge


def test_the_live_line_adds_up_processes() -> None:
    said: list[str] = []
    line = LiveLine(lambda size, rate: f"{size * rate / 1e6:.0f} MB/sec", said.append)
    line.show(0, 1000, 0.1, 1e6)
    line.show(1, 1000, 0.2, 2e6)
    line.clear()
    assert said[1] == "\r 1000 bytes  0.2 s  3000 MB/sec\x1b[K"
    assert said[2] == "\r\x1b[K"


def test_the_peak_is_the_best_stretch() -> None:
    posted, completed = np.array([0, 100, 200, 300]), np.array([1000, 1100, 1200, 2000])
    # Three groups of 10 from 0 to 1200 ns; all four take 2000.
    assert find_peak(posted, completed, 10) == 30 / 1200 * 1e9


def test_percentiles_are_samples() -> None:
    results = [
        Result(size=2, operations=500, rate=1.0, samples=np.arange(begin, begin + 500.0))
        for begin in (1, 501)
    ]
    values = merge(results).statistics()
    assert (values["percentile_99"], values["percentile_99.9"], values["t_max"]) == (990, 999, 1000)
