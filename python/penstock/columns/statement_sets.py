"""UNION, EXCEPT and INTERSECT: the rows of two plans together."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.columns.prepared import Runnable
from penstock.columns.results import Result
from penstock.columns.statement_rows import combined
from penstock.columns.statement_select import Ordering


@dataclass
class SetPlan:
    """UNION, EXCEPT or INTERSECT of two."""

    what: str
    every: bool
    """With ALL: rows as often as they are there."""
    first: Runnable
    second: Runnable
    ordering: Ordering
    """By what the result's columns are called."""

    def collect(self) -> Result:
        result = combined(self.first.collect(), self.second.collect(), self.what, self.every)
        return self.ordering.applied(result)

    @property
    def is_lasting(self) -> bool:
        return self.first.is_lasting and self.second.is_lasting

    def forget(self) -> None:
        self.first.forget()
        self.second.forget()

    def explain(self, analyze: bool = False) -> str:
        what = f"{self.what}{' ALL' if self.every else ''} with"
        return "\n".join([self.first.explain(analyze), what, self.second.explain(analyze)])
