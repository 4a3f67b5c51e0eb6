# SPDX-License-Identifier: BSD-3-Clause
"""``python -m ofipy`` is the same as the ``ofipy`` script."""

import sys

from ofipy.cli import main

if __name__ == "__main__":
    sys.exit(main())
