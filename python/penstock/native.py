"""The one way to the compiled module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Error

if TYPE_CHECKING:
    from types import ModuleType


def load_native() -> ModuleType:
    """The compiled part. Raises Error where there is none."""
    try:
        from penstock import _native
    except ImportError as problem:
        sentence = f"import penstock._native: {problem}: reinstall Penstock with pip install ."
        raise Error(sentence) from problem
    return _native
