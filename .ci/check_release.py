# SPDX-License-Identifier: BSD-3-Clause
"""Fail unless a tag, the version of meson.build and the newest entry of CHANGELOG.md name one version.

usage: check_release.py TAG

A tag is the version behind a `v`. The entry has a date, and README.md, which the package index shows, has no link that
works in the repository alone.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def find_faults(tag: str, root: Path = ROOT) -> list[str]:
    """What is wrong with this tag for this tree; nothing: it may be released."""
    (version,) = re.findall(r"^  version: '([^']+)',$", (root / "meson.build").read_text(), re.MULTILINE)
    faults = []
    if tag != f"v{version}":
        faults.append(f"the tag is {tag}, and meson.build has version {version}: the tag v{version} is meant")
    changes = re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    newest = changes[0] if changes else "nothing"
    if not re.fullmatch(rf"{re.escape(version)}, \d{{4}}-\d\d-\d\d", newest):
        faults.append(f"CHANGELOG.md begins with {newest!r}; {version + ', YEAR-MONTH-DAY'!r} is meant")
    links = re.findall(r"\]\((?!https?://|#)([^)]+)\)", (root / "README.md").read_text())
    if links:
        faults.append(
            f"README.md has {len(links)} links that work in the repository alone, as {links[0]}: "
            "`python .ci/absolute_links.py URL` puts the address of the tag's files before them"
        )
    return faults


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit("\n".join(find_faults(sys.argv[1])) or None)
