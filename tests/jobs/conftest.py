# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under launchers that are installed; where one is not, its tests are skipped."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from meeting import Meeting

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


@pytest.fixture(scope="module")
def _meetings() -> Iterator[list[Meeting]]:
    """Closed behind the executors, whose workers may still read."""
    meetings: list[Meeting] = []
    yield meetings
    for each in meetings:
        each.close()


@pytest.fixture
def meeting(tmp_path: Path, _meetings: list[Meeting]) -> Iterator[Callable[[], Meeting]]:
    """Makes tasks that run until they are told to end; at the latest the end of the test tells them."""
    from meeting import Meeting

    made: list[Meeting] = []

    def make() -> Meeting:
        made.append(Meeting(tmp_path, f"meeting-{len(made)}"))
        return made[-1]

    yield make
    for each in made:
        each.end()
    _meetings.extend(made)
