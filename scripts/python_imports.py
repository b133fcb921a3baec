"""Which module of a Python package imports which: for the order of their layers, and for circles.

Imports inside functions count: they run. Those under `if TYPE_CHECKING:` never do.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    path: Path
    line: int
    module: str  # full names
    target: str


def _module_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _statements(other)
        elif isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from _statements(child)


def _names(statement: ast.Import | ast.ImportFrom, module: str, is_package: bool) -> Iterator[str]:
    """What may be a module: `from a import b` names a, and a.b."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
        return
    base = statement.module or ""
    if statement.level:
        parts = module.split(".")
        parts = parts[: len(parts) - statement.level + is_package]
        base = ".".join([*parts, *([base] if base else [])])
    for alias in statement.names:
        yield f"{base}.{alias.name}"
        yield base


def imports(root: Path, package: str) -> list[Import]:
    """Those between the modules of the package below `root`; the most exact module that a statement names."""
    paths = sorted((root / package).rglob("*.py"))
    modules = {_module_of(path, root) for path in paths}
    found: dict[Import, None] = {}
    for path in paths:
        module = _module_of(path, root)
        for statement in _statements(ast.parse(path.read_text())):
            for name in _names(statement, module, path.name == "__init__.py"):
                if name in modules and name != module:
                    found[Import(path, statement.lineno, module, name)] = None
                    if isinstance(statement, ast.ImportFrom):
                        break
    return list(found)


def circle(found: list[Import]) -> list[str]:
    """Modules of one circle, each imported by the next; empty where there is none."""
    graph: dict[str, set[str]] = {}
    for each in found:
        graph.setdefault(each.module, set()).add(each.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [str(module) for module in error.args[1]]
    return []
