# SPDX-License-Identifier: BSD-3-Clause
"""What the core costs without Python: loops in C over the public calls, for benchmarks."""

from ofipy.measure.alone import match, socket_pingpong, socket_stream
from ofipy.measure.endpoints import fetch_add, pingpong, prepared, rma, stream, write

__all__ = [
    "fetch_add",
    "match",
    "pingpong",
    "prepared",
    "rma",
    "socket_pingpong",
    "socket_stream",
    "stream",
    "write",
]
