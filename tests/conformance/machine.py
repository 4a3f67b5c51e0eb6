# SPDX-License-Identifier: BSD-3-Clause
"""How much a test may ask of the machine: in a guest without KVM every instruction is emulated."""

from pathlib import Path

SLOWNESS = 4 if "QEMU TCG" in Path("/proc/cpuinfo").read_text() else 1
