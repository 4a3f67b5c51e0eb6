# SPDX-License-Identifier: BSD-3-Clause
"""What a release checks (.ci/check_release.py), and how it makes README's links work elsewhere."""

import importlib.util
import json
import re
from email.message import Message
from pathlib import Path
from types import ModuleType

import pytest

import ofipy

TREE = Path(__file__).parents[2]


def load(name: str) -> ModuleType:
    """A program of .ci as a module."""
    spec = importlib.util.spec_from_file_location(name, TREE / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "meson.build").write_text("project(\n  'ofipy',\n  version: '1.2.3',\n)\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changes\n\n## 1.2.3, 2030-01-31\n\n- x\n\n## 1.2.2, 2029-01-01\n"
    )
    (tmp_path / "README.md").write_text("[a](https://there/a) [b](#b)\n")
    return tmp_path


def test_what_names_one_version_is_released(tree: Path) -> None:
    assert load("check_release").find_faults("v1.2.3", tree) == []


@pytest.mark.parametrize(
    ("tag", "file", "before", "after", "fault"),
    [
        ("v1.2.4", "README.md", "", "", "the tag is v1.2.4, and meson.build has version 1.2.3"),
        ("1.2.3", "README.md", "", "", "the tag v1.2.3 is meant"),
        (
            "v1.2.3",
            "CHANGELOG.md",
            "1.2.3, 2030-01-31",
            "1.2.3, unreleased",
            "begins with '1.2.3, unreleased'",
        ),
        ("v1.2.3", "CHANGELOG.md", "## 1.2.3", "## 1.3.0", "begins with '1.3.0, 2030-01-31'"),
        ("v1.2.3", "README.md", "https://there/a", "docs/a.md", "README.md has 1 links .*, as docs/a.md"),
    ],
)
def test_what_does_not_is_refused(
    tag: str, file: str, before: str, after: str, fault: str, tree: Path
) -> None:
    path = tree / file
    path.write_text(path.read_text().replace(before, after, 1))
    (found,) = load("check_release").find_faults(tag, tree)
    assert re.search(fault, found)


def test_the_version_is_in_one_place() -> None:
    (version,) = re.findall(r"^  version: '([^']+)',$", (TREE / "meson.build").read_text(), re.MULTILINE)
    assert ofipy.__version__ == version
    assert 'dynamic = ["version"]' in (TREE / "pyproject.toml").read_text()


def test_links_of_the_readme_work_everywhere(tree: Path) -> None:
    text = (TREE / "README.md").read_text()
    (tree / "README.md").write_text(load("absolute_links").rewrite(text, "https://there/blob/v1.2.3/"))
    assert load("check_release").find_faults("v1.2.3", tree) == []
    assert "](https://there/blob/v1.2.3/docs/how-to/choose-a-provider.md)" in (tree / "README.md").read_text()
    for target in re.findall(r"\]\(https://there/blob/v1.2.3/([^)#]+)", (tree / "README.md").read_text()):
        assert (TREE / target).exists(), target


def test_the_bill_of_materials_names_what_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    metadata = Message()
    for name, value in (("Name", "ofipy"), ("Version", "1.2.3"), ("License-Expression", "BSD-3-Clause")):
        metadata[name] = value
    (tmp_path / "METADATA").write_text(str(metadata))
    sbom = load("sbom")
    monkeypatch.setattr(sbom, "version", lambda name: "0.17.1")
    bill = json.loads(json.dumps(sbom.bill(tmp_path / "METADATA", "x86_64")))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/ofipy@1.2.3"
    assert bill["metadata"]["timestamp"] == "1970-01-02T00:00:00Z"
    assert [each["name"] for each in bill["components"]] == ["compiler-rt", "glibc libc_nonshared"]
    musl = sbom.bill(tmp_path / "METADATA", "musl-x86_64")
    assert [each["name"] for each in musl["components"]] == ["compiler-rt"]
    assert musl["dependencies"] == [{"ref": "ofipy", "dependsOn": ["compiler-rt"]}]
