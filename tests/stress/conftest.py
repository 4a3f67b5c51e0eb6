# SPDX-License-Identifier: BSD-3-Clause
"""Processes for tests that need many of them: started, watched and, whatever happens, ended here."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.stress.processes import Start, starting


def leftovers() -> set[str]:
    """Names that a transport could leave in the file system."""
    return {
        f"{folder}/{name}"
        for folder in ("/dev/shm", "/tmp")
        for name in os.listdir(folder)
        if "ofipy" in name
    }


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = leftovers()
    yield
    assert leftovers() <= before


@pytest.fixture
def workers() -> Iterator[Start]:
    with starting() as start:
        yield start
