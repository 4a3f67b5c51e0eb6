# SPDX-License-Identifier: BSD-3-Clause
"""Other releases beside this one: the last one, and a later one that speaks no version of this one.

OFIPY_LAST_PYTHON and OFIPY_LATER_PYTHON name interpreters that have them, where they are not to be built.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.upgrade.releases import build_last, build_later


@pytest.fixture(scope="session")
def last() -> Path:
    """The interpreter that has the last release."""
    return Path(os.environ.get("OFIPY_LAST_PYTHON") or build_last())


@pytest.fixture(scope="session")
def later() -> Path:
    """The interpreter that has a release which speaks later versions alone."""
    built = os.environ.get("OFIPY_LATER_PYTHON")
    if not built and not os.environ.get("OFIPY_STRESS"):
        pytest.skip("builds a later ofipy: in the full profile alone (OFIPY_STRESS)")
    return Path(built or build_later())
