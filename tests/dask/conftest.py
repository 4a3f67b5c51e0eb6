# SPDX-License-Identifier: BSD-3-Clause
"""Connections of Dask over each transport that clusters may be told to use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "conformance"))  # any_object, hostile_pickle

pytest.importorskip("distributed", reason="could not import 'distributed'")

import dask.config
from distributed.comm import registry

from ofipy.dask.backend import OFIBackend


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("default"))  # distributed's own


@pytest.fixture(autouse=True)
def backend() -> None:
    """As the entry point does, where the package is not installed."""
    registry.backends.setdefault("ofi", OFIBackend())


@pytest.fixture(params=["link", "shm", "tcp"])
def provider(request: pytest.FixtureRequest) -> Iterator[str]:
    with dask.config.set({"distributed.comm.ofi.provider": request.param}):
        yield request.param
