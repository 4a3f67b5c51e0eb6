# SPDX-License-Identifier: BSD-3-Clause
"""What all suites share: processes that a test starts use the installed package, wherever they are started."""

import os

# Without it `python -m ofipy` in a checkout would find the source tree, where nothing is built.
os.environ["PYTHONSAFEPATH"] = "1"
