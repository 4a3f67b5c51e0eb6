# SPDX-License-Identifier: BSD-3-Clause
"""Print, as constraints of pip, the lowest version of each dependency of ofipy and of its tests."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text())["project"]
for requirement in project["dependencies"] + project["optional-dependencies"]["test"]:
    lowest = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement)
    if not lowest:
        raise SystemExit(f"no lowest version in {requirement!r}")
    print(f"{lowest[1]}=={lowest[2]}")
