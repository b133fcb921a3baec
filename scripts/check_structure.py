#!/usr/bin/env python3
"""Checks the tree against scripts/layers.toml: includes, target switches, lengths, headers on their own.

The C++ checks are textual: they know comments, strings and preprocessor branches, and no more than that.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import cpp_text
import header_check
import named_tests
import parts
import python_imports

ROOT = Path(__file__).resolve().parent.parent
CPP = (".hpp", ".cuh", ".cpp", ".cu")
PYTHON = (".py", ".pyi")
FOLDERS = ("include", "src", "libs", "python", "benchmarks", "tests", "scripts", "cmake", ".ci")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
# Written so that this file does not find itself.
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E)\b(?!\s*\(?(?:issue )?#?\d+)")

Rules = dict[str, Any]


@dataclass(frozen=True, order=True)
class Problem:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def read_rules(path: Path) -> Rules:
    with path.open("rb") as file:
        rules: Rules = tomllib.load(file)
    return rules


def source_files(root: Path) -> list[Path]:
    """Everything that people write, in a fixed order; scripts have no ending."""
    found = [root / "CMakeLists.txt"]
    for folder in FOLDERS:
        endings = (*CPP, *PYTHON, ".cmake", *([""] if folder in ("scripts", ".ci") else []))
        for path in sorted((root / folder).rglob("*")):
            hidden = any(part == "__pycache__" or part.startswith("build") for part in path.parts)
            if path.is_file() and not hidden and path.suffix in endings:
                found.append(path)
    return [p for p in found if p.is_file()]


def stands_in(path: str, places: list[str]) -> bool:
    return any(path == p or (p.endswith("/") and path.startswith(p)) for p in places)


def layer_of(path: str, rules: Rules) -> tuple[int, str] | None:
    """Row and folder of a file in the order of its area; row -1: in none. None: the area has no order."""
    area, *folders = path.removeprefix("include/penstock/").split("/")
    if path.startswith("include/penstock/"):
        area, folders = "include", [area, *folders]
    rows: list[list[str]] | None = rules["layers"].get(area)
    if rows is None:
        return None
    return next((i for i, row in enumerate(rows) if folders[0] in row), -1), folders[0]


def resolve(name: str, path: Path, root: Path) -> Path | None:
    for base in (path.parent, root / "include", root, root / "tests", root / "src"):
        if (base / name).is_file():
            return (base / name).resolve()
    return None


def check_one_include(path: str, target: str, rules: Rules) -> str | None:
    """What is wrong with `path` including `target`, both relative to the root."""
    area, target_area = path.split("/")[0], target.split("/")[0]
    if area == "include" and target_area != "include":
        return f"a public header includes {target}, which is not public"
    if area != target_area and target_area not in rules["areas"].get(area, []):
        return f"{area}/ may include only {', '.join(rules['areas'].get(area, []))}, not {target}"
    layer, target_layer = layer_of(path, rules), layer_of(target, rules)
    if (area, target_area) == ("src", "include"):
        # What a header declares, the folder of the same name has the body of.
        layer = layer_of(f"include/penstock/{path.removeprefix('src/')}", rules)
        if layer and layer[0] == -1:
            return None
    elif area != target_area:
        return None
    if layer is None or target_layer is None:
        return None
    if -1 in (layer[0], target_layer[0]):
        return f"{path if layer[0] == -1 else target} is in no layer of layers.toml"
    if target_layer[0] > layer[0]:
        return f"a lower layer includes a higher one, {target}"
    if target_layer[0] == layer[0] and target_layer[1] != layer[1]:
        return f"two folders of one layer: {target}"
    return None


def check_includes(path: Path, root: Path, rules: Rules) -> Iterator[Problem]:
    name = str(path.relative_to(root))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, included = match.group(1) == '"', match.group(2)
        if not quoted:
            if included.startswith("penstock/"):
                yield Problem(name, number, f'include "{included}" with quotes: it is ours')
            continue
        target = resolve(included, path, root)
        if target is None:
            yield Problem(name, number, f'there is no "{included}"')
            continue
        wrong = check_one_include(name, str(target.relative_to(root.resolve())), rules)
        if wrong:
            yield Problem(name, number, wrong)


def check_words(path: str, code: list[str], rules: Rules) -> Iterator[Problem]:
    """Words that are kept to a few places; comments do not count."""
    for word in rules["words"]:
        if not stands_in(path, word["in"]) or stands_in(path, word["only"]):
            continue
        for number, line in enumerate(code, 1):
            found = re.search(word["pattern"], line)
            if found:
                yield Problem(path, number, f"{word['name']} ({found.group(0)}): {word['remedy']}")


def row_of(module: str, rows: list[list[str]]) -> tuple[int, str] | None:
    """Row and name of the part of the package that a module is in; row -1: in none. None: the package."""
    parts = module.split(".")
    if len(parts) < 2:
        return None
    return next((i for i, row in enumerate(rows) if parts[1] in row), -1), parts[1]


def check_python(root: Path, rules: Rules) -> Iterator[Problem]:
    """The order of the package's parts, and that no modules import each other in a circle."""
    found = python_imports.imports(root / "python", "penstock")
    for each in found:
        name = str(each.path.relative_to(root))
        lower, higher = (row_of(module, rules["layers"]["python"]) for module in (each.target, each.module))
        if lower is None or higher is None or lower[1] == higher[1]:
            continue
        if -1 in (lower[0], higher[0]):
            missing = lower if lower[0] == -1 else higher
            yield Problem(name, each.line, f"penstock.{missing[1]} is in no layer of layers.toml")
        elif lower[0] >= higher[0]:
            yield Problem(
                name, each.line, f"penstock.{higher[1]} may not import {each.target}, which is no lower layer"
            )
    if modules := python_imports.circle(found):
        path = next(str(each.path.relative_to(root)) for each in found if each.module == modules[0])
        yield Problem(path, 1, f"a circle of imports: {' <- '.join(modules)}")


def check_lines(path: str, text: str, rules: Rules) -> Iterator[Problem]:
    limits = rules["limits"]
    lines = text.splitlines()
    if len(lines) > limits["file_lines"]:
        yield Problem(path, len(lines), f"{len(lines)} lines; at most {limits['file_lines']}")
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield Problem(path, number, "a tab")
        if len(line) > limits["line_columns"]:
            yield Problem(path, number, f"{len(line)} columns; at most {limits['line_columns']}")
        if UNFINISHED.search(line):
            yield Problem(path, number, "left to do, and no issue is named: write TO" + "DO(#12)")


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, node.end_lineno or node.lineno


def check_functions(path: str, functions: Iterator[tuple[str, int, int]], rules: Rules) -> Iterator[Problem]:
    limit = rules["limits"]["function_lines"]
    for name, first, last in functions:
        if last - first + 1 > limit:
            yield Problem(path, first, f"{name} has {last - first + 1} lines; at most {limit}")


def check_file(path: Path, root: Path, rules: Rules) -> Iterator[Problem]:
    name = str(path.relative_to(root))
    text = path.read_text()
    yield from check_lines(name, text, rules)
    if path.suffix in CPP:
        code = cpp_text.without_comments(text)
        yield from check_includes(path, root, rules)
        yield from check_words(name, code.splitlines(), rules)
        yield from check_functions(name, cpp_text.functions(code), rules)
    elif path.suffix in PYTHON:
        yield from check_functions(name, python_functions(text), rules)


def check_tree(root: Path, rules: Rules) -> list[Problem]:
    found = [p for path in source_files(root) for p in check_file(path, root, rules)]
    found += check_python(root, rules)
    found += [Problem(str(named_tests.TABLE), line, message) for line, message in named_tests.problems(root)]
    return sorted(found)


def check_headers(root: Path, rules: Rules, jobs: int, part: tuple[int, int] = (1, 1)) -> list[Problem]:
    """Every header of this part compiles on its own."""
    headers = [
        p
        for p in source_files(root)
        if p.suffix in (".hpp", ".cuh")
        and stands_in(str(p.relative_to(root)), rules["headers"]["in"])
        and not stands_in(str(p.relative_to(root)), rules["headers"]["not_in"])
    ]
    failures = header_check.compile_alone(root, parts.take(headers, part), rules["headers"], jobs)
    return [
        Problem(str(f.header.relative_to(root)), 1, f"does not compile alone: {f.message}") for f in failures
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the tree against scripts/layers.toml.")
    parser.add_argument("--no-headers", action="store_true", help="do not compile the headers")
    parser.add_argument("-j", "--jobs", type=int, default=header_check.default_jobs())
    parts.add_argument(parser)
    arguments = parser.parse_args()
    rules = read_rules(ROOT / "scripts/layers.toml")
    problems = check_tree(ROOT, rules)
    if not arguments.no_headers:
        problems += check_headers(ROOT, rules, arguments.jobs, arguments.part)
    for problem in problems:
        print(problem)
    print(f"structure: {len(source_files(ROOT))} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
