# SPDX-License-Identifier: BSD-3-Clause
"""Jobs, crowds and losses on two hosts with a key. Each host is a guest with a Soft-RoCE device, on one cable.

The tests in hosts/ run in the guest "here" and log in to the guest "there" by ssh. This file boots both, so it is for a
machine outside, and runs where ``OFIPY_TWO_GUESTS`` is set. It needs the package openssh-server.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from login import prepare
from pair_of_guests import boot

LOST_PEERS = int(os.environ.get("OFIPY_LOST_PEERS", "1000"))
RUNS = int(os.environ.get("OFIPY_RUNS", "2"))
# Of a boot at most; losses.py needs a small part of a second for each peer, doctor.py some for each run.
SECONDS = 1500 + LOST_PEERS // 10 + 100 * RUNS
MEMORY = 3000  # MiB
PYTEST = ["python", "-P", "-m", "pytest", "-v", "-s", "-n", "0", "-p", "no:cacheprovider", "--durations=0"]

pytestmark = [
    pytest.mark.skipif(not os.environ.get("OFIPY_TWO_GUESTS"), reason="OFIPY_TWO_GUESTS is not set"),
    pytest.mark.timeout(SECONDS + 60),
]


@pytest.fixture(autouse=True)
def _device() -> None:
    """The devices are in the guests."""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    prepare(tmp_path)
    path = tmp_path / "job.key"
    subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", "key", "new", str(path)], check=True, capture_output=True
    )
    return path


@pytest.fixture
def there(tmp_path: Path, key: Path) -> Iterator[subprocess.Popen[str]]:
    login = ["python", "-P", "tests/verbs/hosts/login.py", str(tmp_path), "there"]
    guest = boot(tmp_path, "there", [*login, "sleep", str(SECONDS)], seconds=SECONDS, memory=MEMORY)
    yield guest
    guest.terminate()
    guest.communicate(timeout=20)


@pytest.mark.parametrize(
    ("name", "least"), [("jobs", 4), ("crowds", 4), ("losses", 1), ("doctor", 9), ("doctor_job", 2)]
)
def test_on_two_hosts(name: str, least: int, tmp_path: Path, key: Path, there: subprocess.Popen[str]) -> None:
    report = tmp_path / "report.xml"
    login = ["python", "-P", "tests/verbs/hosts/login.py", str(tmp_path), "here"]
    here = boot(
        tmp_path,
        "here",
        [*login, *PYTEST, f"--junit-xml={report}", f"tests/verbs/hosts/{name}.py"],
        seconds=SECONDS,
        memory=MEMORY,
        TWO_HOSTS=str(tmp_path),
        OFIPY_AUTH_KEY_FILE=str(key),
    )
    try:
        for line in here.stdout or ():
            print(line, end="", flush=True)
        status = here.wait(timeout=20)
    finally:
        here.terminate()
        here.communicate(timeout=20)
    assert there.poll() is None, f"the guest there ended with {there.returncode}"
    assert status == 0, f"pytest in the guest: {status}"
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    assert len(cases) >= least
    assert not [case.get("name") for case in cases if len(case)], "some did not run"
