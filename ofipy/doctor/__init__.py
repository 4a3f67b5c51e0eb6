# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor``: rules with ids, thresholds and remedies, and what they find.

A rule reads through :class:`ofipy.host.tree.Tree` or measures, compares with its threshold, and returns a finding. All
thresholds and remedies are in one table, ``rules.py``.
"""
