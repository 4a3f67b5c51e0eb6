# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor HOST``: both hosts read their counters, measure between each other, and judge what each saw."""
