# SPDX-License-Identifier: BSD-3-Clause
"""Processes that send to each other all the time change to another key one by one, and none is refused."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from tests.stress.processes import Start
from tests.stress.rotation import Group

FULL = bool(os.environ.get("OFIPY_STRESS"))
PROCESSES = 50 if FULL else 5
LOAD = 100
PLACE = {"provider": "tcp", "node": "127.0.0.1"}


def find_openssl() -> bool:
    try:
        ctypes.CDLL("libssl.so.3")
    except OSError:
        return False
    return True


@pytest.mark.parametrize("encryption", ["off", "required"])
@pytest.mark.timeout(3000)
def test_processes_change_to_another_key_one_by_one(workers: Start, tmp_path: Path, encryption: str) -> None:
    if encryption == "required" and not find_openssl():
        pytest.skip("libssl.so.3 is not installed")
    print(Group(workers, tmp_path, PROCESSES, LOAD, PLACE, encryption).change_key())
