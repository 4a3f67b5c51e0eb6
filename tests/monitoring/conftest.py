# SPDX-License-Identifier: BSD-3-Clause
"""What operators run beside ofipy: Prometheus' client, its checker promtool, and Prometheus itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.host import trees


def program(name: str) -> str:
    """The path of a program, or a skip that says what to install."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (Debian's package prometheus)")
    return path


@pytest.fixture(scope="session")
def promtool() -> str:
    return program("promtool")


@pytest.fixture(scope="session")
def prometheus_program() -> str:
    return program("prometheus")


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded machine with an InfiniBand device, one for RoCE, one of software, and TCP."""
    return trees.together().write(tmp_path_factory.mktemp("machine"))
