# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy topology``: hosts with their NUMA nodes, bridges, NICs and GPUs and their fabric, as one graph."""
