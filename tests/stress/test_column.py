# SPDX-License-Identifier: BSD-3-Clause
"""A column of a large array travels without a copy of the whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STRESS = bool(os.environ.get("OFIPY_STRESS"))
# Bytes of the column, and what may be needed beside the arrays. With a copy of the whole it would be the column's size.
SIZE, MORE = (1 << 30, 64 << 20) if STRESS else (128 << 20, 32 << 20)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
def test_a_column_needs_little_memory(provider: str) -> None:
    command = [sys.executable, str(Path(__file__).with_name("column.py")), provider, str(SIZE)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=850)
    assert ran.returncode == 0, ran.stderr
    print(f"{provider}: {int(ran.stdout) / 2**20:.1f} MiB beside a column of {SIZE >> 20} MiB")
    assert int(ran.stdout) < MORE
