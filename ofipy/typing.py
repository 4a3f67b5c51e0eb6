# SPDX-License-Identifier: BSD-3-Clause
"""Types for annotations of programs that use ofipy."""

from ofipy._memory.accepted import Memory

__all__ = ["Memory"]
