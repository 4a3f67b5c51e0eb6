# SPDX-License-Identifier: BSD-3-Clause
"""Write README.md's links into this repository as links that work everywhere.

usage: absolute_links.py URL

URL is where the files of the release are shown, as https://HOST/OWNER/ofipy/blob/v1.0.0. The package index shows
README.md and knows no repository.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def rewrite(text: str, url: str) -> str:
    """The text with the URL before each link that has none."""
    return re.sub(r"\]\((?!https?://|#)([^)]+)\)", lambda link: f"]({url.rstrip('/')}/{link[1]})", text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.match(r"https?://", sys.argv[1]):
        sys.exit(__doc__)
    README.write_text(rewrite(README.read_text(), sys.argv[1]))
