"""The table by which options without effect are refused."""

from __future__ import annotations

import doctest
from typing import Annotated, TypedDict

import numpy as np
import pytest
from penstock import effects
from penstock.effects import Effect, is_given, refuse_without_effect
from penstock.effects import effects as rows
from penstock.options import Option


class Caching(TypedDict, total=False):
    line: Annotated[str | None, Option()]
    cache: Annotated[str, Option("16MiB")]


CACHED = rows(
    Caching,
    ("line", "cache"),
    lambda s: s["placement"] == "storage",
    "placement {placement} has no cache: leave it out",
)
SWITCH = Effect("incoming", lambda s: not s["undirected"], "edges lie both ways already: leave it out", False)


def test_the_documented_example_holds() -> None:
    assert doctest.testmod(effects).failed == 0


def test_defaults_and_options_with_an_effect_pass() -> None:
    refuse_without_effect(CACHED, {"placement": "host", "line": None, "cache": "16MiB"})
    refuse_without_effect(CACHED, {"placement": "storage", "line": 512, "cache": "1MiB"})
    refuse_without_effect(CACHED, {"placement": "host"})
    refuse_without_effect([SWITCH], {"undirected": True, "incoming": False})


def test_the_sentence_names_subject_option_value_and_reason() -> None:
    with pytest.raises(ValueError) as refused:
        refuse_without_effect(CACHED, {"placement": "hbm", "line": None, "cache": 4096}, "open x.npy")
    assert str(refused.value) == "open x.npy: cache 4096: placement hbm has no cache: leave it out"
    with pytest.raises(ValueError) as refused:
        refuse_without_effect([SWITCH], {"undirected": True, "incoming": True})
    assert str(refused.value) == "incoming: edges lie both ways already: leave it out"


def test_braces_in_a_value_are_text() -> None:
    with pytest.raises(ValueError, match=r"placement \{line\} has no cache"):
        refuse_without_effect(CACHED, {"placement": "{line}", "line": "{0}", "cache": "16MiB"})


def test_arrays_are_given_where_the_default_is_none() -> None:
    assert is_given(np.zeros(3), None)
    assert not is_given(None, None)
    assert is_given(0, None)
    assert not is_given(False, False)
