"""Queries whose expressions are compiled for a GPU: what is, when, and that answers stay the same."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import penstock
import pytest
from compiled_queries import SOURCES, Recorder, recorded
from penstock.columns import col, compiling, count, open_table, when
from penstock.kernels import locations, nvrtc
from places import DEVICES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("kernel_cache")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

GPU = "cuda" in DEVICES


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A process that has compiled nothing, and cuda.core and a device library."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    made = compiling._Compilations()
    monkeypatch.setattr(compiling, "compilations", made)
    monkeypatch.setattr(compiling, "core", lambda: None)
    monkeypatch.setattr(compiling, "query_sources_digest", lambda resident: f"headers {resident}")
    yield made
    made.wait()


def test_short_passes_are_not_offered() -> None:
    with open_table({"x": np.arange(10)}, executor="cpu") as table:
        recorder = Recorder()
        table.native.compile_with(recorder, 1e6)
        table.agg(col("x").sum()).collect()
        assert recorder.sources == []


def test_each_pass_has_a_source_of_its_own_without_its_literals() -> None:
    first = recorded("two conditions", 10)
    assert [what for what, _ in first] == ["mark_zones", "emit_zones"]
    assert first == recorded("two conditions", 20)
    assert recorded("two conditions", 10.5) != first  # of another type


def test_a_program_that_is_too_long_is_interpreted() -> None:
    with open_table({"x": np.arange(10)}, executor="cpu") as table:
        recorder = Recorder()
        table.native.compile_with(recorder, 0.0)
        long = sum((when(col("x") == k).then(3 * k + 1).otherwise(0) for k in range(1, 60)), col("x"))
        table.agg(long.sum()).collect()
        assert recorder.sources == []
        table.agg(col("x").sum()).collect()
        assert len(recorder.sources) == 1


@pytest.mark.parametrize(
    ("name", "resident"),
    [*((name, True) for name in SOURCES), ("two conditions", False), ("groups by a hash", False)],
)
def test_sources_compile_for_a_gpu_that_is_elsewhere(name: str, resident: bool, tmp_path: Path) -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    if not resident:
        try:
            locations.query_library()
        except penstock.Error:
            pytest.skip("this build has no device library")
    for what, text in recorded(name, 10, placement="host" if resident else "storage"):
        try:
            image = nvrtc.compile_query(text, resident, 90)
        except penstock.Error as problem:
            pytest.skip(str(problem))
        assert image[:4] == b"\x7fELF"
        if resident:
            check_machine_code(image, tmp_path, text, f"{name}, {what}")


def read_machine_code() -> Any:
    """What tests/codegen reads machine code with."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "codegen"))
    reader = pytest.importorskip("machine_code", reason="the tree's tests are not here")
    if reader.nvidia_tool("cuobjdump") is None or reader.nvidia_tool("nvdisasm") is None:
        pytest.skip("cuobjdump or nvdisasm is not installed")
    return reader


def machine_code_of(image: bytes, folder: Path) -> str:
    reader = read_machine_code()
    (folder / "query.cubin").write_bytes(image)
    return str(reader.output_of([reader.nvidia_tool("nvdisasm"), "-c", str(folder / "query.cubin")]))


def check_machine_code(image: bytes, folder: Path, source: str, what: str) -> None:
    """No switch is left, and registers of the program are registers: a thread's stack has nothing but its
    sums by a key, marks of the rest of a condition, and a few spills."""
    text = machine_code_of(image, folder)
    kernel = read_machine_code().resources_of(folder / "query.cubin")["penstock_query"]
    assert not re.search(r"\bBRX\b", text), what
    assert kernel.registers <= 64, what
    sums = re.search(r"aggregation = .*, (\d+), (\d+), \d+, 1, nullptr", source)
    of_sums = 24 * int(sums[1]) * int(sums[2]) if sums is not None else 0
    of_marks = 128 if "residual = {residual_code" in source else 0
    assert kernel.stack_bytes <= (of_sums if of_sums <= 24 * 32 else 0) + of_marks + 64, what


def test_products_and_sums_are_rounded_one_by_one(tmp_path: Path) -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    recorder, draw = Recorder(), np.random.default_rng(1)
    with open_table({name: draw.normal(0, 1, 100) for name in "xyz"}, executor="cpu") as table:
        table.native.compile_with(recorder, 0.0)
        table.filter(col("x") * col("y") + col("z") < 0.5).select("x").collect()
    try:
        image = nvrtc.compile_query(recorder.sources[0], True, 90)
    except penstock.Error as problem:
        pytest.skip(str(problem))
    text = machine_code_of(image, tmp_path)
    assert "DMUL" in text
    assert "DADD" in text
    assert "DFMA" not in text


class Table:
    """The part of a compiler's caller that a native table is, with one source."""

    def __init__(self, always: bool = False) -> None:
        self.compiler = compiling.QueryCompiler(90, always)

    def run(self) -> bytes | None:
        image = self.compiler.compiled("source", True)
        if image is None:
            self.compiler.interpreted("source", True, 1.0)
        return image


def test_a_long_pass_is_compiled_behind_it(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_query", lambda *_: b"image")
    table = Table()
    assert table.run() is None
    fresh.wait()
    assert table.run() == b"image"
    assert re.match(r"compiled kernels: 1, in \d", table.compiler.account()[0])
    monkeypatch.setattr(compiling, "compilations", compiling._Compilations())  # another process
    other = Table()
    assert other.run() == b"image"
    assert other.compiler.account() == ["compiled kernels: 1, in 0.00 s, 1 of them from the cache on disk"]


def test_tables_wait_for_no_compilation(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, go_on = [], threading.Event()

    def slow(*_: Any) -> bytes:
        calls.append(1)
        assert go_on.wait(30)
        return b"image"

    monkeypatch.setattr(compiling, "compile_query", slow)
    tables = [Table(), Table()]
    assert [table.run() for table in tables * 3] == [None] * 6
    go_on.set()
    fresh.wait()
    assert [table.run() for table in tables] == [b"image"] * 2
    assert len(calls) == 1


def test_a_compilation_that_fails_is_not_tried_again(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def failing(*_: Any) -> bytes:
        calls.append(1)
        raise ValueError("compile a query: query.cu(1): error: no")

    monkeypatch.setattr(compiling, "compile_query", failing)
    table = Table()
    for _ in range(3):
        assert table.run() is None
        fresh.wait()
    assert calls == [1]
    assert table.compiler.account()[-1].endswith("error: no")
    with pytest.raises(ValueError, match="error: no"):
        compiling.QueryCompiler(90, True).compiled("another source", True)


def test_without_a_compiler_queries_are_interpreted(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise penstock.Error(
            "compile a kernel for a GPU: cuda.core is missing: pip install 'penstock[kernels]'"
        )

    monkeypatch.setattr(compiling, "core", missing)
    monkeypatch.setattr(compiling, "_may_be_there", lambda: False)
    table = Table()
    assert table.run() is None
    assert table.run() is None
    assert table.compiler.described().startswith("interpreted: ")
    assert "pip install" in table.compiler.described()


def test_a_library_that_is_missing_is_named_once(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> bytes:
        raise penstock.Error("compile a query: install the wheel nvidia-cuda-nvrtc")

    monkeypatch.setattr(compiling, "compile_query", missing)
    table = Table()
    assert table.run() is None
    fresh.wait()
    assert "nvidia-cuda-nvrtc" in table.compiler.described()
    with pytest.raises(penstock.Error, match="nvidia-cuda-nvrtc"):
        Table(always=True).run()


def test_an_image_that_does_not_load_is_forgotten(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_query", lambda *_: b"image")
    table = Table(always=True)
    assert table.run() == b"image"
    table.compiler.refused("source", "load the kernel penstock_query: damaged")
    assert table.run() is None
    assert table.compiler.account()[-1] == "no kernel: load the kernel penstock_query: damaged"
    assert list(locations.cache_folder().glob("*.cubin")) == []


def test_an_exit_waits_for_one_compilation_at_most(tmp_path: Path) -> None:
    program = """
import time
from penstock.columns import compiling
compiling.core = lambda: None
compiling.compile_query = lambda *_: time.sleep(0.5) or b"image"
compiler = compiling.QueryCompiler(90, False)
for k in range(100):
    compiler.interpreted(f"source {k}", True, 1.0)
"""
    begun = time.monotonic()
    environment = {"PYTHONPATH": str(Path(penstock.__file__).parents[1]), "PENSTOCK_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=40)
    assert time.monotonic() - begun < 20


def test_a_cpu_compiles_nothing() -> None:
    with open_table({"x": np.arange(3)}, executor="cpu") as table:
        assert table.agg(col("x").sum()).collect().account.passes[0][:2] == ("aggregate", False)
        assert "kernels" not in table.filter(col("x") > 1).explain()
    with (
        pytest.raises(ValueError, match="compiled='always': the executor cpu interprets queries: choose"),
        open_table({"x": np.arange(3)}, executor="cpu", compiled="always") as table,
    ):
        table.collect()


@pytest.mark.skipif(not GPU, reason="there is no GPU")
@pytest.mark.parametrize("placement", ["host", "hbm", "storage"])
@pytest.mark.parametrize("name", list(SOURCES))
def test_compiled_answers_are_the_interpreters(name: str, placement: str) -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    from compiled_queries import opened

    ways = {}
    for way in ("never", "always"):
        with opened(executor="cuda", placement=placement, compiled=way) as table:
            results = [SOURCES[name](table, limit).collect() for limit in (10, 10, 60)]
            assert all(done == (way == "always") for _, done, _ in results[-1].account.passes)
            ways[way] = [[(c.bits.tolist(), c.valid.tolist()) for c in each.columns] for each in results]
            if way == "always":
                printed = SOURCES[name](table, 10).explain(analyze=True)
                assert ": compiled, " in printed
                assert "compiled kernels: " in printed
    assert ways["never"] == ways["always"]


@pytest.mark.skipif(not GPU, reason="there is no GPU")
def test_what_is_wrong_in_rows_is_found_by_compiled_kernels() -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    with open_table({"x": np.array([1, 2**62, 3])}, executor="cuda", compiled="always") as table:
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            table.select(y=col("x") * 4).collect()
        assert table.filter(col("x") < 100).select(y=col("x") * 4).collect()["y"].tolist() == [4, 12]


@pytest.mark.skipif(not GPU, reason="there is no GPU")
def test_a_query_that_takes_long_is_compiled_for_its_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    monkeypatch.setattr(compiling, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(compiling, "compilations", compiling._Compilations())
    with open_table({"x": np.arange(100_000)}, executor="cuda") as table:
        query = table.filter(col("x") % 7 == 3).agg(n=count(), s=col("x").sum())
        first = query.collect()
        assert [done for _, done, _ in first.account.passes] == [False]
        compiling.compilations.wait()
        second = query.collect()
        assert [done for _, done, _ in second.account.passes] == [True]
        assert first.rows() == second.rows()


def test_days_and_texts_are_columns_of_integers() -> None:
    day = datetime.date(2020, 1, 1)
    with open_table({"d": np.array([day], "datetime64[D]")}, executor="cpu") as table:
        recorder = Recorder()
        table.native.compile_with(recorder, 0.0)
        table.filter(col("d").dt.year() == 2020).agg(count()).collect()
        assert len(recorder.sources) == 1
