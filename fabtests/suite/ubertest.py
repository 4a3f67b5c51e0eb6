# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests ubertest``: every combination of values that one TOML file lists.

```toml
[[test]]
program = ["rdm_pingpong", "rdm_tagged_pingpong"]
provider = ["shm", "tcp"]
sizes = [64, 4096]
iterations = 10
delivery = [false, true]
exclude = [{ provider = "tcp", sizes = 4096 }]
```

`program` and `provider` aside, keys are long options of the programs; true and false are flags. A combination that fits
one table under `exclude` is left out.
"""

import itertools
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fabtests.base.program import Failed
from fabtests.suite.hosts import Hosts
from fabtests.suite.outcome import Outcome
from fabtests.suite.pair import run_entry

__all__ = ["Combination", "combinations", "ubertest"]

# Options that have a letter only, by the names that their values have here.
_LETTERS = {
    "endpoint": "-e",
    "wait": "-c",
    "completion": "-t",
    "operation": "-o",
    "inject": "-j",
    "window": "-W",
}


@dataclass(frozen=True, slots=True)
class Combination:
    """One value of each key."""

    program: str
    provider: str | None
    values: tuple[tuple[str, Any], ...]

    @property
    def entry(self) -> str:
        """Its command line."""
        words = [self.program]
        for key, value in self.values:
            option = _LETTERS.get(key, f"--{key.replace('_', '-')}")
            if value is True:
                words.append(option)
            elif value is not False:
                words += [option, str(value)]
        return " ".join(words)

    def fits(self, pattern: dict[str, Any]) -> bool:
        """Whether it has all of these values."""
        own = {"program": self.program, "provider": self.provider, **dict(self.values)}
        return all(own.get(key) == value for key, value in pattern.items())


def combinations(text: str) -> Iterator[Combination]:
    """Every combination of a file, in a fixed order.

    Raises
    ------
    ValueError
        When the file is not of that form.
    """
    tests = tomllib.loads(text).get("test")
    if not isinstance(tests, list) or not all(isinstance(each, dict) and "program" in each for each in tests):
        raise ValueError("tables [[test]] are meant, each with a program")
    for test in tests:
        excluded = test.pop("exclude", [])
        program, provider = _several(test.pop("program")), _several(test.pop("provider", None))
        keys = list(test)
        for one, other, *values in itertools.product(
            program, provider, *(_several(test[key]) for key in keys)
        ):
            found = Combination(one, other, tuple(zip(keys, values, strict=True)))
            if not any(found.fits(pattern) for pattern in excluded):
                yield found


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def ubertest(
    path: Path, *, provider: str | None, resume: bool, keep_going: bool, limit: float, hosts: Hosts
) -> None:
    """Run a file; the number of the first combination that failed is kept beside it, for ``--resume``.

    Raises
    ------
    Failed
        When something failed.
    """
    try:
        every = list(combinations(path.read_text()))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise click.UsageError(f"{path}: {error}") from None
    state = path.with_suffix(path.suffix + ".failed")
    first = _stored(state, len(every)) if resume else 0
    counts = {"passed": 0, "not_run": 0, "failed": 0}
    failed_first: int | None = None
    for number, each in enumerate(every[first:], start=first):
        outcome = run_entry(each.entry, provider or each.provider, hosts=hosts, limit=limit)
        counts[outcome.result] += 1
        _tell(number, len(every), each, outcome)
        if outcome.result == "failed":
            if failed_first is None:
                failed_first = number
                state.write_text(json.dumps({"combination": number, "of": len(every), "entry": each.entry}))
            if not keep_going:
                break
    if failed_first is None:
        state.unlink(missing_ok=True)
    click.echo("# " + "  ".join(f"{word} {count}" for word, count in counts.items()))
    if failed_first is not None:
        raise Failed(f"combination {failed_first} of {len(every)} failed; --resume begins there")


def _stored(state: Path, total: int) -> int:
    """Where the last run failed; 0 where it did not, or the file has changed since."""
    try:
        stored = json.loads(state.read_text())
    except (OSError, json.JSONDecodeError):
        return 0
    return int(stored["combination"]) if stored.get("of") == total else 0


def _tell(number: int, total: int, each: Combination, outcome: Outcome) -> None:
    where = f" over {each.provider}" if each.provider else ""
    click.echo(f"{number + 1}/{total} {each.entry}{where}: {outcome.result} {outcome.reason}".rstrip())
