# SPDX-License-Identifier: BSD-3-Clause
"""What a result says of the processor, out of what the kernel tells."""

from pathlib import Path

import pytest

from ofipy.pingpong import machine
from ofipy.pingpong.machine import describe_machine

EPYC = """\
processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
stepping\t: 1
power management:

processor\t: 1
model name\t: Another
"""
PI = """\
processor\t: 0
CPU part\t: 0xd08

Hardware\t: BCM2835
Model\t\t: Raspberry Pi 4 Model B Rev 1.4
"""


@pytest.mark.parametrize(
    ("told", "name", "processor"),
    [
        (EPYC, "AMD EPYC", "AMD EPYC (family 25, model 17, stepping 1)"),
        (PI, "Raspberry Pi 4 Model B Rev 1.4", "Raspberry Pi 4 Model B Rev 1.4"),
    ],
)
def test_the_processor_is_named(
    told: str, name: str, processor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    machine.CPUINFO.write_text(told)
    described = describe_machine()
    assert (described["cpu"], described["processor"]) == (name, processor)


def test_without_that_file_the_architecture_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "absent")
    assert describe_machine()["processor"]
