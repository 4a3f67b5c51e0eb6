# SPDX-License-Identifier: BSD-3-Clause
"""Processes over a device change to another key one by one, and none is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stress.processes import starting
from tests.stress.rotation import Group

PROCESSES = 4
LOAD = 4


@pytest.mark.timeout(900)
def test_processes_change_to_another_key_one_by_one(tmp_path: Path) -> None:
    with starting() as start:
        print(Group(start, tmp_path, PROCESSES, LOAD, {"provider": "verbs"}, "off").change_key())
