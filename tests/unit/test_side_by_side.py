# SPDX-License-Identifier: BSD-3-Clause
"""How many processes run the tests, as ``tests/conftest.py`` chooses."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PROCESSES = min(2 * len(os.sched_getaffinity(0)), 16)


def count_processes(config: pytest.Config, *paths: str) -> Any:
    """For an invocation with these paths."""
    asked = SimpleNamespace(
        rootpath=config.rootpath,
        invocation_params=SimpleNamespace(dir=config.rootpath),
        args=list(paths),
        getini=config.getini,
    )
    return config.hook.pytest_xdist_auto_num_workers(config=asked)


@pytest.fixture(autouse=True)
def _without_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)


def test_what_a_bare_pytest_runs(pytestconfig: pytest.Config) -> None:
    assert count_processes(pytestconfig, *pytestconfig.getini("testpaths")) == PROCESSES


@pytest.mark.parametrize("path", ["tests/unit", "tests/host/test_tree.py", "tests/conformance", "tests/jobs"])
def test_a_part_of_it(pytestconfig: pytest.Config, path: str) -> None:
    assert Path(path).parts[1] in {Path(each).name for each in pytestconfig.getini("testpaths")}
    assert count_processes(pytestconfig, path) == PROCESSES


@pytest.mark.parametrize("path", ["tests/unit/test_layout.py::test_one", "tests/large", "tests"])
def test_a_single_test_or_another_suite(pytestconfig: pytest.Config, path: str) -> None:
    assert count_processes(pytestconfig, "tests/unit", path) == 0
