# SPDX-License-Identifier: BSD-3-Clause
"""Modules that are imported when something of them is first used."""

import os
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy._base.late import Late

SOURCE = """
import late_test_gate

late_test_gate.enter()


def double(number):
    return 2 * number


def method(self):
    return type(self).__name__
"""


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module ``late_test`` that calls ``gate.enter()`` while it is imported."""
    (tmp_path / "late_test.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    gate: Any = types.ModuleType("late_test_gate")
    gate.enter = lambda: None
    monkeypatch.setitem(sys.modules, "late_test_gate", gate)
    yield gate
    sys.modules.pop("late_test", None)


def test_a_function_imports_its_module_when_it_is_called(gate: Any) -> None:
    module = Late("late_test")
    double = module.double
    assert "late_test" not in sys.modules
    assert double(21) == 42
    assert module.double is sys.modules["late_test"].double


def test_a_class_has_the_function_from_the_first_use_on(gate: Any) -> None:
    class Thing:
        method = Late("late_test").method

    class Part(Thing):
        pass

    assert "late_test" not in sys.modules
    assert Part().method() == "Part"
    assert vars(Thing)["method"] is sys.modules["late_test"].method
    assert "method" not in vars(Part)


def test_an_interrupted_import_is_tried_again(gate: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    class Thing:
        method = Late("late_test").method

    gate.enter = interrupt
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            Thing().method()
    gate.enter = lambda: None
    assert Thing().method() == "Thing"


def test_threads_wait_for_the_import_of_another(gate: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def enter() -> None:
        begun.set()
        assert go_on.wait(60)

    gate.enter = enter
    module, answers = Late("late_test"), []
    double = module.double
    threads = [threading.Thread(target=lambda: answers.append(double(21))) for _ in range(4)]
    for each in threads:
        each.start()
    assert begun.wait(60)
    assert answers == []
    go_on.set()
    for each in threads:
        each.join()
    assert answers == [42] * 4


def test_a_fork_waits_for_the_import_of_another_thread(gate: Any) -> None:
    """The child has not the thread that would end the import."""
    begun = threading.Event()

    def enter() -> None:
        begun.set()
        # Time for the fork to come between; without the lock the child would wait for the module for ever.
        threading.Event().wait(0.2)

    gate.enter = enter
    module = Late("late_test")
    double = module.double
    thread = threading.Thread(target=double, args=(1,))
    thread.start()
    assert begun.wait(60)
    pid = os.fork()
    if not pid:
        os._exit(double(21))
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42


def test_names_of_the_package_are_found_and_listed() -> None:
    program = """
import ofipy
assert not set(ofipy._LATE) & set(vars(ofipy))
assert set(ofipy.__all__) <= set(dir(ofipy))
from ofipy import EventKind
assert vars(ofipy)["EventKind"] is EventKind
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)


def test_classes_say_that_they_are_of_the_package_whoever_imports_them() -> None:
    program = """
import ofipy
from importlib import import_module
for name, module in ofipy._LATE.items():
    thing = getattr(import_module(f"ofipy.{module}"), name)
    if isinstance(thing, type):
        assert thing.__module__ == "ofipy", name
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)


def test_methods_are_functions_with_their_signatures() -> None:
    assert ofipy.Endpoint.read is sys.modules["ofipy._operations.rma"].read
    assert ofipy.Domain.defer is sys.modules["ofipy._operations.deferred"].defer
