# SPDX-License-Identifier: BSD-3-Clause
"""The measures of language, each on a few lines of its own."""

from pathlib import Path

import pytest

from tests import c_source, language
from tests.c_source import Function
from tests.language import Rules

PAGE = """
# Names

### Verbs

| verb | meaning | instead of |
|---|---|---|
| `open`, `close` | | |
| `set_aside` | | `take` |
| `request`, `cancel`, `stop`, `carry` | | |

Participles of event handlers that do not end in "ed": `lost`.
Participles of events that are no verbs here: `arrived`.

### Verbs that are never used

| never | forms | use |
|---|---|---|
| `take` | `takes`, `taken` | `open` |

## Names that never change

| name | where | dictated by |
|---|---|---|
| `main` | everywhere | C |
| `*_traverse` | `ofipy/requests` | CPython |
"""


@pytest.fixture
def rules() -> Rules:
    return Rules.read(PAGE)


def test_functions_are_found_as_they_are_written() -> None:
    source = """
#define MAKE(name) static int name(void) { return 0; }
/* int in_a_comment(void) { } */
struct pair { int (*call)(int); };
static const struct pair table = {.call = other};
enum kind { FIRST, LAST };
int declared(int);
static inline __attribute__((noinline)) struct pair *
first(struct pair *pair, int (*call)(int))
{
    if (call(1)) { return "}{("[0] ? pair : 0; }
    return 0;
}
int second(void) __attribute__((cold));
PyMODINIT_FUNC PyInit_module(void) { struct pair inner = {0}; return 0; }
static __typeof__(first) *pointer;
void KERNEL(int x) { }
__attribute__((constructor)) static void third(void) { }
_Alignas(64) static int numbers[] = {sizeof(int), 2};
"""
    assert c_source.functions(source) == [
        Function("first", 9, True),
        Function("PyInit_module", 15, False),
        Function("third", 18, True),
    ]


def test_a_function_in_both_branches_of_a_condition_is_found_twice() -> None:
    source = "#ifdef A\nvoid f(void)\n{\n}\n#else\nvoid f(void)\n{\n}\n#endif\n"
    assert [each.line for each in c_source.functions(source)] == [2, 6]


@pytest.mark.parametrize(
    "name",
    [
        *("open_table", "ofpi_table_open", "table_open_quiet", "request_cancel", "set_aside_message"),
        *("is_peer_idle", "ofpi_endpoint_is_full", "is_this_host", "shm_sends_are_over", "can_sleep"),
        *("tcp_endpoint_of", "path_of_peer", "link_inner_of_peer"),
        *("ofpi_peer_lost", "message_arrived", "timer_stopped", "requests_carried", "main"),
    ],
)
def test_names_that_follow_the_rules(rules: Rules, name: str) -> None:
    assert not rules.fault(name, "native/src/file.c")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("open", "one word"),
        ("shm_open", "one word"),
        ("ofpi_lost", "one word"),
        ("open_all", "no object"),
        ("close_later", "no object"),
        ("table_look", "no verb"),
        ("set_table", "no verb"),
        ("is_over", "no verb"),
        ("path_of", "no verb"),
        ("take_table", "'take'"),
        ("is_table_taken", "'taken'"),
        ("table_traverse", "no verb"),
    ],
)
def test_names_that_break_the_rules(rules: Rules, name: str, fault: str) -> None:
    assert fault in rules.fault(name, "native/src/file.c")


def test_names_that_another_interface_dictates_count_in_their_folder_only(rules: Rules) -> None:
    assert not rules.fault("table_traverse", "ofipy/requests/table.c")


def test_a_page_without_its_tables_is_an_error() -> None:
    with pytest.raises(ValueError, match="not where they were"):
        Rules.read("# Names\n")


def test_the_page_has_no_verb_that_it_forbids() -> None:
    rules = Rules.read((language.ROOT / language.PAGE).read_text())
    assert not rules.verbs & rules.forbidden
    assert {"tell", "take", "go", "see", "hear", "give", "taken", "told"} <= rules.forbidden
    assert {"arm", "shut_down", "withdraw"} <= rules.verbs
    # No verb in two rows: a reader would not know which meaning counts.
    named = language.cells(language.section((language.ROOT / language.PAGE).read_text(), "Verbs"), 0)
    assert len(named) == len(set(named))


def test_public_names_and_names_of_several_trees_are_no_fault(tmp_path: Path, rules: Rules) -> None:
    files = {
        "native/include/ofipy/ofp.h": "/* ofp_hidden() */ int ofp_wait(int);\n",
        "native/src/a.c": "int ofp_wait(int x) { }\nint ofp_hidden(void) { }\nstatic void open_table(void) { }\n",
        "native/src/b.c": "static void open_table(void)\n{\n}\n",
        "providers/shm/c.c": "static void open_table(void) { }\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert language.trees_of(tmp_path) == ["native", "providers/shm", "ofipy"]
    public = language.public_names(tmp_path)
    assert public == {"ofp_wait"}
    wrong, shared = language.measure_names(tmp_path, "native", rules, public)
    assert wrong.where == ["native/src/a.c:2: ofp_hidden: one word: no verb with its object"]
    assert shared.where == ["open_table: native/src/a.c:3, native/src/b.c:1"]
    assert (shared.value, shared.bound, shared.met) == (1, 0, False)
    assert all(each.met for each in language.measure_names(tmp_path, "providers/shm", rules, public))


def test_comments_and_their_first_words() -> None:
    source = (
        "/* SPDX-License-Identifier: BSD-3-Clause */\n/*\n * What is\n * here.\n */\n"
        'int x; /* that one */\nchar *s = "/* no comment */";\n/* ---------- whatever */\n/* ------ */\n'
        "/* Items, so many */\n/* It's here */\n"
    )
    found = list(c_source.comments(source))
    assert found == [
        (2, "What is here."),
        (6, "that one"),
        (8, "whatever"),
        (10, "Items, so many"),
        (11, "It's here"),
    ]
    assert [language.is_riddle(text) for _, text in found] == [True, True, True, False, True]


def test_checks_of_null_do_not_count() -> None:
    source = """
#define OFPI_CHECK(condition) check(condition)
    OFPI_CHECK(peer);
    OFPI_CHECK(peer != NULL);
    OFP_CHECK(NULL == peer->domain);
    /* OFPI_CHECK(a == b); */
    OFP_CHECK(ofp_is_held(peer->domain));
    OFPI_CHECK(first->count <=
               last->count);
    OFPI_CHECK(!peer->closed);
    static_assert(sizeof(int) == 4, "int");
"""
    assert [" ".join(each.split()) for each in c_source.checks(source)] == [
        "ofp_is_held(peer->domain)",
        "first->count <= last->count",
        "!peer->closed",
    ]
    assert c_source.code_lines(source) == 9


def test_sentences_of_a_page() -> None:
    page = """# A heading. Still the heading
One sentence of `code. And more` and [a link](https://example.org/a.b). The
next one, e.g. this (with more.) And "a third."

- an item
  goes on
- another item: with a colon

| a | table. Of cells |
|---|---|

```python
Some code. Not a sentence
```

:::{note}
Counted.
:::
<!-- No. Comment -->
term
: Its definition.
"""
    assert [text for _, text in language.sentences(page)] == [
        "A heading.",
        "Still the heading",
        "One sentence of CODE and a link.",
        "The next one, e.g. this (with more.)",
        'And "a third."',
        "an item goes on",
        "another item: with a colon",
        "Counted.",
        "term",
        "Its definition.",
    ]
    assert language.word_count("one — two, `three` 4 …") == 4


def test_long_sentences_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("Short.\n\n" + "word " * 36 + "end.\n")
    (tmp_path / "docs" / "page.md").write_text("word " * 34 + "end.\n")
    found = language.measure_pages(tmp_path)
    assert found.where == [f"README.md:3: 37 words: {'word ' * 16}"]
    assert not found.met


def test_the_largest_circle_counts_headers_with_their_sources(tmp_path: Path) -> None:
    folder = tmp_path / "ofipy" / "requests"
    folder.mkdir(parents=True)
    for number in range(3):
        text = f"void f{(number + 1) % 3}(void);\nvoid f{number}(void)\n{{ f{(number + 1) % 3}(); }}\n"
        (folder / f"part{number}.c").write_text(text)
    found = language.measure_circle(tmp_path, "ofipy/requests")
    assert (found.value, found.met, found.where) == (3, False, ["part0 part1 part2"])


def test_the_report_prints_each_bound_and_the_first_places() -> None:
    measures = [
        language.Measure("comments", "native", 0.5, language.RIDDLE_PERCENT, True),
        language.Measure("checks", "native", 1.0, language.CHECKS, False, ["a.c: 1"]),
        language.Measure("functions", "native", 2, 0, False, ["one", "two"]),
        language.Measure("circle", "native", 2, language.CIRCLE, True),
    ]
    lines = list(language.report(measures, 1))
    assert [line.split()[-2:] for line in lines[1:5]] == [
        ["1", "met"],
        ["3", "MISSED"],
        ["0", "MISSED"],
        ["2", "met"],
    ]
    assert lines[-3:] == ["\nfunctions, native:", "  one", "  and 1 more; --places prints more, --json all"]


def test_every_name_comment_and_check_meets_its_bound() -> None:
    """Circles of files are the matter of test_layout.py."""
    tree = language.ROOT
    rules = Rules.read((tree / language.PAGE).read_text())
    public = language.public_names(tree)
    measures = [language.measure_pages(tree)]
    for part in language.trees_of(tree):
        measures += [
            *language.measure_names(tree, part, rules, public),
            language.measure_comments(tree, part),
        ]
    measures += [language.measure_checks(tree, part) for part in ("native", "providers", "ofipy")]
    missed = [each for each in measures if not each.met]
    assert not missed, "\n".join(language.report(missed, 10))
