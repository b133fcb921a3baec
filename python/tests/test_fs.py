"""penstock.fs.grep and `penstock grep`, beside a plain loop."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from penstock import fs
from penstock.cli.main import main

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

PART = 8 << 20


def lines_of(root: Path, pattern: bytes, ignore_case: bool = False) -> list[tuple[str, int, bytes]]:
    """What a plain loop finds."""
    found = []
    wanted = pattern.lower() if ignore_case else pattern
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder) / name
            if file.is_symlink():
                continue
            data = file.read_bytes()
            if b"\0" in data:
                continue
            for number, line in enumerate(data.split(b"\n"), 1):
                if wanted in (line.lower() if ignore_case else line):
                    found.append((str(file.relative_to(root)), number, line))
    return sorted(found)


def found_by(result: fs.GrepResult) -> list[tuple[str, int, bytes]]:
    return sorted((m.path, m.line, m.text.encode(errors="surrogateescape")) for m in result.matches)


def make_tree(root: Path, seed: int) -> None:
    draw = random.Random(seed)
    folder = root
    for k in range(60):
        if k % 7 == 0:
            folder = root / "/".join(draw.choice("abc") for _ in range(draw.randrange(4)))
            folder.mkdir(parents=True, exist_ok=True)
        words = [
            draw.choice(
                [b"needle", b"Needle", b"need", b"le", b"\n", b"\n\n", b" ", b"hay " * 40, b"\xff\xfe"]
            )
            for _ in range(draw.randrange(1500))
        ]
        data = b"".join(words)
        if k % 11 == 0:
            data = data[:100] + b"\0" + data
        (folder / f"file {k}.txt").write_bytes(data)
    (root / "empty").write_bytes(b"")
    (root / "no end").write_bytes(b"first\nneedle")
    (root / os.fsdecode(b"name\xff")).write_bytes(b"needle\n")
    (root / "link").symlink_to("no end")
    (root / "a").mkdir(exist_ok=True)
    (root / "a" / "up").symlink_to("..")


@pytest.mark.parametrize("seed", range(3))
def test_finds_what_a_plain_loop_finds(tmp_path: Path, executor: Literal["cpu", "cuda"], seed: int) -> None:
    make_tree(tmp_path, seed)
    for pattern, ignore_case, line in (
        ("needle", False, "4KiB"),
        ("NEEDLE", True, "64KiB"),
        ("e", False, 512),
    ):
        result = fs.grep(
            pattern, tmp_path, ignore_case=ignore_case, executor=executor, cache="1MiB", line=line, threads=2
        )
        assert found_by(result) == lines_of(tmp_path, pattern.encode(), ignore_case)
        assert not result.errors
        assert result.executor == executor
    assert result.files == 63
    assert result.binary == 6
    assert result.host_calls >= 2 * 63


def test_parts_of_large_files_are_one(tmp_path: Path, executor: Literal["cpu", "cuda"]) -> None:
    pattern = b"across the end"
    data = bytearray(b"some text, and no more\n" * (2 * PART // 23 + 1000))
    for at in (10, PART - 5, PART + 400, 2 * PART - len(pattern), 2 * PART - 1, len(data) - len(pattern)):
        data[at : at + len(pattern)] = pattern
    (tmp_path / "large").write_bytes(data)
    assert found_by(fs.grep(pattern, tmp_path, executor=executor)) == lines_of(tmp_path, pattern)


def test_a_line_of_any_length_and_zeros_at_any_place(
    tmp_path: Path, executor: Literal["cpu", "cuda"]
) -> None:
    (tmp_path / "long").write_bytes(b"a" * (5 << 20) + b"needle" + b"b" * (5 << 20))
    (tmp_path / "late").write_bytes(b"needle\n" * 100_000 + b"\0")
    with (tmp_path / "holes").open("wb") as sparse:
        sparse.write(b"needle\n")
        sparse.truncate(64 << 20)
    result = fs.grep("needle", tmp_path, executor=executor)
    assert [(m.path, m.line, len(m.text)) for m in result.matches] == [("long", 1, 2 << 20)]
    assert result.matches[0].text == "a" * (1 << 20) + "needle" + "b" * ((1 << 20) - 6)
    assert result.binary == 2


def test_files_that_change_meanwhile_have_no_lines(tmp_path: Path, executor: Literal["cpu", "cuda"]) -> None:
    for name in "abc":
        (tmp_path / name).write_text("needle\n")

    def swap(what: str, *_: int) -> None:
        for name in "abc" if what == "reading lines" else "":
            (tmp_path / name).unlink()
            (tmp_path / name).symlink_to("/etc/passwd")

    result = fs.grep("needle", tmp_path, executor=executor, progress=swap)
    assert [m.text for m in result.matches] == ["needle"], "of the one that was open already"
    assert [(e.errno, e.strerror) for e in result.errors] == [
        (errno.ESTALE, "it was changed while it was searched")
    ] * 2


def test_more_matches_and_names_than_a_first_guess(tmp_path: Path, executor: Literal["cpu", "cuda"]) -> None:
    (tmp_path / "x").write_bytes(b"x\n" * 200_000)
    many = tmp_path / "many"
    many.mkdir()
    for k in range(5000):
        (many / f"{k:0200}").touch()
    result = fs.grep("x", tmp_path, executor=executor)
    assert [m.line for m in result.matches] == list(range(1, 200_001))
    assert result.files == 5001


def test_bad_input_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for pattern in ("", "x" * 256, "a\nb"):
        with pytest.raises(ValueError, match="pattern"):
            fs.grep(pattern, tmp_path)
    with pytest.raises(TypeError, match="pattern 7"):
        fs.grep(7, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="nothing") as missing:
        fs.grep("x", tmp_path / "nothing")
    assert missing.value.errno == errno.ENOENT
    with pytest.raises(OSError, match="name the folder"):
        fs.grep("x", tmp_path / "file")
    with pytest.raises(FileNotFoundError, match=r"^search '': it is no path"):
        fs.grep("x", "")
    with pytest.raises(ValueError, match="line"):
        fs.grep("x", tmp_path, line=100)
    with pytest.raises(ValueError, match="line 0"):
        fs.grep("x", tmp_path, line=0)


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder that anybody may look into, as a user who may not read everything."""
    before = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "closed").mkdir(mode=0o700)
        (Path(folder) / "secret").write_text("needle")
        (Path(folder) / "secret").chmod(0)
        (Path(folder) / "open").write_text("needle")
        if before == 0:
            os.seteuid(65534)
        else:
            (Path(folder) / "closed").chmod(0)
        yield Path(folder)
        os.seteuid(before)
        (Path(folder) / "closed").chmod(0o700)


def test_what_cannot_be_read_is_reported(nobody: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = fs.grep("needle", nobody)
    assert [m.path for m in result.matches] == ["open"]
    assert sorted((problem.errno, problem.filename) for problem in result.errors) == [
        (errno.EACCES, str(nobody / "closed")),
        (errno.EACCES, str(nobody / "secret")),
    ]
    with pytest.raises(SystemExit) as ended:
        main(["grep", "needle", str(nobody)])
    assert ended.value.code == 2
    assert f"{nobody}/secret: Permission denied" in capsys.readouterr().err


def test_matches_come_as_they_are_found(tmp_path: Path, executor: Literal["cpu", "cuda"]) -> None:
    for number in range(700):
        (tmp_path / str(number % 7)).mkdir(exist_ok=True)
        (tmp_path / str(number % 7) / f"file{number}").write_text("needle\nhay\n" * (number % 3))
    events: list[str] = []
    parts: list[list[fs.Match]] = []

    def found(matches: list[fs.Match]) -> None:
        events.append("found")
        parts.append(matches)

    result = fs.grep(
        "needle", tmp_path, executor=executor, found=found, progress=lambda what, *_: events.append(what)
    )
    assert found_by(result) == lines_of(tmp_path, b"needle")
    assert [match for part in parts for match in part] == result.matches
    assert f"searching {tmp_path}" in events[events.index("found") :]

    def stop(_: object) -> None:
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fs.grep("needle", tmp_path, executor=executor, found=stop)


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("needle")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.grep("needle", tmp_path, progress=stop)


def test_the_command_prints_as_grep_does(tmp_path: Path) -> None:
    make_tree(tmp_path, 9)
    run = subprocess.run(
        [sys.executable, "-m", "penstock", "grep", "needle", str(tmp_path), "--stats"], capture_output=True
    )
    ours = sorted(run.stdout.split(b"\n"))
    theirs = [
        b"%s/%s:%d:%s" % (os.fsencode(tmp_path), os.fsencode(p), n, t)
        for p, n, t in lines_of(tmp_path, b"needle")
    ]
    assert ours == sorted([b"", *theirs])
    assert run.returncode == 0
    assert b"GB/s" in run.stderr


def test_exit_status_counts_and_names(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "one").write_text("needle\nneedle needle\n")
    (tmp_path / "two").write_text("hay\n")

    def run(*words: str) -> tuple[int, bytes]:
        with pytest.raises(SystemExit) as ended:
            main(["grep", *words, str(tmp_path)])
        return int(str(ended.value.code)), capfdbinary.readouterr().out

    assert run("needle", "--count") == (0, f"{tmp_path}/one:2\n".encode())
    assert run("HAY", "--files", "--ignore-case") == (0, f"{tmp_path}/two\n".encode())
    assert run("straw") == (1, b"")
    closed = subprocess.run(
        f"{sys.executable} -m penstock grep needle {tmp_path} >&-", shell=True, capture_output=True
    )
    assert (closed.returncode, closed.stderr) == (2, b"penstock: standard output: it is closed: open it\n")
    assert main(["grep", "", str(tmp_path)]) == 2
