"""Statements that have run, kept with their plans: planned once, run again with what lies in the tables.

A kept plan holds no table: those of its statement stand in it as weak references, and a run of the same
statement brings them. Nor does it hold rows of tables that are joined. Results of subqueries are kept, since
the plan is made with them; a run finds them again, and where one differs, the statement is planned anew.
"""

from __future__ import annotations

import datetime
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from penstock.columns.results import Result
from penstock.columns.table import Table

MOST_PLANS = 64
MOST_BYTES = 64 << 20
"""Of results of subqueries, of all plans together."""


class Runnable(Protocol):
    """A plan."""

    @property
    def is_lasting(self) -> bool:
        """Whether another run finds all that it was made with in its tables."""

    def collect(self) -> Result: ...

    def explain(self, analyze: bool = False) -> str: ...

    def forget(self) -> None:
        """Lets go of rows of tables that are joined."""


@dataclass
class Prepared:
    """A plan, and the subqueries whose results it was made with, in the order in which they ran."""

    plan: Runnable
    subqueries: list[tuple[Runnable, Result]]
    day: datetime.date
    """Before it was planned."""
    tables: dict[str, weakref.ref[Table]] = field(default_factory=dict)
    opened: list[Table] = field(default_factory=list)
    """Tables that are closed when the statement has run."""

    def close(self) -> None:
        close_all(self.opened)

    def is_current(self) -> bool:
        """Whether the subqueries' results are what they were: sums of floating-point numbers may not be."""
        return all(_same(result_of(plan), result) for plan, result in self.subqueries)

    def explain(self, analyze: bool = False) -> str:
        """How it runs: its subqueries, in their order, and the rest."""
        return "\n\n".join(
            plan.explain(analyze) for plan in (*(each for each, _ in self.subqueries), self.plan)
        )

    def nbytes(self) -> int:
        columns = [column for _, result in self.subqueries for column in result.columns]
        return sum(column.bits.nbytes + column.valid.nbytes for column in columns)

    def is_lasting(self) -> bool:
        return all(plan.is_lasting for plan in (self.plan, *(each for each, _ in self.subqueries)))

    def has_gone(self) -> bool:
        """Whether a table is no more, so that none can ask for it."""
        return any(ref() is None for ref in self.tables.values())


def close_all(tables: Iterable[Table]) -> None:
    for table in tables:
        table.close()


def result_of(plan: Runnable) -> Result:
    """The result of a plan that does not run again before others have."""
    try:
        return plan.collect()
    finally:
        plan.forget()


class PreparedPlans:
    """Of this process, by statement and tables. One thread at a time has a plan."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Any, Prepared] = OrderedDict()
        self._of_parents: list[OrderedDict[Any, Prepared]] = []

    def take(self, statement: str, tables: Mapping[str, Any]) -> Prepared | None:
        """The plan of a statement, which is the caller's then."""
        key = _key(statement, tables, datetime.date.today())
        with self._lock:
            self._drop_gone()
            found = self._kept.pop(key, None)
        if found is None or any(ref() is not tables[name] for name, ref in found.tables.items()):
            return None
        return found

    def give(self, statement: str, tables: Mapping[str, Any], prepared: Prepared) -> None:
        """Keeps a plan that has run, if all tables are its caller's open ones, and it is not too large."""
        if prepared.opened or not all(isinstance(each, Table) for each in tables.values()):
            return
        if not prepared.is_lasting():
            return
        if prepared.nbytes() > MOST_BYTES:
            return
        prepared.tables = {name: weakref.ref(table) for name, table in tables.items()}
        with self._lock:
            self._drop_gone()
            self._kept[_key(statement, tables, prepared.day)] = prepared
            while len(self._kept) > MOST_PLANS or self._bytes() > MOST_BYTES:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Lets go of all plans."""
        with self._lock:
            self._kept.clear()

    def leave_to_parent(self) -> None:
        """In a forked process: a thread that is not here may hold the lock, and the plans' tables are
        the parent's. They are never let go here: that would wait for their threads and remove their folders.
        """
        self._lock = threading.Lock()
        self._of_parents.append(self._kept)
        self._kept = OrderedDict()

    def _drop_gone(self) -> None:
        """A plan holds the words of its tables' texts."""
        for key in [key for key, each in self._kept.items() if each.has_gone()]:
            del self._kept[key]

    def _bytes(self) -> int:
        return sum(each.nbytes() for each in self._kept.values())


def _key(statement: str, tables: Mapping[str, Any], day: datetime.date) -> Any:
    """The day is one of a statement's values."""
    return (statement, day, *((name, id(table)) for name, table in tables.items()))


def _same(mine: Result, other: Result) -> bool:
    """Whether two results of one plan have the same rows."""
    return all(
        a.type == b.type and np.array_equal(a.bits, b.bits) and np.array_equal(a.valid, b.valid)
        for a, b in zip(mine.columns, other.columns, strict=True)
    )


prepared_plans = PreparedPlans()
os.register_at_fork(after_in_child=prepared_plans.leave_to_parent)
