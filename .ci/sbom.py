# SPDX-License-Identifier: BSD-3-Clause
"""Write into a wheel's metadata what its libraries contain beside ofipy's own code: a software bill of materials.

usage: sbom.py DIST-INFO TARGET

The linker adds code of its own: compiler-rt, and with glibc the functions that the C library links statically. The file
is CycloneDX in the folder of PEP 770, `sboms`.
"""

import json
import os
import sys
from datetime import UTC, datetime
from email.parser import HeaderParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

LINKED = {
    "compiler-rt": {
        "name": "compiler-rt",
        "description": "functions of the compiler, which zig links statically",
        "license": "Apache-2.0 WITH LLVM-exception",
    },
    "glibc": {
        "name": "glibc libc_nonshared",
        "description": "functions of glibc 2.28 that every program links statically",
        "license": "LGPL-2.1-or-later WITH GNU-compiler-exception",
    },
}


def component(linked: dict[str, str], zig: str) -> dict[str, Any]:
    """One library that is part of the wheel's."""
    return {
        "type": "library",
        "bom-ref": linked["name"],
        "name": linked["name"],
        "version": zig,
        "description": f"{linked['description']}; as zig {zig} brings it",
        "licenses": [{"expression": linked["license"]}],
        "purl": f"pkg:pypi/ziglang@{zig}",
    }


def bill(metadata: Path, target: str) -> dict[str, Any]:
    """The whole document."""
    headers = HeaderParser().parsestr(metadata.read_text())
    name, release, zig = headers["Name"], headers["Version"], version("ziglang")
    linked = [LINKED["compiler-rt"]] + ([] if target.startswith("musl") else [LINKED["glibc"]])
    components = [component(each, zig) for each in linked]
    built = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": built.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": name,
                "name": name,
                "version": release,
                "licenses": [{"expression": headers["License-Expression"]}],
                "purl": f"pkg:pypi/{name}@{release}",
            },
            "properties": [{"name": "ofipy:target", "value": target}],
        },
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def main() -> None:
    """Write the file."""
    folder, target = Path(sys.argv[1]), sys.argv[2]
    place = folder / "sboms" / "ofipy.cdx.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(bill(folder / "METADATA", target), indent=2) + "\n")


if __name__ == "__main__":
    main()
