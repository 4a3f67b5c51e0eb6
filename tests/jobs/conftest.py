# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under launchers that are installed; where one is not, its tests are skipped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

MARKS = (
    "OFIPY_",
    "PMI",
    "SLURM_",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "MASTER_",
    "TORCHELASTIC_",
    "OMPI_",
    "FLUX_",
    "PALS_",
    "JSM_",
)


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(MARKS)]:
        monkeypatch.delenv(name)


@pytest.fixture
def shared_memory() -> Iterator[None]:
    """Nothing is left behind in /dev/shm."""
    folder = Path("/dev/shm")
    before = set(folder.iterdir())
    yield
    assert {each for each in folder.iterdir() if "ofipy" in each.name} <= before
