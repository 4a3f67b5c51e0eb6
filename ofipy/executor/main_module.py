# SPDX-License-Identifier: BSD-3-Clause
"""The script that submits tasks, as the workers know it.

A function of the script is pickled by its name, as one of the module ``__main__``. So a worker loads the script too,
under the name ``__worker__``, and has it in the place of its own ``__main__``. What the script does below
``if __name__ == "__main__":`` happens in the script's own process alone.
"""

import importlib.util
import io
import os
import sys
import types
from dataclasses import dataclass
from typing import Any

__all__ = ["WORKER", "Main", "describe", "is_loading", "load", "run"]

WORKER = "__worker__"
"""The ``__name__`` of the script in a worker, as with mpi4py.futures."""

_loading = False


@dataclass(frozen=True, slots=True)
class Main:
    """A main module and where it finds others."""

    module: str | None = None
    """Its full name, if it was started by ``-m``."""
    path: str | None = None
    """Its file."""
    search: tuple[str, ...] = ()
    """``sys.path``."""


def describe() -> Main:
    """The main module of this process; without name and path if no other process can load it."""
    main = sys.modules["__main__"]
    search = tuple(os.path.abspath(each) for each in sys.path)
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        # The __main__ of a package runs unconditionally, so it has no functions for others.
        name = None if spec.name.rpartition(".")[2] == "__main__" else spec.name
        return Main(module=name, search=search)
    path = getattr(main, "__file__", None)
    return Main(path=os.path.abspath(path) if path else None, search=search)


def load(main: Main) -> str | None:
    """Load the main module of another process here.

    Returns
    -------
    str or None
        Why it cannot be loaded, if its file or module is not here.

    Raises
    ------
    Exception
        What the module raises.
    """
    sys.path.extend(each for each in main.search if each not in sys.path and os.path.exists(each))
    if main.path is not None and not os.path.isfile(main.path):
        return f"{main.path} is not on this host"
    if main.module is None and main.path is None:
        return None
    global _loading
    _loading = True
    try:
        run(WORKER, module=main.module, path=main.path)
    except ModuleNotFoundError as error:
        if error.name != main.module:
            raise
        return f"there is no module {main.module} on this host"
    finally:
        _loading = False
    return None


def is_loading() -> bool:
    """Whether this process is a worker that loads the script."""
    return _loading


def run(name: str, *, module: str | None = None, path: str | None = None) -> types.ModuleType:
    """Run a module or a file as the main module of this process.

    Unlike :mod:`runpy`, it stays that afterwards: tasks are pickled until the interpreter ends.

    Parameters
    ----------
    name : str
        Its ``__name__``.
    module, path : str
        One of them.
    """
    main = types.ModuleType(name)
    code: Any
    if module is not None:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        code = spec.loader.get_code(spec.name)  # type: ignore[attr-defined]  # of every loader that runs by -m
        main.__spec__, main.__file__, main.__package__ = spec, spec.origin, spec.parent
    else:
        assert path is not None
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec")
        main.__file__ = path
    sys.modules["__main__"] = sys.modules[name] = main
    exec(code, vars(main))
    return main
