# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --job``: the hosts of a job measured in pairs, and the processes on them by their statistics pages."""
