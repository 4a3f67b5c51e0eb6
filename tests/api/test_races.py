# SPDX-License-Identifier: BSD-3-Clause
"""Threads and tasks that do several things with one object at once; what is right stands in ``race_*.py``.

``OFIPY_RACES`` says how often each is tried, 20 times by default; ``OFIPY_SEED`` how long the pauses are.
"""

import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from races import SCENARIOS
from targets import lacks, targets

TURNS = int(os.environ.get("OFIPY_RACES", "20"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = [
        (target, name)
        for target in targets(metafunc.config)
        if not target.endswith("/msg")
        for name, scenario in SCENARIOS.items()
        if not lacks(target, scenario.needs)
    ]
    metafunc.parametrize(("target", "scenario"), every)


@pytest.mark.timeout(150 + TURNS)
def test_races_have_one_of_the_outcomes_that_are_right(
    run: Callable[..., str], target: str, scenario: str
) -> None:
    seed = int(os.environ.get("OFIPY_SEED", zlib.crc32(f"{target} {scenario}".encode())))
    print(run("races.py", target, scenario, TURNS, seed, timeout=120 + TURNS))
