# SPDX-License-Identifier: BSD-3-Clause
"""``python -m fabtests`` is the same as the ``fabtests`` script."""

import sys

from fabtests.cli import main

if __name__ == "__main__":
    sys.exit(main())
