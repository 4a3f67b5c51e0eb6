# SPDX-License-Identifier: BSD-3-Clause
"""What operators' commands read of a host: devices, ports and counters, through one tree of the kernel's files.

Nothing of it is imported by ``import ofipy``. The rules are those of ``docs/explanation/operators.md``.
"""
