# SPDX-License-Identifier: BSD-3-Clause
"""Every failure at every step, replayed: ``python -m tests.explore``. See docs/explanation/exploring.md."""
