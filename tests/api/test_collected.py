# SPDX-License-Identifier: BSD-3-Clause
"""Requests that the garbage collector finds together with their endpoint: ``collected.py``."""

from collections.abc import Callable

import pytest

Run = Callable[..., str]


@pytest.mark.parametrize("provider", ["shm", "tcp", "link", "fake"])
def test_requests_are_collected_with_their_endpoint(run: Run, provider: str) -> None:
    said = run("collected.py", provider, timeout=100)
    assert said.count(": collected\n") == 7
