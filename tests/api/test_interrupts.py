# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C within every public call that posts, waits, reads or claims; what the cases check stands in ``storm_*.py``.

``OFIPY_STORM_SECONDS`` says how long each case goes on, a fifth of a second by default; ``OFIPY_SEED`` what it draws.
"""

import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from interrupts import CASES, LONGEST
from targets import lacks, targets

SECONDS = float(os.environ.get("OFIPY_STORM_SECONDS", "0.2"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = [
        (target, name)
        for target in targets(metafunc.config)
        for name, case in CASES.items()
        if not lacks(target, case.needs) and (case.connected or not target.endswith("/msg"))
    ]
    metafunc.parametrize(("target", "case"), every)


@pytest.mark.timeout(LONGEST * SECONDS + 150)
def test_interrupts_leave_nothing_half_done(run: Callable[..., str], target: str, case: str) -> None:
    seed = int(os.environ.get("OFIPY_SEED", zlib.crc32(f"{target} {case}".encode())))
    # It ends itself, and says where it hangs, well before.
    print(run("interrupts.py", target, case, SECONDS, seed, timeout=LONGEST * SECONDS + 120))
