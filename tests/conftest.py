# SPDX-License-Identifier: BSD-3-Clause
"""What all suites share: processes of tests use the installed package, and nothing interrupts a report."""

import ast
import gc
import os
import random
import signal
import sys
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Without it `python -m ofipy` in a checkout would find the source tree, where nothing is built.
os.environ["PYTHONSAFEPATH"] = "1"

# Hypothesis would judge each example, and how fast they are drawn, by the clock of a machine that may be busy.
settings.register_profile("ofipy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ofipy")

# Hypothesis parses the source of tests. Before 3.12.2 and 3.11.8 that fails when the collector ends an asyncio task
# meanwhile, as the reports of tests do: see pytest_runtest_makereport.
if sys.version_info < (3, 12, 2):
    _parse = ast.parse

    def parse_without_collector(*arguments: Any, **named: Any) -> Any:
        """Parse, while the collector is off."""
        enabled = gc.isenabled()
        gc.disable()
        try:
            return _parse(*arguments, **named)
        finally:
            if enabled:
                gc.enable()

    ast.parse = parse_without_collector

# A shell starts what runs in the background with SIGINT ignored, and many tests interrupt themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MOST_PROCESSES = 16


def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Say where it came: of a worker that it ends, pytest-xdist says nothing but that."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        sys.__stderr__.write(f"{excinfo.getrepr()}\n")  # type: ignore[union-attr]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """How many processes run the tests: two for each processor, since most tests wait for something half of the time.

    The suites that a bare ``pytest`` runs have no test that needs the machine, or a name on it, for itself. None beside
    this process where a single test or another suite is named. ``-n`` and pytest-xdist's own variable say otherwise.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    suites = {config.rootpath / name for name in config.getini("testpaths")}
    paths = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
    if not all(suites.intersection((path, *path.parents)) and "::" not in path.name for path in paths):
        return 0
    return min(2 * len(os.sched_getaffinity(0)), MOST_PROCESSES)


def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's sight: tests that call it would look through all of it."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="run the tests in the random order that belongs to this seed",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle what was collected and sorted, in every process alike."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what a failed test left for the collector from ending while its report is written.

    To show the source pytest parses it. The end of an asyncio task that nobody asked prints a traceback, for which
    Python parses as well; before 3.11.8 and 3.12.2 the one within the other is a SystemError
    (github.com/python/cpython/issues/106905).
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
