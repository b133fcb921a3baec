"""New folders of several threads and processes at once: each appears whole, and none loses its own."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import penstock
import pytest
from penstock.drafts import check_new, draft_folder

TARGETS = 60
PROGRAM = """
import sys
from pathlib import Path
from penstock.drafts import draft_folder

for number in range(int(sys.argv[2])):
    try:
        with draft_folder("make", Path(sys.argv[1]) / str(number)) as draft:
            for part in "abc":
                (draft / part).touch()
    except ValueError as problem:
        assert "it exists and is not empty: name a new folder" in str(problem), problem
"""


def draft_of(operation: str, to: Path) -> None:
    with draft_folder(operation, to):
        pytest.fail("it has begun")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_processes_that_make_the_same_folders_lose_none(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(TARGETS)]
    runs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(run.communicate(timeout=120)[1], run.returncode) for run in runs] == [("", 0)] * 3
    assert names_in(tmp_path) == sorted(map(str, range(TARGETS)))
    assert all(names_in(path) == ["a", "b", "c"] for path in tmp_path.iterdir())


def test_a_draft_that_is_not_yet_locked_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def other_run(*given: Any) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        with pytest.raises(RuntimeError, match="failed"), draft_folder("make", tmp_path / "out"):
            raise RuntimeError("failed")
        lock(*given)

    monkeypatch.setattr(fcntl, "flock", other_run)
    with draft_folder("make", tmp_path / "out") as draft:
        (draft / "mine").touch()
    assert names_in(tmp_path) == ["out"]
    assert names_in(tmp_path / "out") == ["mine"]


def test_of_two_drafts_of_one_process_the_first_that_is_ready_stays(tmp_path: Path) -> None:
    with ExitStack() as stack:
        second = stack.enter_context(draft_folder("make", tmp_path / "out"))
        (second / "second").touch()
        with draft_folder("make", tmp_path / "out") as first:
            (first / "first").touch()
        with pytest.raises(ValueError, match=r"make .*out: it exists and is not empty: name a new folder"):
            stack.close()
    assert names_in(tmp_path) == ["out"]
    assert names_in(tmp_path / "out") == ["first"]


def test_a_folder_that_appears_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def late(path: Path, target: Path) -> Path:
        if target == tmp_path / "out":
            target.mkdir()
            (target / "theirs").touch()
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", late)
    with (
        pytest.raises(ValueError, match=r"make .*out: it exists and is not empty: name a new folder"),
        draft_folder("make", tmp_path / "out") as draft,
    ):
        (draft / "mine").touch()
    assert names_in(tmp_path) == ["out"]
    assert names_in(tmp_path / "out") == ["theirs"]


def test_a_target_that_is_no_name_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    for check in (check_new, draft_of):
        with pytest.raises(penstock.Error, match=r"^make .*/x+: its name is longer than a file system takes"):
            check("make", path)
    path = tmp_path / ("x" * 250)  # the hidden name is longer
    with draft_folder("make", path) as draft:
        (draft / "mine").touch()
    assert names_in(tmp_path) == [path.name]
