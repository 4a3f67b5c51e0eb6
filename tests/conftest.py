# SPDX-License-Identifier: BSD-3-Clause
"""What all suites share: processes of tests use the installed package, and nothing interrupts a report."""

import gc
import os
from collections.abc import Generator

import pytest

# Without it `python -m ofipy` in a checkout would find the source tree, where nothing is built.
os.environ["PYTHONSAFEPATH"] = "1"


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
