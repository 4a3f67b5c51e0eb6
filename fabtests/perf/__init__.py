# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests perf``: perftest's programs over every provider."""
