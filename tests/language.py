# SPDX-License-Identifier: BSD-3-Clause
"""Measures the language of the sources and pages: ``python -m tests.language [--json] [FOLDER]``.

Names of C functions are checked against the tables of ``docs/explanation/names.md``: that page is the authority, and
a verb that is added there is allowed here. The other measures are comments that begin with an unexplained subject,
checks of invariants, long sentences in the pages, and the largest circle of files. The exit status is 1 if a bound is
missed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.c_source import blanked, checks, code_lines, comments, functions, without_comments
from tests.unit import test_layout as layout

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/explanation/names.md"
PREFIXES = ("ofpi", "ofp", "link", "shm", "tcp", "verbs", "bridge")
PREDICATES = frozenset(("is", "are", "has", "can", "needs"))
# Words that say when, where or how many, and never what a function acts on.
NO_OBJECT_WORDS = (
    "a all also an and any as at away back before behind both by directly down each early else every "
    "few first for from here how if in instead into it its last late later more new next no not now "
    "of off on once one only or other others out over own plain rest same simply some somebody soon "
    "that the them then there this through to too up us via what when where who with without"
)
NO_OBJECTS = frozenset(NO_OBJECT_WORDS.split())
RIDDLES = frozenset(("who", "whoever", "what", "whatever", "it", "that", "so", "such"))
RIDDLE_PERCENT = 1.0  # of comments; fewer
CHECKS = 3.0  # in a thousand lines of code; at least
WORDS = 35  # of a sentence; at most
CIRCLE = 2  # files; at most


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of one tree, and whether it is within its bound."""

    name: str
    tree: str
    value: float
    bound: float
    met: bool
    where: list[str] = field(default_factory=list)


# Comments


def is_riddle(comment: str) -> bool:
    """Whether it begins with a subject that only the author knows."""
    word = re.match(r"\W*([A-Za-z]+)", comment)
    return word is not None and word.group(1).lower() in RIDDLES


# Names


@dataclass(frozen=True, slots=True)
class Rules:
    """What the page of names says about functions."""

    verbs: frozenset[str]
    forbidden: frozenset[str]
    participles: frozenset[str]
    dictated: list[tuple[str, str]]  # pattern of a name, folder

    @classmethod
    def read(cls, page: str) -> Rules:
        """Parse the page."""
        verbs = frozenset(cells(section(page, "Verbs"), 0))
        never = section(page, "Verbs that are never used")
        irregular = re.findall(
            r"^Participles of event.*?(?=\n\n|\nParticiples|\Z)", section(page, "Verbs"), re.M | re.S
        )
        participles = {name for text in irregular for name in quoted(text)}
        rules = cls(
            verbs,
            frozenset([*cells(never, 0), *cells(never, 1)]),
            frozenset(participles).union(*(past(verb) for verb in verbs)),
            [
                (pattern, "" if "everywhere" in row[1] else quoted(row[1])[0])
                for row in rows(section(page, "Names that never change"))
                for pattern in quoted(row[0])
            ],
        )
        if not (rules.verbs and rules.forbidden and rules.participles and rules.dictated):
            raise ValueError("the tables of names.md are not where they were")
        return rules

    def fault(self, name: str, file: str) -> str:
        """Why this is no name for a function; empty if it is one."""
        if any(fnmatch.fnmatchcase(name, pattern) and file.startswith(at) for pattern, at in self.dictated):
            return ""
        words = name.strip("_").split("_")
        if said := sorted(self.forbidden.intersection(words)):
            return f"'{said[0]}' is never used"
        prefixed = words[0] in PREFIXES
        if prefixed:
            words = words[1:]
        if is_predicate(words, prefixed):
            return ""
        if is_conversion(words, prefixed):
            return ""
        if len(words) < 2:
            return "one word: no verb with its object"
        for verb in (*self.verbs, *self.participles):
            parts = verb.split("_")
            for place in range(len(words) - len(parts) + 1):
                rest = [*words[:place], *words[place + len(parts) :]]
                if words[place : place + len(parts)] == parts and not NO_OBJECTS.issuperset(rest):
                    return ""
        has_verb = not (self.verbs | self.participles).isdisjoint(words)
        return "no object of the verb" if has_verb else "no verb of the table"


def is_predicate(words: list[str], prefixed: bool) -> bool:
    """Whether it is ``is_what``, or ``prefix_noun_is_what``, where the noun may be what it is about."""
    place = next((place for place, word in enumerate(words[:-1]) if word in PREDICATES), -1)
    about = [*words[place + 1 :], *(words[:place] if prefixed else [])]
    return place >= 0 and not NO_OBJECTS.issuperset(about)


def is_conversion(words: list[str], prefixed: bool) -> bool:
    """Whether it is ``prefix_noun_of``, or ``noun_of_noun`` with or without a prefix."""
    place = words.index("of") if "of" in words else 0
    return place > 0 and (prefixed or place < len(words) - 1)


def section(page: str, title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", page, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of tables, without headings."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line, before in zip(lines, ["", *lines], strict=False)
        if before and not line.startswith("|---")
    ]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def cells(text: str, column: int) -> list[str]:
    return [name for row in rows(text) for name in quoted(row[column])]


def past(verb: str) -> list[str]:
    """The forms that a regular past participle may have."""
    first, *rest = verb.split("_")
    forms = [f"{first}ed", f"{first}{first[-1]}ed"]
    if first.endswith("e"):
        forms.append(f"{first}d")
    if first.endswith("y"):
        forms.append(f"{first[:-1]}ied")
    return ["_".join([form, *rest]) for form in forms]


def public_names(tree: Path) -> set[str]:
    """What the installed headers declare."""
    headers = layout.sources(tree / "native/include/ofipy", ".h")
    texts = [without_comments(path.read_text()) for path in headers]
    return {name for text in texts for name in re.findall(r"\b(ofp_\w+)\s*\(", text)}


# Pages


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """Line and text of each sentence of a page, without code, tables and comments."""
    page = re.sub(r"<!--.*?-->", lambda found: blanked(found.group()), page, flags=re.DOTALL)
    # Admonitions are prose; every other fence of backticks or tildes is code or a directive.
    prose = r"(?!\{(?:note|tip|hint|warning|important|caution|admonition)\})"
    page = re.sub(
        rf"^([ \t]*)(`{{3,}}|~{{3,}}){prose}[^\n]*\n.*?^[ \t]*\2[ \t]*$",
        lambda found: blanked(found.group()),
        page,
        flags=re.MULTILINE | re.DOTALL,
    )
    page = re.sub(
        r"^[ \t]*(?:`{3,}|:{3,}|:[\w-]+:).*$", lambda found: blanked(found.group()), page, flags=re.MULTILINE
    )
    for line, block in blocks(page):
        text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", block)
        # Code is one word, and a full stop within it ends nothing.
        text = re.sub(r"(`+)(.+?)\1", "CODE", text, flags=re.DOTALL)
        text = re.sub(r"\{[a-z:]+\}", "", text)
        text = " ".join(text.split())
        end = r"""([.!?]["')*_”»]*)\s+(?=["'(*_“«]*[A-Z0-9])"""
        for sentence in re.sub(end, r"\1\n", text).splitlines():
            if sentence:
                yield line, sentence


def blocks(page: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, items and headings, with the line where each begins."""
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*page.splitlines(), ""], 1):
        ends = not line.strip() or line.lstrip().startswith(("|", "#"))
        item = re.match(r"\s*(?:[-*+]|\d+[.)]|:|>)\s+", line)
        if (ends or item) and block:
            yield begin, "\n".join(block)
            block = []
        if line.lstrip().startswith("#"):
            yield number, line.lstrip("# ")
        elif not ends:
            begin = begin if block else number
            block.append(line[item.end() :] if item else line)


def word_count(sentence: str) -> int:
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


# The measures


def c_sources(folder: Path) -> list[Path]:
    return layout.sources(folder, ".c", ".h")


def trees_of(tree: Path) -> list[str]:
    """The trees of C: the core, each provider, the extension module."""
    providers = sorted({path.relative_to(tree).parts[1] for path in layout.sources(tree / "providers", ".c")})
    return ["native", *(f"providers/{each}" for each in providers), "ofipy"]


def measure_names(tree: Path, part: str, rules: Rules, public: set[str]) -> list[Measure]:
    """Functions without verb and object, and static ones that share a name."""
    wrong: list[str] = []
    static_ones: dict[str, dict[str, int]] = defaultdict(dict)
    for path in c_sources(tree / part):
        file = path.relative_to(tree).as_posix()
        for function in functions(path.read_text()):
            # A header may define what has no other name elsewhere: it counts as any static function.
            if function.static:
                static_ones[function.name].setdefault(file, function.line)
            if function.name not in public and (fault := rules.fault(function.name, file)):
                wrong.append(f"{file}:{function.line}: {function.name}: {fault}")
    shared = [
        f"{name}: {', '.join(f'{file}:{line}' for file, line in places.items())}"
        for name, places in sorted(static_ones.items())
        if len(places) > 1
    ]
    return [
        Measure("functions without verb and object", part, len(wrong), 0, not wrong, wrong),
        Measure("static functions that share a name", part, len(shared), 0, not shared, shared),
    ]


def measure_comments(tree: Path, part: str) -> Measure:
    total, found = 0, []
    for path in c_sources(tree / part):
        for line, text in comments(path.read_text()):
            total += 1
            if is_riddle(text):
                found.append(f"{path.relative_to(tree).as_posix()}:{line}: {text[:90]}")
    percent = round(100 * len(found) / max(total, 1), 2)
    name = "comments without a named subject, %"
    return Measure(name, part, percent, RIDDLE_PERCENT, percent < RIDDLE_PERCENT, found)


def measure_checks(tree: Path, part: str) -> Measure:
    texts = {path.relative_to(tree).as_posix(): path.read_text() for path in c_sources(tree / part)}
    found = [f"{file}: {len(each)}" for file, text in texts.items() if (each := checks(text))]
    lines = sum(code_lines(text) for text in texts.values())
    rate = round(1000 * sum(len(checks(text)) for text in texts.values()) / max(lines, 1), 2)
    return Measure("checks in 1,000 lines of code", part, rate, CHECKS, rate >= CHECKS, found)


def measure_pages(tree: Path) -> Measure:
    pages = [tree / "README.md", *sorted((tree / "docs").rglob("*.md"))]
    long = [
        f"{path.relative_to(tree).as_posix()}:{line}: {count} words: {sentence[:80]}"
        for path in pages
        if path.exists() and "_build" not in path.parts
        for line, sentence in sentences(path.read_text())
        if (count := word_count(sentence)) > WORDS
    ]
    return Measure(f"sentences of more than {WORDS} words", "pages", len(long), 0, not long, long)


def measure_circle(tree: Path, part: str) -> Measure:
    """The largest set of files that all know each other."""
    graph = layout.graph_of_python(tree / part) if part == "ofipy" else layout.graph_of_c(tree, part)
    found = layout.circles(graph, 1)
    largest = max((len(each) for each in found), default=1)
    where = [" ".join(each) for each in found if len(each) > CIRCLE]
    return Measure("largest circle of files", part, largest, CIRCLE, largest <= CIRCLE, where)


def measure(tree: Path) -> list[Measure]:
    """Everything, in the order of the report."""
    rules, public = Rules.read((tree / PAGE).read_text()), public_names(tree)
    parts = trees_of(tree)
    named = [measure_names(tree, part, rules, public) for part in parts]
    circles = dict.fromkeys([*layout.parts_of_c(tree), "ofipy"])
    return [
        *(each[0] for each in named),
        *(each[1] for each in named),
        *(measure_comments(tree, part) for part in parts),
        *(measure_checks(tree, part) for part in ("native", "providers", "ofipy")),
        measure_pages(tree),
        *(measure_circle(tree, part) for part in circles),
    ]


def bound_text(each: Measure) -> str:
    """The bound with its direction."""
    if each.bound == 0:
        return "0"
    sign = "≥" if each.bound == CHECKS else "<" if each.bound == RIDDLE_PERCENT else "≤"
    return f"{sign} {each.bound:g}"


def report(measures: list[Measure], most: int) -> Iterator[str]:
    """The table, and below it the first places of each measure that is missed."""
    yield f"{'measure':38} {'tree':18} {'value':>8} {'bound':>6}  "
    for each in measures:
        met = "met" if each.met else "MISSED"
        yield f"{each.name:38} {each.tree:18} {each.value:>8g} {bound_text(each):>6}  {met}"
    for each in measures:
        if not each.met and each.where and most:
            yield f"\n{each.name}, {each.tree}:"
            yield from (f"  {place}" for place in each.where[:most])
            if len(each.where) > most:
                yield f"  and {len(each.where) - most} more; --places prints more, --json all"


def main() -> int:
    """Measure a tree and report."""
    parser = argparse.ArgumentParser(description="Measure the language of the sources and pages.")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--json", action="store_true", help="print everything for programs")
    parser.add_argument("--places", type=int, default=5, metavar="N", help="places to print of each miss (5)")
    options = parser.parse_args()
    measures = measure(options.folder.resolve())
    if options.json:
        print(json.dumps({"schema": 1, "measures": [asdict(each) for each in measures]}, indent=1))
    else:
        print(*report(measures, options.places), sep="\n")
    return 0 if all(each.met for each in measures) else 1


if __name__ == "__main__":
    sys.exit(main())
