"""TPC-H and SSB queries by penstock.sql, and beside it the same statements by DuckDB, Polars and DataFusion.

    python benchmarks/tpch_queries.py --results columns.jsonl [--scale 10] [--executor cuda] [--threads 16]
        [--placements host,hbm] [--only tpch.q3,tpch.q10,tpch.q18] [--folder /tmp]

tpchgen-cli draws TPC-H's tables; SSB's lineorder and dates are made of them by DuckDB. The columns that the
queries name are converted, packed, and every statement runs warm, from the page cache. The others have the
same columns in their own formats, in memory, and the same number of threads. All answers are compared with
DuckDB's: counts, integers and decimals exactly, floating-point numbers to 1e-12.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
from penstock.columns import Table, convert, open_table, sql

COLUMNS = {
    "lineitem": "l_orderkey l_partkey l_suppkey l_quantity l_extendedprice l_discount l_tax l_returnflag"
    " l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode",
    "orders": "o_orderkey o_custkey o_orderdate o_orderpriority o_shippriority o_totalprice",
    "part": "p_partkey p_brand p_type p_size p_container",
    "customer": "c_custkey c_nationkey c_mktsegment c_name c_acctbal c_address c_phone c_comment",
    "supplier": "s_suppkey s_nationkey",
    "nation": "n_nationkey n_name n_regionkey",
    "region": "r_regionkey r_name",
}
SSB = {
    "lineorder": """select cast(strftime(o_orderdate, '%Y%m%d') as integer) as lo_orderdate,
        cast(l_quantity as bigint) as lo_quantity, cast(l_discount * 100 as bigint) as lo_discount,
        cast(l_extendedprice * 100 as bigint) as lo_extendedprice
        from lineitem join orders on l_orderkey = o_orderkey""",
    "dates": """select distinct cast(strftime(o_orderdate, '%Y%m%d') as integer) as d_datekey,
        cast(year(o_orderdate) as integer) as d_year,
        cast(year(o_orderdate) * 100 + month(o_orderdate) as integer) as d_yearmonthnum,
        cast(week(o_orderdate) as integer) as d_weeknuminyear from orders""",
}
REVENUE = (
    "sum(lo_extendedprice * lo_discount) as revenue from lineorder, dates where lo_orderdate = d_datekey"
)
STATEMENTS = {
    "tpch.q1": """select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty,
        sum(l_extendedprice) as sum_base_price, sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
        avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
        from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "tpch.q3": """select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate,
        o_shippriority from customer, orders, lineitem where c_mktsegment = 'BUILDING'
        and c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15'
        and l_shipdate > date '1995-03-15' group by l_orderkey, o_orderdate, o_shippriority
        order by revenue desc, o_orderdate limit 10""",
    "tpch.q5": """select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
        from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
        and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
        and r_name = 'ASIA' and o_orderdate >= date '1994-01-01'
        and o_orderdate < date '1994-01-01' + interval '1' year group by n_name order by revenue desc""",
    "tpch.q6": """select sum(l_extendedprice * l_discount) as revenue from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year
        and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24""",
    "tpch.q10": """select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal,
        n_name, c_address, c_phone, c_comment from customer, orders, lineitem, nation
        where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01'
        and o_orderdate < date '1993-10-01' + interval '3' month and l_returnflag = 'R'
        and c_nationkey = n_nationkey group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address,
        c_comment order by revenue desc limit 20""",
    "tpch.q12": """select l_shipmode,
        sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) as high,
        sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end) as low
        from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP')
        and l_commitdate < l_receiptdate and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01'
        and l_receiptdate < date '1994-01-01' + interval '1' year group by l_shipmode order by l_shipmode""",
    "tpch.q14": """select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount)
        else 0 end) / sum(l_extendedprice * (1 - l_discount)) as promo_revenue from lineitem, part
        where l_partkey = p_partkey and l_shipdate >= date '1995-09-01'
        and l_shipdate < date '1995-09-01' + interval '1' month""",
    "tpch.q18": """select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        from customer, orders, lineitem where o_orderkey in (select l_orderkey from lineitem
        group by l_orderkey having sum(l_quantity) > 300) and c_custkey = o_custkey
        and o_orderkey = l_orderkey group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        order by o_totalprice desc, o_orderdate limit 100""",
    "tpch.q19": """select sum(l_extendedprice * (1 - l_discount)) as revenue from lineitem, part
        where p_partkey = l_partkey and l_shipinstruct = 'DELIVER IN PERSON'
        and l_shipmode in ('AIR', 'AIR REG')
        and ((p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        and l_quantity >= 1 and l_quantity <= 11 and p_size between 1 and 5)
        or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        and l_quantity >= 10 and l_quantity <= 20 and p_size between 1 and 10)
        or (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        and l_quantity >= 20 and l_quantity <= 30 and p_size between 1 and 15))""",
    "ssb.q1.1": f"select {REVENUE} and d_year = 1993 and lo_discount between 1 and 3 and lo_quantity < 25",
    "ssb.q1.2": f"select {REVENUE} and d_yearmonthnum = 199401 and lo_discount between 4 and 6"
    " and lo_quantity between 26 and 35",
    "ssb.q1.3": f"select {REVENUE} and d_weeknuminyear = 6 and d_year = 1994 and lo_discount between 5 and 7"
    " and lo_quantity between 26 and 35",
}


CROSS_PRODUCTS = ("tpch.q5",)
"""Of which Polars makes more rows than fit memory: it joins tables with commas between them by products."""

FOR_POLARS = {
    "tpch.q3": [("customer, orders, lineitem where", "lineitem join orders on l_orderkey = o_orderkey"
                 " join customer on o_custkey = c_custkey where")],
    "tpch.q10": [("customer, orders, lineitem, nation", "lineitem join orders on l_orderkey = o_orderkey"
                  " join customer on o_custkey = c_custkey join nation on c_nationkey = n_nationkey")],
    "tpch.q18": [("customer, orders, lineitem where", "lineitem join orders on l_orderkey = o_orderkey"
                  " join customer on o_custkey = c_custkey where"), ("o_orderkey in", "l_orderkey in"),
                 (", o_orderkey,", ", l_orderkey,")],
}  # fmt: skip
"""What Polars is asked instead: the same with joins that it plans as such."""


def drawn(folder: Path, scale: float, statements: Iterable[str]) -> dict[str, Path]:
    """Parquet files of the tables that statements name."""
    words = {word for statement in statements for word in re.findall(r"\w+", statement)}
    ssb = [name for name in SSB if name in words]
    names = [name for name in COLUMNS if name in words or (ssb and name in ("lineitem", "orders"))]
    subprocess.run(
        [
            "tpchgen-cli",
            "parquet",
            "-s",
            str(scale),
            "--output-dir",
            str(folder),
            "--tables",
            ",".join(names),
        ],
        check=True,
    )
    paths = {name: folder / f"{name}.parquet" for name in names}
    base = duckdb.connect()
    for name, path in paths.items():
        base.execute(f"create view {name} as select * from '{path}'")
    for name in ssb:
        paths[name] = folder / f"{name}.parquet"
        base.execute(f"copy ({SSB[name]}) to '{paths[name]}'")
    return paths


def columns_of(name: str, path: Path) -> list[str]:
    """Of a table, that the queries name."""
    return COLUMNS[name].split() if name in COLUMNS else ds.dataset(path).schema.names


class Others:
    """Engines that run the same statements over the same columns."""

    def __init__(self, folder: Path, paths: dict[str, Path], threads: int) -> None:
        self.engines: dict[str, Callable[[str], list[Any]]] = {}
        frames = {name: ds.dataset(path).to_table(columns_of(name, path)) for name, path in paths.items()}
        base = duckdb.connect(str(folder / "tables.duckdb"))
        base.execute(f"set threads = {threads}")
        for name, frame in frames.items():
            base.register("given", frame)
            base.execute(f"create table {name} as select * from given")
        self.engines["duckdb"] = lambda statement: base.execute(statement).fetchall()
        self._add_polars(frames, threads)
        self._add_datafusion(frames, threads)

    def _add_polars(self, frames: dict[str, Any], threads: int) -> None:
        os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
        try:
            import polars as pl
        except ImportError:
            return
        context = pl.SQLContext({name: pl.from_arrow(frame) for name, frame in frames.items()})
        self.engines["polars"] = lambda statement: context.execute(statement, eager=True).rows()

    def _add_datafusion(self, frames: dict[str, Any], threads: int) -> None:
        try:
            import datafusion
        except ImportError:
            return
        context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
        for name, frame in frames.items():
            rows = -(-frame.num_rows // threads)
            parts = [frame.slice(k * rows, rows).to_batches(1 << 16) for k in range(threads)]
            context.register_record_batches(name, [part for part in parts if part])

        def ask(statement: str) -> list[Any]:
            found = context.sql(statement).to_arrow_table()
            return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

        self.engines["datafusion"] = ask


def same(mine: list[Any], theirs: list[Any]) -> bool:
    """The same rows: integers and decimals exactly, floating-point numbers to 1e-12, or to the digits that an
    engine gives of a mean of decimals."""

    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, float) or isinstance(b, float):
            digits = [-int(v.as_tuple().exponent) for v in (a, b) if isinstance(v, Decimal)]
            near = max([1e-12 * max(abs(float(a)), abs(float(b))), *(10.0**-n for n in digits)])
            return abs(float(a) - float(b)) <= near
        return Decimal(a) == Decimal(b) if isinstance(a, (int, Decimal)) else a == b

    return len(mine) == len(theirs) and all(
        len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(mine, theirs, strict=True)
    )


def timed(call: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    """Seconds of calls after a first one, and what the last gave."""
    result = call()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        result = call()
        taken.append(time.perf_counter() - begun)
    return taken, result


def run(options: argparse.Namespace, folder: Path) -> None:
    only = options.only.split(",") if options.only else list(STATEMENTS)
    asked = {number: STATEMENTS[number] for number in only}
    paths = drawn(folder, options.scale, asked.values())
    for name, path in paths.items():
        begun = time.perf_counter()
        convert(ds.dataset(path).scanner(columns=columns_of(name, path)).to_reader(), folder / name)
        print(f"converted {name}: {time.perf_counter() - begun:.1f} s", flush=True)
    others = Others(folder, paths, options.threads).engines
    tables: dict[str, dict[str, Table]] = {}
    for place in options.placements.split(","):
        threads = 0 if options.executor == "cuda" else options.threads
        tables[place] = {
            name: open_table(folder / name, executor=options.executor, placement=place, threads=threads)
            for name in paths
        }
    for number, statement in asked.items():
        seconds: dict[str, list[float]] = {}
        expected: list[Any] = []
        for name, ask in others.items():
            if name == "polars" and number in CROSS_PRODUCTS:
                continue
            asked = statement
            for mine, theirs in FOR_POLARS.get(number, ()) if name == "polars" else ():
                asked = asked.replace(mine, theirs)
            try:
                seconds[name], answer = timed(partial(ask, asked), options.repeats)
            except Exception as problem:
                print(f"{number}: {name} does not run it: {str(problem).splitlines()[0][:120]}")
                continue
            expected = expected or answer
            if not same(answer, expected):
                print(f"{number}: {name} answers otherwise: {answer[:2]} beside {expected[:2]}")
        for place, given in tables.items():
            taken, result = timed(partial(sql, statement, **given), options.repeats)
            if not same(result.rows(), expected):
                raise SystemExit(f"{number}: {place}: {result.rows()[:3]} beside {expected[:3]}")
            report(options, number, place, taken, seconds, result.account)


def report(
    options: argparse.Namespace, number: str, place: str, taken: list[float], seconds: dict[str, list[float]],
    account: Any,
) -> None:  # fmt: skip
    mine = statistics.median(taken)
    base = {name: statistics.median(each) for name, each in seconds.items()}
    best = min(base, key=lambda name: base[name])
    line = {
        "id": number, "value": mine * 1e3, "unit": "ms", "repeats": len(taken),
        "baseline": f"the fastest of {', '.join(base)}: {best}", "baseline_value": base[best] * 1e3,
        "ratio": base[best] / mine, "spread": (max(taken) - min(taken)) / mine, "verified": True,
        "params": {"scale": options.scale, "placement": place, "executor": options.executor,
                   "threads": options.threads},
        "details": {f"over_{name}": each / mine for name, each in base.items()}
        | {f"{name}_ms": each * 1e3 for name, each in base.items()}
        | {"engine_ms": account.seconds * 1e3, "rows_met": account.rows_met,
           "effective_gb_per_s": account.bytes_named / mine / 1e9},
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }  # fmt: skip
    with Path(options.results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    shown = " ".join(f"{name} {each * 1e3:.1f} ({each / mine:.2f}x)" for name, each in base.items())
    print(f"{number} {place}: {mine * 1e3:.2f} ms, engine {account.seconds * 1e3:.2f}; {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--scale", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--executor", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--placements", default="host")
    parser.add_argument("--only", default="", help="some statements: tpch.q3,tpch.q18")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where tables are made, and removed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        run(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
