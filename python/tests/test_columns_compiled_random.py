"""Random queries on a GPU, compiled beside interpreted: the same bits, or the same error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.columns import col, count, open_table
from places import DEVICES

if "cuda" not in DEVICES:
    pytest.skip("there is no GPU", allow_module_level=True)
pytest.importorskip("cuda.core", reason="cuda.core is not installed")
from column_frames import frame_of
from test_columns_random import conditions, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.columns import Query, Result, Table

pytestmark = pytest.mark.usefixtures("kernel_cache")


@pytest.fixture(scope="module")
def ways() -> Iterator[list[Table]]:
    frame = frame_of()
    made = [open_table(frame, executor="cuda", compiled=way) for way in ("never", "always")]
    yield made
    for table in made:
        table.close()


def outcome(query: Query) -> Any:
    try:
        result: Result = query.collect()
    except (OverflowError, ValueError) as problem:
        return type(problem), str(problem)
    return [(each.name, each.bits.tolist(), each.valid.tolist()) for each in result.columns]


# PENSTOCK_COMPILED_QUERIES: how many. Each takes some seconds.
@settings(
    max_examples=int(os.environ.get("PENSTOCK_COMPILED_QUERIES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    question=conditions(), value=numbers(), which=st.sampled_from(["rows", "sums", "few groups", "groups"])
)
def test_random_queries_have_the_interpreters_answers(
    ways: list[Table], question: Any, value: Any, which: str
) -> None:
    found = []
    for table in ways:
        met = table.filter(question[0])
        whole = value[0].min(), value[0].max(), count()
        query = {
            "rows": met.select(v=value[0]),
            "sums": met.agg(a=whole[0], b=whole[1], c=value[0].sum(), n=whole[2]),
            "few groups": met.group_by("text_n").agg(a=whole[0], b=whole[1], c=value[0].sum(), n=whole[2]),
            "groups": met.group_by("sorted", col("i8")).agg(a=whole[0], b=whole[1], n=whole[2]),
        }[which]
        found.append(outcome(query))
    assert found[0] == found[1]
