"""Columns in files, and selective queries that move only what they need.

    import penstock
    from penstock import col

    with penstock.open_table("trips.arrow") as trips:
        long = trips.filter(col("trip_distance") >= 30)
        print(long.agg(col("total_amount").mean()).collect())

BaM: Qureshi et al., ASPLOS 2023, section 5.3; Mailthody, dissertation, sections 3.3 and 7.2.
"""

from __future__ import annotations

from penstock.columns.expressions import Expr, col, concat_str, count, lit, when
from penstock.columns.opening import convert
from penstock.columns.query import GroupBy, Query
from penstock.columns.results import Account, Result
from penstock.columns.statements import sql
from penstock.columns.table import Table, open_table
from penstock.columns.table_options import TableOptions
from penstock.columns.types import ColumnType

__all__ = [
    "Account",
    "ColumnType",
    "Expr",
    "GroupBy",
    "Query",
    "Result",
    "Table",
    "TableOptions",
    "col",
    "concat_str",
    "convert",
    "count",
    "lit",
    "open_table",
    "sql",
    "when",
]
