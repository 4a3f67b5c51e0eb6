# SPDX-License-Identifier: BSD-3-Clause
"""All programs that are explored, by name."""

import importlib.machinery
import importlib.util
import os
import pkgutil
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from board import Board
from program import PATIENCE, Program

__all__ = ["find_program", "list_programs"]

_programs: dict[str, Program] = {}


def list_programs(board: Board) -> dict[str, int]:
    """Import ofipy with its calls as steps, then all programs: the kinds of steps of each, by name."""
    _import_requests(board)
    # What the tests wait for ends before a run counts as hanging.
    import_module("pair").PATIENCE = PATIENCE
    for entry in pkgutil.iter_modules(__path__):
        for program in import_module(f"{__name__}.{entry.name}").list_programs():
            _programs[program.name] = program
    return {name: int(program.kinds) for name, program in _programs.items()}


def find_program(name: str) -> Program:
    """The program of this name."""
    return _programs[name]


def _import_requests(board: Board) -> None:
    """Import the module that calls the core before all others, to have it bound to the steps instead."""
    package = importlib.util.find_spec("ofipy")
    assert package is not None
    for folder in package.submodule_search_locations or ():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = os.path.join(folder, f"_requests{suffix}")
            if os.path.exists(path):
                _load(path, board)
                return
    raise ImportError("ofipy is not built")


def _load(path: str, board: Board) -> None:
    spec = importlib.util.spec_from_file_location("ofipy._requests", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    assert isinstance(module, ModuleType)
    spec.loader.exec_module(module)
    sys.modules["ofipy._requests"] = module
    bind = module.bind
    module.bind = lambda addresses, objects: bind(board.replace_calls(list(addresses)), objects)
