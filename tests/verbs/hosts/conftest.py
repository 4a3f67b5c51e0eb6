# SPDX-License-Identifier: BSD-3-Clause
"""What runs on the host "here" has of the host "there": see ../test_two_hosts_jobs.py."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from other_host import OtherHost


@pytest.fixture(scope="session")
def folder() -> Path:
    """Shared by both hosts, and the machine outside."""
    return Path(os.environ["TWO_HOSTS"])


@pytest.fixture(scope="session")
def there(folder: Path) -> OtherHost:
    other = OtherHost(folder)
    other.wait()
    return other
