# SPDX-License-Identifier: BSD-3-Clause
"""This Python beside another one that has ofipy, of another C library. OFIPY_OTHER_PYTHON names it."""

import os
from pathlib import Path

import pytest

from tests.upgrade.test_upgrade import PRESENT, ROLES, WIRES, run_pair

OTHER = os.environ.get("OFIPY_OTHER_PYTHON", "")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not OTHER, reason="OFIPY_OTHER_PYTHON names no other interpreter"),
]


@pytest.mark.parametrize("swapped", ROLES, ids=["other serves", "this serves"])
@pytest.mark.parametrize("wire", WIRES)
def test_another_python(wire: str, swapped: bool, tmp_path: Path) -> None:
    """Messages of 1 MiB, and memory that the other side writes, reads and counts in."""
    pair = (PRESENT, Path(OTHER)) if swapped else (Path(OTHER), PRESENT)
    assert run_pair(*pair, wire, tmp_path) == ["done", "done"]
