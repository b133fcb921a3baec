"""`penstock reduce` and `vectoradd`, as compiled: results against NumPy, tables, JSON, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock import bench, regular
from penstock.cli import main as cli

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)

SMALL: dict[str, Any] = {"executor": "cpu", "threads": 2, "repeats": 1, "cache": "64KiB", "line": 512}
FLAGS = ["--executor", "cpu", "--threads", "2", "--repeats", "1", "--cache", "64KiB", "--line", "512"]
WAYS = ["tiled", "naive", "line"]


@pytest.fixture
def small(device: str) -> dict[str, Any]:
    return SMALL if device == "cpu" else {**SMALL, "executor": device, "cache": "4MiB"}


def save(path: Path, array: np.ndarray[Any, Any]) -> Path:
    np.save(path, array)
    return path


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The sentence with which a command is refused."""
    assert cli.main(list(arguments)) == cli.REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    return err


# Sizes that are no multiple of a line or a tile, nothing, and one element.
@pytest.mark.parametrize("count", [0, 1, 63, 1000, 8192, 50_001])
@pytest.mark.parametrize("dtype", regular.generate.DTYPES)
def test_a_sum_is_numpys(tmp_path: Path, dtype: str, count: int, small: dict[str, Any]) -> None:
    array = np.random.default_rng(count).integers(0, 1 << 31, count).astype(dtype)
    result = regular.reduce(save(tmp_path / "a.npy", array), **small)
    assert result.sum == pytest.approx(float(array.sum(dtype=np.float64)), rel=1e-12)
    if array.dtype.kind != "f":
        assert result.sum == int(array.sum())
    assert (result.dtype, result.shape) == (dtype, (count,))
    assert [m.params["access"] for m in result.measurements] == WAYS
    assert all(m.line["verified"] for m in result.measurements)


def test_integers_wrap_as_numpys_do(tmp_path: Path, small: dict[str, Any]) -> None:
    array = np.full(5, np.iinfo(np.int64).max)
    assert regular.reduce(save(tmp_path / "a.npy", array), **small).sum == int(array.sum())


@pytest.mark.parametrize("shape", [(), (3, 5, 7), (100, 100)], ids=str)
def test_a_sum_is_that_of_all_dimensions(
    tmp_path: Path, shape: tuple[int, ...], small: dict[str, Any]
) -> None:
    array = np.random.default_rng(1).random(shape)
    result = regular.reduce(save(tmp_path / "a.npy", np.asarray(array)), **small)
    assert result.sum == pytest.approx(array.sum() if shape else float(array), rel=1e-12)
    assert result.shape == shape


@pytest.mark.parametrize("media", ["none", "p5800x"])
@pytest.mark.parametrize("drives", [1, 3])
def test_modelled_drives_hold_the_same(
    tmp_path: Path, media: str, drives: int, small: dict[str, Any]
) -> None:
    array = np.random.default_rng(1).random(40_000)
    result = regular.reduce(save(tmp_path / "a.npy", array), media=media, drives=drives, **small)
    assert result.sum == pytest.approx(array.sum(), rel=1e-12)
    first = result.measurements[0]
    assert (first.params["media"], first.params["drives"]) == (media, str(drives))
    if media == "p5800x":
        assert first.details["peak_read_gb_per_s"] == pytest.approx(drives * 1.5e6 * 4096 / 1e9)


@pytest.mark.parametrize(
    "options", [{"engine": "pread"}, {"direct": True}, {"directory": "set"}, {"tile": "4K"}], ids=str
)
def test_every_way_to_read_gives_the_same_sum(
    tmp_path: Path, options: dict[str, Any], small: dict[str, Any]
) -> None:
    array = np.random.default_rng(1).integers(0, 1000, 30_000)
    assert regular.reduce(save(tmp_path / "a.npy", array), **small, **options).sum == array.sum()


@pytest.mark.parametrize("shape", [(1, 1), (5000, 1), (1, 5000), (300, 17), (64, 512)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint64"])
def test_means_of_columns_are_numpys(
    tmp_path: Path, shape: tuple[int, int], dtype: str, small: dict[str, Any]
) -> None:
    array = (np.random.default_rng(1).random(shape) * 1000).astype(dtype)
    result = regular.reduce(save(tmp_path / "a.npy", array), columns=True, **small)
    assert result.sum is None
    assert result.means is not None
    np.testing.assert_allclose(result.means, array.mean(axis=0, dtype=np.float64), rtol=1e-12)
    assert {m.id for m in result.measurements} == {"write.columns"}


@pytest.mark.parametrize(
    ("shape", "word"), [((6,), "1 dimension:"), ((1, 2, 3), "3 dimensions:"), ((0, 3), "at least one row")]
)
def test_what_has_no_columns_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: tuple[int, ...], word: str
) -> None:
    path = save(tmp_path / "a.npy", np.zeros(shape))
    assert word in refusal(capsys, "reduce", str(path), "--columns", *FLAGS)


def test_raw_words_are_added_as_they_are_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small: dict[str, Any]
) -> None:
    array = np.arange(5000, dtype=np.uint32)
    path = tmp_path / "a.bin"
    array.tofile(path)
    assert cli.main(["reduce", str(path), "--raw", "--dtype", "uint32", *FLAGS]) == 0
    assert f"sum {array.sum()}" in capsys.readouterr().out
    assert regular.reduce(path, raw="uint32", **small).sum == array.sum()
    path.write_bytes(b"123")
    assert "whole number of uint32" in refusal(
        capsys, "reduce", str(path), "--raw", "--dtype", "uint32", *FLAGS
    )


def test_one_command_makes_an_array_and_adds_it_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.npy"
    assert cli.main(["reduce", str(path), "--generate", "300KiB", *FLAGS]) == 0
    out, err = capsys.readouterr()
    array = np.load(path)
    assert array.nbytes == 300 << 10
    assert f"38,400 float64, {path}" in " ".join(out.split())
    for word in (
        "explicit tiles",
        "cache, a[i]",
        "cache, by lines",
        "ideal",
        "amplification",
        "verified",
        "executor cpu",
    ):
        assert word in out
    assert f"sum {array.sum():.6g}"[:9] in out
    assert err == ""
    assert "it exists" in refusal(capsys, "reduce", str(path), "--generate", "300KiB", *FLAGS)


def test_a_generated_matrix_has_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.npy"
    options = ["--columns", "--generate", "100000", "--width", "100", "--dtype", "int32"]
    assert cli.main(["reduce", str(path), *options, *FLAGS]) == 0
    array = np.load(path)
    assert (array.shape, array.dtype) == ((250, 100), np.int32)
    out = capsys.readouterr().out
    assert f"means {array[:, 0].mean():.6g}, " in out
    assert "(100 columns)" in out


def test_generated_data_is_the_same_each_time(tmp_path: Path) -> None:
    for dtype in regular.generate.DTYPES:
        paths = [tmp_path / f"{dtype}-{k}.npy" for k in range(3)]
        for path, seed in zip(paths, (1, 1, 2), strict=True):
            regular.generate_array(path, 70_000, dtype=dtype, seed=seed)
        first, same, other = (np.load(path) for path in paths)
        assert first.dtype == dtype
        assert (first == same).all()
        assert (first != other).any()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--generate", "0"], "hold no float64"),
        (["--generate", "100", "--columns"], "row of 1024"),
        (["--generate", "100", "--columns", "--width", "0"], "row of 0"),
    ],
    ids=str,
)
def test_what_cannot_be_generated_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    assert word in refusal(capsys, "reduce", str(tmp_path / "a.npy"), *arguments, *FLAGS)
    assert list(tmp_path.iterdir()) == []


def test_json_lines_are_those_of_a_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "a.npy", np.arange(100))
    results = tmp_path / "results" / "write.jsonl"
    assert cli.main(["reduce", str(path), "--json", "--output", str(results), *FLAGS]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["params"]["access"] for line in lines] == WAYS
    for line in lines:
        assert (line["id"], line["unit"], line["verified"]) == ("write.reduce", "GB/s", True)
        # Tiles take turns with each of the two ways through the cache.
        assert line["repeats"] == (2 if line["params"]["access"] == "tiled" else 1)
        assert line["result"] == {"sum": 4950}
        assert set(line["bytes"]) == {"read", "written"}
    assert [m.id for m in bench.read_lines(results)] == ["write.reduce"] * 3


def test_access_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "a.npy", np.arange(100))
    assert cli.main(["reduce", str(path), "--access", "line", "--json", *FLAGS]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["params"]["access"] for line in lines] == ["tiled", "line"]


def test_a_cache_that_holds_everything_is_pointed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "a.npy", np.arange(1000))
    assert cli.main(["reduce", str(path), *FLAGS]) == 0
    assert "the cache holds all of the data" in capsys.readouterr().out


def write_text(path: Path) -> None:
    path.write_text("no array")


def write_complex(path: Path) -> None:
    np.save(path, np.zeros(3, dtype=complex))


def write_fortran(path: Path) -> None:
    np.save(path, np.asfortranarray(np.zeros((2, 3))))


def write_half(path: Path) -> None:
    np.save(path, np.zeros(3))
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize("write", [write_text, write_complex, write_fortran, write_half, lambda path: None])
def test_a_file_that_is_no_such_array_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], write: Any
) -> None:
    path = tmp_path / "a.npy"
    write(path)
    assert str(path) in refusal(capsys, "reduce", str(path), *FLAGS)


@pytest.mark.parametrize(
    "options",
    [
        ["--tile", "5000"],
        ["--tile", "1MiB"],
        ["--cache", "512"],
        ["--cache", "0"],
        ["--line", "1000"],
        ["--in-flight", "33"],
        ["--in-flight", "-1"],
        ["--repeats", "0"],
        ["--drives", "2"],
        ["--media", "tape"],
        ["--media", "none", "--drives", "17"],
        ["--access", "random"],
    ],
    ids=" ".join,
)
def test_options_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    path = save(tmp_path / "a.npy", np.arange(100))
    refusal(capsys, "reduce", str(path), *FLAGS, *options)


def test_progress_can_stop_a_run(tmp_path: Path, small: dict[str, Any]) -> None:
    told: list[str] = []

    def stop(what: str, done: int, total: int) -> None:
        told.append(what)
        if what == "naive":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        regular.reduce(save(tmp_path / "a.npy", np.arange(1000)), progress=stop, **small)
    assert {"adding up the reference", "tiled", "naive"} <= set(told)


@pytest.mark.parametrize("count", [0, 1, 511, 8192, 50_001])
@pytest.mark.parametrize("media", ["file", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint32"])
def test_a_sum_of_vectors_is_numpys(
    tmp_path: Path, dtype: str, media: str, count: int, small: dict[str, Any]
) -> None:
    random = np.random.default_rng(count)
    a, b = (random.integers(0, 1 << 31, count).astype(dtype) for _ in range(2))
    first, second = save(tmp_path / "a.npy", a), save(tmp_path / "b.npy", b)
    result = regular.vectoradd(first, second, tmp_path / "c.npy", media=media, **small)
    c = np.load(tmp_path / "c.npy")
    assert c.dtype == dtype
    assert (c == a + b).all()
    assert [m.params["access"] for m in result.measurements] == WAYS
    assert {m.id for m in result.measurements} == {"write.vectoradd"}


def test_vectors_keep_their_shape_and_raw_words_have_none(tmp_path: Path, small: dict[str, Any]) -> None:
    array = np.random.default_rng(1).random((37, 53))
    path = save(tmp_path / "a.npy", array)
    regular.vectoradd(path, path, tmp_path / "c.npy", **small)
    assert (np.load(tmp_path / "c.npy") == 2 * array).all()
    array.tofile(tmp_path / "a.bin")
    regular.vectoradd(tmp_path / "a.bin", tmp_path / "a.bin", tmp_path / "c.bin", raw="float64", **small)
    assert (np.fromfile(tmp_path / "c.bin") == 2 * array.ravel()).all()


def test_one_command_makes_two_arrays_and_adds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, c = (str(tmp_path / name) for name in ("a.npy", "b.npy", "c.npy"))
    assert cli.main(["vectoradd", a, b, c, "--generate", "300KiB", *FLAGS]) == 0
    out, err = capsys.readouterr()
    for word in (
        "explicit tiles",
        "cache, by lines",
        "written",
        "and writing at",
        f"written to {c}",
        "verified",
    ):
        assert word in out
    assert err == ""
    assert (np.load(c) == np.load(a) + np.load(b)).all()
    assert (np.load(a) != np.load(b)).any()
    assert "it exists" in refusal(capsys, "vectoradd", a, b, c, *FLAGS)
    assert cli.main(["vectoradd", a, b, c, "--replace", "--json", *FLAGS]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["result"] for line in lines] == [{"out": c}] * 3
    assert all(line["details"]["write_amplification"] >= 1 for line in lines)


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (np.zeros((2, 3)), "float64 of shape (6,) and float64 of shape (2, 3)"),
        (np.zeros(6, dtype=np.float32), "float64 of shape (6,) and float32 of shape (6,)"),
    ],
    ids=["shape", "dtype"],
)
def test_vectors_that_are_not_alike_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: np.ndarray[Any, Any], word: str
) -> None:
    a, b = save(tmp_path / "a.npy", np.zeros(6)), save(tmp_path / "b.npy", other)
    assert word in refusal(capsys, "vectoradd", str(a), str(b), str(tmp_path / "c.npy"), *FLAGS)
    assert not (tmp_path / "c.npy").exists()


def test_an_input_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = save(tmp_path / "a.npy", np.arange(6))
    assert "what is added" in refusal(capsys, "vectoradd", str(a), str(a), str(a), "--replace", *FLAGS)
    assert np.load(a).tolist() == list(range(6))


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = save(tmp_path / "a.npy", np.arange(6))
    nowhere = tmp_path / "nowhere" / "c.npy"
    assert str(nowhere) in refusal(capsys, "vectoradd", str(a), str(a), str(nowhere), *FLAGS)
    assert "no regular file" in refusal(capsys, "vectoradd", str(a), str(a), "/dev/null", "--replace", *FLAGS)


def test_a_run_that_is_stopped_leaves_no_file(tmp_path: Path, small: dict[str, Any]) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what == "line":
            raise KeyboardInterrupt

    a = save(tmp_path / "a.npy", np.arange(1000))
    with pytest.raises(KeyboardInterrupt):
        regular.vectoradd(a, a, tmp_path / "c.npy", progress=stop, **small)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_more_than_there_is_room_for_is_not_begun(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"generate .*a\.npy: it takes .*, and .* are free: ask for less"):
        regular.generate.generate_array(tmp_path / "a.npy", 1 << 50)
    assert list(tmp_path.iterdir()) == []
