"""Numbers the changes of a table: a state that was saved before the last of them is not taken for that table.

A generation is a number and a random id, in a small file beside the table (NAME.generation beside NAME.npy).
It is replaced before the first store that follows a save, or that follows the opening of the table, and a
state holds the one that it was saved in: where both are equal, nothing has been stored since. A process that
is killed between the replacement and the store leaves a table that looks changed and is not, and never the
reverse.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.volume.names import is_volume

if TYPE_CHECKING:
    from penstock.arrays import Array

Mark = dict[str, Any]  # number: int, id: str


def beside(array: Array, what: str) -> Path:
    """A file that belongs to a table. A raw file may hold several tables, and lie beside a .npy file of its
    name. REQUIRES: the table lies in a file."""
    assert array.path is not None
    path = Path(array.path)
    name = path.stem if path.suffix == ".npy" else f"{path.name}.{array.opened.offset}"
    return path.with_name(f"{name}.{what}")


def sync_folder(folder: Path) -> None:
    """Returns when the names in it are on the device for good."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file by another: whenever the process ends, one of them is there, and whole.

    REQUIRES: one writer; the draft has a fixed name, so that killed processes leave one at most.
    """
    draft = path.with_name(f"{path.name}.draft")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


class Generation:
    """Of one table, for all arrays over it in this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begun = False  # whether what is stored now belongs to no state that was saved

    def read(self) -> Mark | None:
        """None where there is no file. ValueError for one that is damaged."""
        try:
            saved = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            saved = None
        if not is_mark(saved):
            raise ValueError(
                f"open {self.path}: it is damaged: delete it to go on from the table beside it as it is"
            )
        return {"number": saved["number"], "id": saved["id"]}

    def begin(self) -> None:
        """What is stored from now on belongs to no state. Called before each store: the first one writes."""
        if not self._begun:
            self._write(self._next())
            self._begun = True

    def saved(self) -> Mark:
        """What a state says that is saved now; a store that follows begins another generation."""
        mark = self.read()
        if mark is None:
            mark = self._next()
            self._write(mark)
        self._begun = False
        return mark

    def settle(self, mark: Mark) -> None:
        """The table has the numbers of this generation again, on the device for good."""
        self._write(mark)
        self._begun = False

    def _next(self) -> Mark:
        before = self.read()
        return {"number": 0 if before is None else before["number"] + 1, "id": uuid.uuid4().hex}

    def _write(self, mark: Mark) -> None:
        try:
            write_whole(self.path, json.dumps(mark).encode())
        except OSError as problem:
            problem.args = (
                problem.errno,
                f"number the changes of a table in {self.path}: {problem.strerror}: make the folder of the "
                "table "
                "writable, which keeps a small file beside it",
            )
            problem.filename = None
            raise


def is_mark(given: Any) -> bool:
    return (
        isinstance(given, dict) and isinstance(given.get("number"), int) and isinstance(given.get("id"), str)
    )


_BY_PATH: weakref.WeakValueDictionary[str, Generation] = weakref.WeakValueDictionary()


def generation_of(array: Array) -> Generation | None:
    """None for a table in memory, on a volume, or on a block device, which has no room beside it."""
    if array.path is None or is_volume(array.path) or not stat.S_ISREG(Path(array.path).stat().st_mode):
        return None
    path = Path(os.path.realpath(array.path)).parent / beside(array, "generation").name
    found = _BY_PATH.get(str(path))
    if found is None:
        found = _BY_PATH[str(path)] = Generation(path)
    return found


def number_changes(array: Array) -> None:
    """Lets each store into a table begin a generation, if one was saved before it."""
    generation = generation_of(array) if array.writable else None
    if generation is not None:
        array.before_store = generation.begin


def saved_mark(array: Array) -> Mark | None:
    """What a state says of a table. One that is only read has a generation if others have numbered it."""
    generation = generation_of(array)
    if generation is None:
        return None
    return generation.saved() if array.writable else generation.read()


def check_generation(saved: Any, array: Array, what: str) -> None:
    """Compares the generation that a state says with that of the table. A state without one is of a table
    that had none, and passes.

    Raises:
        ValueError: the table has changed since the state was saved, or is another one.

    Warns:
        UserWarning: the table has no generation any more, as after it was moved alone.
    """
    generation = generation_of(array)
    if saved is None or generation is None:
        return
    if not is_mark(saved):
        raise ValueError(f"{what} of {array.path}: its generation is {saved!r}: save it by state_dict()")
    found = generation.read()
    if found is None:
        warnings.warn(
            f"{what} of {array.path}: {generation.path} is missing, and whether the table has changed since "
            "the "
            "state was saved is not known: move that file with the table",
            stacklevel=2,
        )
    elif found["id"] != saved["id"]:
        numbers = f"generation {found['number']}, the state is of generation {saved['number']}"
        raise ValueError(
            f"{what} of {array.path}: the table has changed since this state was saved ({numbers}): restore "
            "the "
            f"table that belongs to it (penstock.checkpoint.load does), or delete {generation.path} to go on "
            "from the table as it is"
        )
