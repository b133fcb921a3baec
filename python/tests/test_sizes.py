from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.sizes import format_bytes, format_rate, format_seconds, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("4096", 4096),
        ("512B", 512),
        ("4KiB", 4096),
        ("4 kib", 4096),
        ("64K", 65536),
        ("16MiB", 16 << 20),
        ("1.5GiB", 3 << 29),
        ("2G", 2 << 30),
        ("1T", 1 << 40),
        (" 8M ", 8 << 20),
        (4096, 4096),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str | int, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    "text", ["", "KiB", "-1", "16MB", "1e6", "4 K i B", "0x10", "1.5", "1.0001K", "many"]
)
def test_other_texts_are_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ValueError, match=r"16MiB|whole number"):
        parse_size(text)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        parse_size(-1)


@pytest.mark.parametrize("size", [1 << 63, "8388608T", "99999999TiB"])
def test_what_cannot_be_addressed_is_refused(size: int | str) -> None:
    with pytest.raises(ValueError, match=f"^line {size}: more bytes than can be addressed"):
        parse_size(size, "line")
    assert parse_size((1 << 63) - 1) == (1 << 63) - 1


@pytest.mark.parametrize("value", [True, 1.5, None, b"4K"])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="16MiB"):
        parse_size(value)  # type: ignore[arg-type]


@given(st.integers(min_value=0, max_value=1 << 60))
def test_plain_numbers_come_back(count: int) -> None:
    assert parse_size(str(count)) == parse_size(count) == count


@given(st.text(max_size=20))
def test_any_text_is_a_size_or_a_value_error(text: str) -> None:
    try:
        assert parse_size(text) >= 0
    except ValueError as problem:
        assert "\n" not in str(problem) or "\n" in text


def test_sizes_times_and_rates_are_written_in_fitting_units() -> None:
    assert [format_bytes(n) for n in (0, 1023, 4096, 3 << 29)] == ["0 B", "1023 B", "4.0 KiB", "1.5 GiB"]
    assert format_bytes(5 << 40) == "5.0 TiB"
    assert [format_seconds(t) for t in (2e-5, 0.25, 3)] == ["20 us", "250.0 ms", "3.00 s"]
    assert [format_rate(r, "TEPS") for r in (5, 5e3, 5e6, 5e9)] == [
        "5.00 TEPS",
        "5.00 kTEPS",
        "5.00 MTEPS",
        "5.00 GTEPS",
    ]
