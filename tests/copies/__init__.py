# SPDX-License-Identifier: BSD-3-Clause
"""Ways of copying memory between two cores, timed side by side: ``python -m tests.copies``."""
