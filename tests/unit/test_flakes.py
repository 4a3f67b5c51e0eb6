# SPDX-License-Identifier: BSD-3-Clause
"""The program that runs all tests again and again: what it counts, and that it says what failed."""

import json
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).parents[2]


def test_what_failed_adds_up(tmp_path: Path) -> None:
    results, order = tmp_path / "flakes.json", tmp_path / "order"
    options = ["--seed", "3", "--results", str(results), "tests/flakes_example.py"]

    def run(times: int, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.flakes", str(times), *options],
            cwd=TREE,
            env={"PATH": "/usr/bin:/bin", "ORDER": str(order)} | variables,
            capture_output=True,
            text=True,
        )

    good = run(2)
    assert good.returncode == 0, good.stdout + good.stderr
    numbers = order.read_text().split()
    assert sorted(numbers[:6]) == sorted(numbers[6:]) == list("012345")
    assert numbers[:6] != numbers[6:]
    bad = run(1, FAIL="yes")
    assert bad.returncode == 1
    assert "seed 3, quiet: 7 tests, 1 failed" in bad.stdout
    assert order.read_text().split()[12:] == numbers[:6]
    kept = json.loads(results.read_text())
    assert (kept["tests_times_runs"], kept["failed"]) == (21, 1)
    assert [run["busy"] for run in kept["runs"]] == [False, True, False]
    (failure,) = kept["runs"][2]["failures"]
    assert failure["test"].endswith("test_that_may_fail")
    assert "on purpose" in failure["text"]
