# SPDX-License-Identifier: BSD-3-Clause
"""`fabtests compare` over a device, beside perftest and libfabric: a short run of both cases."""

import json
import shutil
import subprocess
import sys

import pytest

MODES = "native-send,native-write,native-read"


@pytest.mark.skipif(shutil.which("ib_send_lat") is None, reason="perftest is not installed")
@pytest.mark.timeout(300)
def test_both_cases_beside_perftest() -> None:
    command = [sys.executable, "-P", "-m", "fabtests", "compare", "--case", "verbs-latency,verbs-bandwidth"]
    done = subprocess.run(
        [*command, "--mode", MODES, "--bytes", "8", "--rounds", "1", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    rows = {(row["case"], row["mode"]): row for row in document["rows"]}
    assert {mode for case, mode in rows if case == "verbs-latency"} == set(MODES.split(","))
    assert {mode for case, mode in rows if case == "verbs-bandwidth"} == {"native-write", "native-read"}
    for row in rows.values():
        assert row["peers"]["perftest"]["value"] > 0, document["absent"]
        assert row["ofipy"]["value"] > 0
    if not any("libfabric" in peer for peer in document["absent"]):
        assert "libfabric" in rows["verbs-latency", "native-send"]["peers"]
