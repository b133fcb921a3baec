"""Tables of columns on volumes, queried where they lie, on files as members."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.cli import main as cli
from places import DEVICES
from test_volume_arrays import LAYOUTS, host, made, put

native = pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from penstock.columns import Query, Table, col, convert, count, open_table, sql  # noqa: E402

ROWS = 100_000
SMALL: dict[str, Any] = {"cache": "1MiB", "line": 512}


def trips() -> Any:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "miles": np.sort(random.random(ROWS) * 40),
            "zone": pa.array(random.choice(["JFK", "EWR", "LGA"], ROWS)),
            "paid": pa.array(random.integers(0, 10_000, ROWS), mask=random.random(ROWS) < 0.1),
            "share": random.random(ROWS),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("columns") / "trips"
    convert(trips(), path)
    return path


def imported(members: list[str], folder: Path, name: str = "trips") -> str:
    assert cli.main(["volume", "import", *members, name, str(folder)]) == 0
    return f"volume:{name}@{','.join(reversed(members))}"


def by_zone(table: Table) -> Query:
    far = table.filter((col("miles") > 36) & (col("zone") != "LGA"))
    return far.group_by("zone").agg(col("share").max(), paid=col("paid").sum(), n=count())


@pytest.mark.parametrize("executor", DEVICES)
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize(("layout", "members", "stripe"), LAYOUTS)
def test_queries_are_answered_as_from_files(
    layout: str, members: int, stripe: int, direct: bool, executor: Any, tmp_path: Path, folder: Path
) -> None:
    name = imported(made(tmp_path, layout, members, stripe), folder)
    options: dict[str, Any] = {"executor": executor, "direct": direct, **SMALL}
    with open_table(folder, placement="storage", **options) as files, open_table(name, **options) as table:
        assert (table.placement, table.rows, table.schema) == ("storage", ROWS, files.schema)
        rows = by_zone(table).collect()
        assert rows.rows() == by_zone(files).collect().rows()
        assert rows.account.bytes_moved > 0
        again, on_files = by_zone(table).collect().account, by_zone(files).collect().account
        assert again.zones_skipped == on_files.zones_skipped > 0
        assert table.has_zone_map("miles")
        assert table.take([ROWS - 1, 7, 7]).rows() == files.take([ROWS - 1, 7, 7]).rows()
        assert table.top_k(3, "share").collect().rows() == files.top_k(3, "share").collect().rows()
        found = sql("SELECT zone, COUNT(*) FROM t WHERE miles < 2 GROUP BY zone ORDER BY zone", t=table)
        assert found.rows() == [
            (
                zone,
                sum(1 for row in files.filter((col("miles") < 2) & (col("zone") == zone)).collect().rows()),
            )
            for zone in ("EWR", "JFK", "LGA")
        ]


def test_statements_name_what_is_on_a_volume(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    members = made(Path())
    os.rename(members[0], "member")  # noqa: PTH104
    name = imported(["member", *members[1:]], folder)
    for each in (name, f"volume:trips@{','.join([*members[1:], 'member'])}"):
        assert sql(f"SELECT COUNT(trips.zone) FROM '{each}'").item() == ROWS
    gc.collect()
    gc.disable()  # what is closed does not wait for it
    try:
        for what in ("paid", "CAST(paid AS VARCHAR)", "zone || CAST(paid AS VARCHAR)"):
            sql(f"SELECT {what}, COUNT(*) FROM '{name}' GROUP BY ALL")
            native.volume_import(["member", *members[1:]], f"copy of {what}", str(folder / "table.json"))
    finally:
        gc.enable()
    assert cli.main(["sql", "SELECT MAX(trips.miles) FROM trips", name, "--executor", "cpu"]) == 0
    assert "1 row in" in capsys.readouterr().out
    native.volume_import(["member", *members[1:]], "behind it", str(folder / "table.json"))
    Path("out.csv").symlink_to(members[1])
    for statement, sources in ((f"SELECT * FROM '{name}'", []), ("SELECT * FROM trips", [name])):
        assert cli.main(["sql", statement, *sources, "-o", "out.csv"]) == cli.REFUSED
        assert "it is the input volume:trips@" in capsys.readouterr().err


def test_members_are_those_of_the_folder_in_which_a_table_was_opened(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    members = made(Path())
    values = put(members, "values", np.arange(9), Path())
    with (
        open_table(imported(members, folder), executor="cpu") as table,
        open_table({"v": values, "w": values}, executor="cpu") as arrays,
    ):
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert table.filter(col("miles") >= 0).agg(n=count()).collect().item() == ROWS
        assert arrays.agg(col("w").sum()).collect().item() == 36
    assert (table.placement, arrays.placement) == ("storage", "storage")


@pytest.mark.parametrize("executor", DEVICES)
def test_explain_says_what_it_says_of_files(executor: Any, tmp_path: Path, folder: Path) -> None:
    name = imported(made(tmp_path), folder)
    with (
        open_table(folder, placement="storage", executor=executor, **SMALL) as files,
        open_table(name, executor=executor, **SMALL) as table,
    ):
        printed, expected = (by_zone(each).explain(analyze=True) for each in (table, files))
        assert " lines of 512 " in printed
        columns = [line for line in printed.splitlines() if line.startswith("  ")]
        assert columns == [line for line in expected.splitlines() if line.startswith("  ")]
        assert printed.splitlines()[0].endswith(f"4 columns, placement storage, executor {executor}")


@pytest.mark.parametrize("executor", DEVICES)
def test_lines_are_counted_where_the_volume_has_them(executor: Any, tmp_path: Path) -> None:
    """Those of 64 KiB do not begin where files do."""
    values = np.arange(7500)  # less than a line
    members = made(tmp_path, "striped", 2, 65536)
    put(members, "before", np.arange(1000), tmp_path)
    name = put(members, "v", values, tmp_path)
    begin = next(each for each in native.volume_facts(members)["files"] if each["name"] == "v")
    first = begin["address"] + begin["bytes"] - values.nbytes
    options: dict[str, Any] = {"executor": executor, "cache": "16MiB", "line": 65536}
    with open_table({"v": name, "w": name}, **options) as table:
        printed = table.filter(col("w") >= 0).select("v").explain(analyze=True)
    assert first // 65536 != (first + values.nbytes) // 65536
    assert "in 2 lines of 65536" in printed


@pytest.mark.parametrize("executor", DEVICES)
def test_columns_are_arrays_and_arrays_columns(executor: Any, tmp_path: Path, folder: Path) -> None:
    members = made(tmp_path)
    name = imported(members, folder)
    with open_table(name, executor=executor, **SMALL) as table, open_table(folder) as files:
        with table.array("share", device=executor, **SMALL) as share:
            assert share.placement == "storage"
            assert np.array_equal(host(share[:]), files.select("share").collect()["share"])
        with pytest.raises(ValueError, match="it has nulls"):
            table.array("paid")
    values = np.arange(5000)
    np.save(tmp_path / "w.npy", values % 7)
    name = put(members, "v", values, tmp_path)
    with open_table({"v": name, "w": name}, executor=executor, **SMALL) as table:
        assert table.filter(col("w") < 100).agg(col("v").sum()).collect().item() == 4950
    convert(pa.table({"n": np.arange(1000) % 5}), tmp_path / "packed")
    with pytest.raises(ValueError, match="packed on a volume: query it, or export the table"):
        open_table(imported(members, tmp_path / "packed", "packed"), executor=executor).array("n")


def test_columns_of_one_volume_share_it(tmp_path: Path) -> None:
    members = made(tmp_path)
    names = [put(members, each, np.arange(50) + k, tmp_path) for k, each in enumerate("ab")]
    names[1] = f"volume:b@{','.join(members)}"  # in another order
    with open_table({"a": names[0], "b": names[1]}, executor="cpu") as table:
        opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
        assert [opened.count(os.path.realpath(each)) for each in members] == [1] * len(members)
        assert table.agg(col("a").sum(), col("b").sum()).collect().rows() == [(1225, 1275)]


def test_tables_come_back_as_folders(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = made(tmp_path)
    imported(members, folder)
    assert cli.main(["volume", "list", *members]) == 0
    out = capsys.readouterr().out
    assert "table" in out
    assert f"{len(list(folder.iterdir()))} files" in out
    assert cli.main(["volume", "export", *members, "trips", str(tmp_path / "again")]) == 0
    for each in folder.iterdir():
        assert (tmp_path / "again" / each.name).read_bytes() == each.read_bytes()
    assert cli.main(["sql", "SELECT COUNT(*) AS n FROM t", f"t=volume:trips@{','.join(members)}"]) == 0
    assert str(ROWS) in capsys.readouterr().out.replace(",", "")


def test_what_cannot_be_opened_is_refused_in_one_sentence(tmp_path: Path, folder: Path) -> None:
    members = made(tmp_path)
    name = imported(members, folder)
    put(members, "features", np.arange(7), tmp_path)
    listed = ",".join(members)
    for wrong, sentence in (
        (f"volume:features@{listed}", "it is no table: write one with penstock.columns.convert"),
        (f"volume:none@{listed}", "the volume has none: it has features, trips"),
        (f"volume:trips@{members[0]},{members[2]}", "these are missing: 1: attach and name them"),
        ("volume:trips", "no members are named: write volume:NAME@MEMBER,MEMBER"),
    ):
        with pytest.raises(ValueError, match=sentence) as raised:
            open_table(wrong)
        assert str(raised.value).startswith(f"open {wrong}: ")
        assert len(str(raised.value).splitlines()) == 1
    absent = f"volume:none@{members[0]}"
    with pytest.raises(ValueError, match=rf"^open {absent}: "):
        open_table({"v": absent})
    with pytest.raises(FileNotFoundError, match=r"^open volume:trips@.*: No such file or directory"):
        open_table(f"volume:trips@{members[0]},{tmp_path / 'none'}")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("placement host", {"placement": "host"}),
        ("placement hbm", {"placement": "hbm"}),
        ("media p5800x", {"media": "p5800x", "placement": "storage"}),
    ]
    for chosen, options in refused:
        with pytest.raises(ValueError, match=f": {chosen}: .* through a cache: leave it out, or export"):
            open_table(name, executor="cpu", **options)
    with pytest.raises(ValueError, match="stripes of 16384 bytes"):
        open_table(name, executor="cpu", line=32768).filter(col("miles") > 1).collect()


def test_tables_that_are_damaged_are_refused(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def cut(path: Path) -> None:
        os.truncate(path, 100)

    members = made(tmp_path)
    cases: list[tuple[str, Callable[[Path], object], str]] = [
        ("words", Path.unlink, "it has no file"),
        ("values", Path.unlink, "it has no file"),
        ("values", cut, "it was cut short; write it anew"),
        ("table.json", lambda path: path.write_text("{}"), "table.json is damaged: it has no 'format'"),
    ]
    for number, (file, change, _) in enumerate(cases):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(folder, copy)
        change(next(each for each in sorted(copy.iterdir()) if file in each.name))
        native.volume_import(members, copy.name, str(copy))
    assert cli.main(["volume", "import", *members, "other", str(copy)]) == cli.REFUSED
    assert "table.json is damaged" in capsys.readouterr().err
    for number, (*_, sentence) in enumerate(cases):
        with pytest.raises(ValueError, match=rf"^open volume:copy{number}.*{sentence}") as raised:
            open_table(f"volume:copy{number}@{','.join(members)}", executor="cpu").collect()
        assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("executor", DEVICES)
def test_a_table_that_is_closed_gives_the_volume_back(executor: Any, tmp_path: Path, folder: Path) -> None:
    members = made(tmp_path)
    table = open_table(imported(members, folder), executor=executor, **SMALL)
    with pytest.raises(penstock.Error, match="another program has this volume open"):
        native.volume_remove(members, "trips")
    wanted, found, closed = by_zone(table).collect().rows(), [], []

    under_way = threading.Event()

    def ask() -> None:
        try:
            while True:
                found.append(by_zone(table).collect().rows())
                under_way.set()
        except ValueError as problem:
            closed.append(str(problem))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    assert under_way.wait(60)
    table.close()
    for each in threads:
        each.join()
    assert all(rows == wanted for rows in found)
    assert closed == [f"query {table.name}: the table is closed: open it again"] * 3
    native.volume_remove(members, "trips")


@pytest.mark.parametrize("executor", DEVICES)
def test_a_member_that_is_cut_short_while_it_is_queried_is_named(
    executor: Any, tmp_path: Path, folder: Path
) -> None:
    members = made(tmp_path)
    with open_table(imported(members, folder), executor=executor, **SMALL) as table:
        by_zone(table).collect()
        os.truncate(members[1], 2**20)
        with pytest.raises(ValueError, match=r"^query volume:trips@.*m1.img has changed since it was opened"):
            by_zone(table).collect()


def test_names_with_zero_bytes_are_refused(tmp_path: Path, folder: Path) -> None:
    name = imported(made(tmp_path), folder)
    np.save(tmp_path / "n.npy", np.arange(3))
    for source in (f"{name}\0tail", {"n": f"{tmp_path}/n.npy\0tail"}):
        with pytest.raises(ValueError, match=r"^open '.*: no path has a zero byte: take it out$"):
            open_table(source)
