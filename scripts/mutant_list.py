"""The mutants that tests/mutants lists, and the edits that they are."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LISTS = "tests/mutants"
# As in CMakePresets.json, but -O0: a mutant is compiled once and run once.
PRESET_FLAGS = {
    "cpu": [],
    "cpu-asan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "cpu-tsan": ["-fsanitize=thread", "-DPENSTOCK_TSAN"],
}
FOLDERS = ("include", "src", "libs")


class MutantError(Exception):
    """The list, or the build without a mutant, is wrong."""


@dataclass(frozen=True)
class Mutant:
    id: str
    what: str
    file: str
    find: str
    replace: str
    folder: str = ""
    sources: tuple[str, ...] = ()
    filter: str = ""
    hang: bool = False
    preset: str = "cpu"
    pytest: str = ""

    @property
    def stems(self) -> str:
        return "-".join(Path(s).stem for s in self.sources)


def read_list(path: Path) -> list[Mutant]:
    with path.open("rb") as file:
        tables = tomllib.load(file).get("mutant", [])
    mutants = []
    for table in tables:
        entry = {**table, "sources": tuple(table.get("sources", ()))}
        try:
            mutant = Mutant(**entry)
        except TypeError as problem:
            raise MutantError(f"{path}: mutant {table.get('id', '?')}: {problem}") from None
        if not mutant.filter or not (mutant.pytest or (mutant.folder and mutant.sources)):
            raise MutantError(
                f"{path}: mutant {mutant.id}: give folder, sources and filter, or pytest and filter"
            )
        if mutant.pytest and not mutant.file.startswith("include/"):
            raise MutantError(f"{path}: mutant {mutant.id}: a check with pytest sees edits of include only")
        if mutant.preset not in PRESET_FLAGS:
            raise MutantError(f"{path}: mutant {mutant.id}: no preset '{mutant.preset}'")
        mutants.append(mutant)
    return mutants


def read_lists(root: Path) -> list[Mutant]:
    return [m for path in sorted((root / LISTS).glob("*.toml")) for m in read_list(path)]


def edited_text(mutant: Mutant, root: Path) -> str:
    """The file with the edit in it."""
    path = root / mutant.file
    if not path.is_file() or mutant.file.split("/")[0] not in FOLDERS:
        raise MutantError(f"mutant {mutant.id}: there is no {mutant.file} under {', '.join(FOLDERS)}")
    text = path.read_text()
    found = text.count(mutant.find)
    if not mutant.find or found != 1:
        raise MutantError(
            f"mutant {mutant.id}: its text to find occurs {found} times in {mutant.file}, not once"
        )
    if mutant.find == mutant.replace:
        raise MutantError(f"mutant {mutant.id}: the edit changes nothing")
    return text.replace(mutant.find, mutant.replace)


def check_list(mutants: list[Mutant], root: Path) -> None:
    """Every edit can be made, and every test is there."""
    seen: set[str] = set()
    for mutant in mutants:
        if mutant.id in seen:
            raise MutantError(f"mutant {mutant.id} is listed twice")
        seen.add(mutant.id)
        edited_text(mutant, root)
        for source in mutant.sources:
            if not (root / source).is_file():
                raise MutantError(f"mutant {mutant.id}: there is no {source}")
