# SPDX-License-Identifier: BSD-3-Clause
"""Both sides of a ping-pong, in two processes: what ``ofipy pingpong`` and the benchmarks measure with."""
