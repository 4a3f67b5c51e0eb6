# SPDX-License-Identifier: BSD-3-Clause
"""Modules beside the tests are imported by their names, whichever version of pytest imports the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
