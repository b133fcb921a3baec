"""Methods that torch's compiler leaves to the interpreter, and what waits for another library. Loaded where
torch is."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_COMPILER = "torch._dynamo"


def leave_untraced(kind: type, *names: str) -> None:
    """A compiler breaks its graph where one of these methods is called, and it runs as it always does.

    By torch.compiler.disable. That loads the compiler, which takes seconds: it waits until others do.
    """

    def leave() -> None:
        for name in names:
            setattr(kind, name, torch.compiler.disable(getattr(kind, name)))

    when_loaded(_COMPILER, leave)


def when_loaded(module: str, then: Callable[[], None]) -> None:
    """Calls `then` once others have loaded a module: now, or later."""
    if module in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _WhenLoaded(module, then))


class _WhenLoaded(importlib.abc.MetaPathFinder):
    """Finds no module: calls `then` once others have found and loaded this one."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            execute(module)
            self._then()

        spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec
