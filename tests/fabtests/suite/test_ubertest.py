# SPDX-License-Identifier: BSD-3-Clause
"""Every combination of the values in a file, and beginning again where one failed."""

from pathlib import Path

import click
import pytest

from fabtests.base.program import Failed
from fabtests.suite import ubertest as module
from fabtests.suite.hosts import Hosts
from fabtests.suite.outcome import Outcome
from fabtests.suite.ubertest import combinations, ubertest

TEXT = """
[[test]]
program = ["rdm_pingpong", "rdm_bw"]
provider = ["shm", "tcp"]
sizes = [64, 4096]
delivery = [false, true]
iterations = 5
exclude = [{ provider = "tcp", sizes = 4096 }]
"""


def test_the_cross_product_without_what_is_excluded() -> None:
    found = list(combinations(TEXT))
    assert len(found) == 2 * 2 * 2 * 2 - 4
    assert found[1].entry == "rdm_pingpong --sizes 64 --delivery --iterations 5"
    assert not any(each.fits({"provider": "tcp", "sizes": 4096}) for each in found)


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("program = 'rdm'")
    with pytest.raises(click.UsageError, match="test"):
        ubertest(file, provider=None, resume=False, keep_going=False, limit=1, hosts=Hosts())


def test_it_begins_again_with_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, ran, broken = tmp_path / "x.toml", [], True

    def run_entry(entry: str, provider: str | None, **_options: object) -> Outcome:
        ran.append((entry, provider))
        return Outcome(entry, "failed" if broken and len(ran) == 3 else "passed", 0.0)

    monkeypatch.setattr(module, "run_entry", run_entry)
    file.write_text(TEXT)
    with pytest.raises(Failed, match="combination 2 of 12"):
        ubertest(file, provider=None, resume=True, keep_going=False, limit=1, hosts=Hosts())
    assert len(ran) == 3
    third, broken = ran[2], False
    ran.clear()
    ubertest(file, provider=None, resume=True, keep_going=False, limit=1, hosts=Hosts())
    assert len(ran) == 10
    assert ran[0] == third
    assert list(tmp_path.iterdir()) == [file]
