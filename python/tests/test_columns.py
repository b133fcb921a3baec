"""penstock.columns: queries of tables beside Polars', by either executor, wherever the columns lie."""

from __future__ import annotations

import datetime
import decimal
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.columns import col, convert, count, lit, open_table, taxi

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pl: Any = pytest.importorskip("polars", reason="polars is not installed")
pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from column_frames import ROWS, frame_of, opened, same, written  # noqa: E402

DAY = datetime.date(2020, 1, 31)


@pytest.fixture(scope="module")
def frame() -> Any:
    return frame_of()


@pytest.fixture(scope="module")
def tables(frame: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = opened(frame, tmp_path_factory.mktemp("columns"))
    yield made
    for table in made:
        table.close()


@pytest.mark.parametrize("how", ["stream", "folder", "parquet", "ipc"])
@pytest.mark.parametrize("placement", ["host", "storage", "hbm"])
def test_a_table_is_what_polars_has(
    frame: Any, tmp_path: Path, executor: Any, how: str, placement: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if placement == "hbm" and executor == "cpu":
        placement = "host-cached"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache: Any = {} if placement in ("host", "hbm") else {"cache": "1MiB"}
    with open_table(written(frame, tmp_path, how), executor=executor, placement=placement, **cache) as table:
        assert table.rows == ROWS
        assert table.columns == frame.columns
        same(table.collect(), frame)
        ours = table.filter((col("cents") >= 60) & (col("text_n") != "east"))
        theirs = frame.filter((pl.col("cents") >= 60) & (pl.col("text_n") != "east"))
        same(
            ours.select("i8", "f64_n", "text_n", "day_n").collect(),
            theirs.select("i8", "f64_n", "text_n", "day_n"),
        )
        same(
            ours.agg(col("i64").sum(), col("f64_n").mean(), col("day_n").max(), n=count()).collect(),
            theirs.select(pl.col("i64").sum(), pl.col("f64_n").mean(), pl.col("day_n").max(), n=pl.len()),
        )


def test_zones_that_cannot_have_a_row_are_left_out(frame: Any, executor: Any) -> None:
    with open_table(frame, executor=executor) as table:
        query = table.filter(col("sorted").is_between(100, 120)).agg(col("cents").sum(), n=count())
        first, second = query.collect(), query.collect()
        assert table.has_zone_map("sorted")
        assert first.account.zones_skipped == 0
        assert second.account.zones_skipped == 2
        assert first.rows() == second.rows()
        same(
            second,
            frame.filter(pl.col("sorted").is_between(100, 120)).select(pl.col("cents").sum(), n=pl.len()),
        )
        nothing = table.filter(col("sorted") > 10**6).agg(n=count()).collect()
        assert nothing.account.zones_skipped == 3
        assert nothing.item() == 0


def test_the_largest_and_the_smallest(frame: Any, executor: Any) -> None:
    with open_table(frame, executor=executor) as table:
        for reverse in (False, True):
            ours = table.filter(col("flag")).top_k(7, "cents", reverse=reverse).collect()
            theirs = frame.filter(pl.col("flag")).sort("cents", descending=not reverse).head(7)
            assert ours["cents"].tolist() == theirs["cents"].to_list()
        assert [*table.select("i8").top_k(3, "day_n").collect()] == ["i8"]
        assert len(table.top_k(10**6, "f64_n").collect()["f64_n"]) == ROWS


def test_columns_on_emulated_drives(frame: Any, tmp_path: Path, executor: Any) -> None:
    convert(frame, tmp_path / "table")
    drives: Any = {"executor": executor, "placement": "storage", "media": "p5800x", "drives": 2}
    names = ["i64", "f64_n", "cents"]
    with open_table(tmp_path / "table", columns=names, cache="1MiB", **drives) as table:
        assert table.columns == names
        for _ in range(2):
            ours = table.filter(col("cents") >= 60).agg(col("i64").sum(), col("f64_n").mean(), n=count())
            theirs = frame.filter(pl.col("cents") >= 60)
            same(ours.collect(), theirs.select(pl.col("i64").sum(), pl.col("f64_n").mean(), n=pl.len()))
    with open_table(tmp_path / "table", **drives) as table, pytest.raises(ValueError, match="takes 16: name"):
        table.collect()
    with pytest.raises(ValueError, match="there is no column 'cent' to open: it has i8"):
        open_table(tmp_path / "table", columns=["cent"])
    for option, value in (("cache", "1MiB"), ("media", "p5800x"), ("drives", 2), ("direct", True)):
        with pytest.raises(ValueError, match=f"{option}.*: placement host "):
            open_table(tmp_path / "table", **{option: value})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="columns='i8': give a list of names"):
        open_table(tmp_path / "table", columns="i8")
    drives["media"] = "floppy"
    with (
        pytest.raises(ValueError, match="floppy"),
        open_table(tmp_path / "table", columns=names, **drives) as table,
    ):
        table.collect()


@pytest.mark.parametrize(("value", "rows"), [(True, ROWS), (False, 0), (None, 0)])
def test_a_literal_is_a_condition(tables: Any, value: Any, rows: int) -> None:
    for table in tables:
        assert table.filter(lit(value)).agg(n=count()).collect().item() == rows
        assert table.filter(lit(value)).select("i8").collect().row_count == rows
        assert table.filter(lit(value) & (col("i8") > 200)).agg(n=count()).collect().item() == 0


def test_rows_by_number(frame: Any, tables: Any) -> None:
    numbers = np.random.default_rng(4).integers(0, ROWS, 3000)
    for table in tables:
        same(table.take(numbers), frame[numbers])
        twice = table.take([7, 7, ROWS - 1], "i8", (col("f64_n") * 2).alias("x"))
        same(twice, frame[[7, 7, ROWS - 1]].select("i8", (pl.col("f64_n") * 2).alias("x")))
        assert table.take([], "i8").rows() == []
        with pytest.raises(ValueError, match="take row 5000"):
            table.take([1, ROWS])


def test_groups_come_in_order_with_nulls_last(executor: Any) -> None:
    frame = pl.DataFrame({"k": [3, None, 1, 3], "v": [1.0, 2.0, None, 4.0]})
    with open_table(frame, executor=executor) as table:
        grouped = table.group_by("k").agg(col("v").sum(), mean=col("v").mean(), n=count())
        assert grouped.collect().rows() == [(1, 0.0, None, 1), (3, 5.0, 2.5, 2), (None, 2.0, 2.0, 1)]
        ratio = table.agg((col("v").sum() / count()).alias("r")).collect()
        assert ratio.item() == 7 / 4
        assert table.filter(col("k") > 99).group_by("k").agg(n=count()).collect().rows() == []


def test_decimals_are_exact(executor: Any) -> None:
    values = [decimal.Decimal("0.10"), decimal.Decimal("-7.25"), None, decimal.Decimal("10.00")]
    table = pa.table({"d": pa.array(values, pa.decimal128(12, 2)), "i": [1, 2, 3, 4]})
    with open_table(table, executor=executor) as ours:
        assert ours.agg(col("d").sum(), m=(col("d") * col("i")).max()).collect().rows() == [
            (decimal.Decimal("2.85"), decimal.Decimal("40.00"))
        ]
        assert ours.filter(col("d") == 0.1).select("i").collect().rows() == [(1,)]
        assert ours.filter(col("d") >= decimal.Decimal("0.1")).agg(n=count()).collect().item() == 2


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 4096])
def test_any_number_of_rows(executor: Any, rows: int) -> None:
    frame = pl.DataFrame({"a": np.arange(rows), "n": pl.Series([None] * rows, dtype=pl.Float64)})
    with open_table(frame, executor=executor) as table:
        assert table.agg(col("a").sum(), n=col("n").sum(), c=col("n").count()).collect().rows() == [
            (int(np.arange(rows).sum()), 0.0, 0)
        ]
        for limit in (0, rows // 2, rows):
            got = table.filter(col("a") < limit).select("a").collect()
            assert got["a"].tolist() == list(range(limit))


def test_many_columns(tmp_path: Path) -> None:
    many = {f"c{k}": np.full(3, k) for k in range(2000)}
    convert(pl.DataFrame(many), tmp_path / "wide")
    with open_table(tmp_path / "wide", executor="cpu") as table:
        assert table.agg(col("c7").sum(), col("c1999").sum()).collect().rows() == [(21, 5997)]


def test_what_cannot_be_is_one_sentence(frame: Any, tmp_path: Path, executor: Any) -> None:
    with open_table(frame, executor=executor) as table:
        with pytest.raises(KeyError, match=r"there is no column 'Cents'.*it has cents"):
            table.filter(col("Cents") > 1).collect()
        with pytest.raises(TypeError, match=r"1 < text\): int64 and string|1 < text: int64 and string"):
            table.filter(col("text") > 1).collect()
        with pytest.raises(TypeError, match="a condition is wanted"):
            table.filter(col("cents")).collect()
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            table.select(x=col("i64") * (2**62) * 4).collect()
        with pytest.raises(TypeError, match="no truth value"):
            _ = 1 < col("cents") < 3
        with pytest.raises(ValueError, match="two results are called 'cents'"):
            table.select("cents", "cents")
        with pytest.raises(TypeError, match="takes aggregates"):
            table.agg(col("cents"))
    with pytest.raises(ValueError, match="the table is closed"):
        table.agg(n=count()).collect()
    with pytest.raises(ValueError, match="there is no such file"):
        open_table(tmp_path / "nothing.parquet")
    for name in ("a.parquet", "a.arrow", "a.orc"):
        (tmp_path / name).write_bytes(b"PAR1 is not what this is" * 20)
        with pytest.raises(ValueError, match=r"write it anew"):
            open_table(tmp_path / name, executor=executor)


def test_an_overflow_of_rows_that_are_left_out_is_none(executor: Any) -> None:
    frame = pl.DataFrame({"a": [1, 2**62, 3]})
    with open_table(frame, executor=executor) as table:
        assert table.filter(col("a") < 10).agg((col("a") * 4).sum()).collect().item() == 16
        with pytest.raises(OverflowError):
            table.agg((col("a") * 4).sum()).collect()
        assert table.agg(x=(col("a") // 0).count()).collect().item() == 0


def test_a_file_that_was_cut_is_refused(frame: Any, tmp_path: Path, executor: Any) -> None:
    convert(frame, tmp_path / "table")
    values = max(tmp_path.glob("table/*.values"), key=lambda path: path.stat().st_size)
    with values.open("r+b") as file:
        file.truncate(values.stat().st_size // 2)
    with (
        open_table(tmp_path / "table", executor=executor) as table,
        pytest.raises(ValueError, match="cut short"),
    ):
        table.collect()
    (tmp_path / "table" / "table.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        open_table(tmp_path / "table")


def test_amounts_come_out_of_few_bits_as_they_were(tmp_path: Path, executor: Any) -> None:
    draw = np.random.default_rng(3)
    columns = {
        "cents": np.round(draw.gamma(1.0, 30.0, 9000), 2),
        "halves": draw.integers(-9, 9, 9000) / 2,
        "late": np.where(np.arange(9000) < 8999, 1.5, 0.0625),  # the last needs more digits
        "rough": draw.random(9000),
        "zeros": np.where(np.arange(9000) == 5, -0.0, 0.0),
    }
    convert(pl.DataFrame(columns), tmp_path / "table")
    with open_table(tmp_path / "table", executor=executor) as table:
        assert [c.encoding for c in table.layout.columns] == [
            "packed",
            "packed",
            "packed",
            "float64",
            "float64",
        ]
        for name, values in columns.items():
            assert table.select(name).collect()[name].tobytes() == values.tobytes()


def test_arithmetic_of_aggregates_is_exact(executor: Any) -> None:
    i = col("i")
    with open_table(pa.table({"i": [-(2**63), 2**63 - 1]}), executor=executor) as table:
        for wrong in (i.max() + 1, i.max() * 2, i.max() - i.min(), -i.min(), count() * (2**63 - 1)):
            with pytest.raises(OverflowError, match="beyond 64 bits"):
                table.agg(x=wrong).collect()
        assert table.agg(x=i.max() - 1, y=i.min() / 2.0).collect().rows() == [(2**63 - 2, -(2.0**62))]
    cents = [decimal.Decimal("99999999999999.99"), decimal.Decimal("0.01")]
    with open_table(pa.table({"c": pa.array(cents, pa.decimal128(18, 2))}), executor=executor) as table:
        made = table.agg(a=col("c").max() - col("c").min(), b=col("c").min() * 2 + decimal.Decimal("0.001"))
        assert made.collect().rows() == [(decimal.Decimal("99999999999999.98"), decimal.Decimal("0.021"))]
        assert table.select(x=col("c") - 0.005).collect().rows()[1] == (decimal.Decimal("0.005"),)


def test_one_of_many(frame: Any, tables: Any) -> None:
    days = [DAY + datetime.timedelta(days=3 * k) for k in range(200)]
    for table in tables:
        for name, values in (
            ("i64", list(range(-99, 99, 3))),
            ("i32_n", [3, None, 7]),
            ("day_n", days),
            ("f64_n", [0.5, *range(40)]),
            ("i64", [5, 10**15]),
            ("i8_n", []),
            ("text_n", ["east", None, "up"]),
        ):
            kept = [value for value in values if value is not None]
            ours = table.select(x=col(name).is_in(values)).collect()
            same(ours, frame.select(x=pl.col(name).is_in(kept)))
        long = col("i64")
        for k in range(3000):
            long = long + k
        with pytest.raises(ValueError, match="nested too deep"):
            table.select(x=long).collect()
        several = [(col("i64") + k).sum().alias(f"s{k}") for k in range(20)]
        assert len(table.agg(*several).collect()) == 20


def test_times_of_zones_and_units(executor: Any) -> None:
    time = datetime.datetime(2024, 7, 1, 3, 30)
    table = pa.table(
        {
            "ny": pa.array([time], pa.timestamp("us", "America/New_York")),
            "east": pa.array([time], pa.timestamp("us", "+05:30")),
            "ms": pa.array([time], pa.timestamp("ms")),
            "ns": pa.array([time], pa.timestamp("ns")),
            "s": pa.array([time], pa.timestamp("s")),
        }
    )
    with open_table(table, executor=executor) as ours:
        parts = ours.select(h=col("east").dt.hour(), w=col("ns").dt.weekday(), d=col("s").dt.date()).collect()
        assert parts.rows() == [(9, 1, time.date())]
        with pytest.raises(TypeError, match="clocks of America/New_York change"):
            ours.select(col("ny").dt.hour()).collect()
        with pytest.raises(TypeError, match="give it a zone"):
            ours.filter(col("ny") < time).collect()
        later = time.replace(microsecond=500_000)
        same_time = (col("ms") == col("ns")) & (col("s") == time) & (col("s") < later)
        far = col("ns") < datetime.datetime(9000, 1, 1)
        assert ours.filter(same_time).agg(n=count()).collect().item() == 1
        with pytest.raises(OverflowError):
            ours.filter(far).agg(n=count()).collect()


def test_what_a_query_was_told_is_not_told_again(frame: Any, executor: Any) -> None:
    with open_table(frame, executor=executor) as table:
        head = table.filter(col("flag")).head(5)
        for wrong in ("filter", "agg", "top_k"):
            given = {"filter": (col("flag"),), "agg": (count(),), "top_k": (2, "i8")}[wrong]
            with pytest.raises(TypeError, match=r"behind .*head"):
                getattr(head, wrong)(*given)
        assert head.head(10).collect().row_count == 5
        with pytest.raises(ValueError, match="give how many rows"):
            table.select("i8").head(-1)


def test_columns_that_are_left_out_say_why(tmp_path: Path, executor: Any) -> None:
    odd = pa.table({"l": [[1], [2]], "a": [1, 2]})
    with pytest.warns(UserWarning, match="1 column is left out: 'l'"):
        convert(odd, tmp_path / "table")
    with (
        open_table(tmp_path / "table", executor=executor) as table,
        pytest.raises(KeyError, match="cannot be used"),
    ):
        table.select("l").collect()
    with pytest.raises(ValueError, match="no column that can be used"):
        convert(odd.select(["l"]), tmp_path / "none")
    (tmp_path / "a.txt").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"its name ends in '\.txt'"):
        open_table(tmp_path / "a.txt")


def test_arrow_files_that_are_not_in_place(
    tmp_path: Path, executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int32()), pa.array(["x", None, "x"]))
    table = pa.table({"s": words})
    with pa.ipc.new_file(tmp_path / "file.arrow", table.schema) as file:
        file.write_table(table)
    with pa.ipc.new_stream(tmp_path / "stream.arrow", table.schema) as stream:
        stream.write_table(table)
    for name in ("file.arrow", "stream.arrow"):
        with open_table(tmp_path / name, executor=executor) as ours:
            assert ours.group_by("s").agg(n=count()).collect().rows() == [("x", 2), (None, 2)]


def test_a_file_that_has_changed_is_refused(tmp_path: Path, executor: Any) -> None:
    np.save(tmp_path / "a.npy", np.arange(5000))
    with open_table({"a": tmp_path / "a.npy"}, executor=executor) as table:
        asked = table.filter(col("a") > 4000).agg(n=count())
        assert asked.collect().item() == 999
        with (tmp_path / "a.npy").open("r+b") as file:
            file.seek(-8, 2)
            file.write(bytes(8))
        os.utime(tmp_path / "a.npy", (1, 1))
        with pytest.raises(ValueError, match="has changed since it was opened"):
            asked.collect()


def test_a_file_that_has_changed_before_the_first_query_is_refused(tmp_path: Path, executor: Any) -> None:
    np.save(tmp_path / "a.npy", np.arange(5000))
    with open_table({"a": tmp_path / "a.npy"}, executor=executor) as table:
        np.save(tmp_path / "a.npy", np.arange(5000) / 2)  # the bytes are there, and are no integers
        os.utime(tmp_path / "a.npy", (1, 1))
        with pytest.raises(ValueError, match=r"a\.npy has changed since it was opened"):
            table.agg(col("a").max()).collect()


@pytest.mark.parametrize("suffix", [".npy", ".arrow"])
def test_a_file_whose_time_is_set_back_has_changed(suffix: str, tmp_path: Path, executor: Any) -> None:
    path = tmp_path / f"a{suffix}"

    def write(values: Any) -> None:
        if suffix == ".npy":
            np.save(path, values)
        else:
            table = pa.table({"a": values})
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)

    write(np.arange(500))
    with open_table({"a": path} if suffix == ".npy" else path, executor=executor) as table:
        before = now = path.stat()
        while now.st_ctime_ns == before.st_ctime_ns:  # until the system's clock has gone on
            write(np.arange(1, 501))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            now = path.stat()
        assert (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        with pytest.raises(ValueError, match=rf"a\{suffix} has changed since it was opened"):
            table.agg(col("a").max()).collect()


@pytest.mark.parametrize("placement", ["storage", "host-cached"])
def test_a_cache_without_room_for_a_line_is_refused(placement: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5000))
    with pytest.raises(
        ValueError, match="open arrays: its cache of 4095 bytes holds no line of 4096 bytes: make"
    ):
        open_table({"a": tmp_path / "a.npy"}, placement=placement, cache=4095)
    with open_table({"a": tmp_path / "a.npy"}, placement=placement, cache=4096, executor="cpu") as table:
        assert table.agg(col("a").sum()).collect().item() == 4999 * 2500


def test_the_taxi_command_draws_and_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner
    from penstock.cli.main import penstock as command

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = CliRunner().invoke
    asked = run(
        command, ["taxi", str(tmp_path / "trips"), "--rows", "9000", "--limit", "5", "--executor", "cpu"]
    )
    assert asked.exit_code == 0, asked.output
    assert "Q5 - taxes" in asked.output
    yellow = pl.DataFrame({"trip_distance": [3.0, 40.0], "total_amount": [9.0, 100.0]})
    yellow.write_parquet(tmp_path / "yellow.parquet")
    asked = run(command, ["taxi", str(tmp_path / "yellow.parquet"), "--executor", "cpu"])
    assert "2.500000" in asked.output
    assert "without improvement_surcharge, ehail_fee, tolls_amount, mta_tax" in " ".join(asked.output.split())
    asked = run(command, ["taxi", str(tmp_path / "no.parquet")])
    assert asked.exit_code == 2
    assert not (tmp_path / "no.parquet").exists()


def test_the_taxi_queries_have_numpys_answers(tmp_path: Path, executor: Any) -> None:
    taxi.make(tmp_path / "plain", 70_000, columns="needed", pack=False, of_20_miles=0.02, of_30_miles=0.01)
    taxi.make(tmp_path / "all", 20_000)
    with open_table(tmp_path / "all", executor=executor) as table:
        assert len(table.columns) == 49
        assert table.group_by("cab_type").agg(n=count()).collect().columns[1].bits.sum() == 20_000
    with open_table(tmp_path / "plain", executor=executor) as table:
        columns = {name: table.select(name).collect()[name] for name in table.columns}
        for miles in (20.0, 30.0):
            met = columns[taxi.DISTANCE] >= miles
            assert 0.4 < met.mean() / (0.02 if miles == 20 else 0.01) < 2.5
            for number in range(6):
                average, trips = taxi.query(table, number, miles).collect().rows()[0]
                made = columns[taxi.METRICS[0]][met].sum() - sum(
                    columns[name][met].sum() for name in taxi.METRICS[1:number]
                )
                expected = (
                    columns[taxi.DISTANCE][met].mean()
                    if number == 0
                    else made / columns[taxi.DISTANCE][met].sum()
                )
                assert trips == met.sum()
                assert math.isclose(average, expected, rel_tol=1e-12)


def test_explain_counts_the_sectors_and_lines_of_rows_that_are_met(tmp_path: Path, executor: str) -> None:
    draw = np.random.default_rng(5)
    rows = 50_000
    key, amount = draw.random(rows), draw.integers(0, 1 << 11, rows)
    convert(pa.table({"key": key, "amount": amount, "share": key * 2}), tmp_path / "table")
    with open_table(tmp_path / "table", executor=executor, line="512B") as table:  # type: ignore[arg-type]
        text = (
            table.filter(col("key") < 0.01).agg(col("amount").sum(), col("share").sum()).explain(analyze=True)
        )
        found = {line.split()[0]: line for line in text.splitlines() if "sectors" in line}
    met = np.flatnonzero(key < 0.01)
    for name, bits in (("amount", 11), ("share", 64)):
        begin, end = met * bits // 8, ((met + 1) * bits + 7) // 8 - 1
        sectors = len(np.unique(np.concatenate([begin // 32, end // 32])))
        lines = len(np.unique(np.concatenate([begin // 512, end // 512])))
        least = -(-len(met) * bits // 8)
        assert f"{least} bytes of values, in {sectors} sectors {32 * sectors} " in found[name]
        assert f"in {lines} lines of 512 {512 * lines} " in found[name]
