"""The first-principle model: the papers' own numbers, what bounds what, predictions beside result lines."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from penstock import model
from penstock.cli import main as cli
from penstock.model import laws
from penstock.report.papers import read_run_files
from penstock.report.predictions import predictions

GIB = 1 << 30
RESULTS = Path(__file__).parents[2] / "benchmarks/results"


def system(**changes: Any) -> model.System:
    parts = model.System(model.gpu("a100"), model.link("gen4x16"), model.drive("p5800x"), drives=4)
    return dataclasses.replace(parts, **changes)


def test_littles_law_gives_the_dissertations_depths() -> None:
    assert laws.in_flight(51e6, 11e-6) == pytest.approx(561)
    assert laws.in_flight(51e6, 324e-6) == pytest.approx(16_524)
    assert laws.in_flight(6.35e6, 11e-6) == pytest.approx(70, abs=0.5)
    assert laws.in_flight(6e6, 31e-6) == pytest.approx(186)


def test_lines_in_flight_are_those_of_equations_6_1_to_6_3() -> None:
    gpu = model.gpu("a100")
    assert laws.lines_by_elements(gpu, 8, 4096) == 432
    assert laws.lines_by_warps(gpu) == 6912
    assert laws.lines_by_warps(gpu, lanes=16) == 13_824
    assert laws.least_cache_bytes(gpu, 4096) == 27 << 20


def test_headers_take_what_the_zero_copy_dissertation_says() -> None:
    assert laws.header_share(32, 18) == pytest.approx(0.36)
    assert laws.header_share(128, 18) == pytest.approx(0.123, abs=5e-4)


def test_outstanding_reads_bound_small_requests_as_there_with_its_gb_of_two_to_the_30() -> None:
    link = model.link("gen3x16")
    assert link.outstanding is not None
    assert laws.rate_of(link.outstanding * 32, 1.0e-6) / GIB == pytest.approx(7.63, abs=0.005)
    assert laws.rate_of(link.outstanding * 32, 1.6e-6) / GIB == pytest.approx(4.77, abs=0.005)
    assert laws.in_flight(16 * GIB / 128, 1e-6) == pytest.approx(135, abs=1)


def test_multiprocessors_that_fill_a_link_are_those_of_section_3_3_2() -> None:
    gpu = model.gpu("rtx3090")
    assert laws.multiprocessors_for(768, gpu) / gpu.sms == pytest.approx(0.195, abs=5e-4)
    needed = laws.in_flight(25.8 * GIB / 128, 1.5e-6)
    assert needed == pytest.approx(324.6, abs=0.1)
    assert laws.multiprocessors_for(needed, gpu) / gpu.sms == pytest.approx(0.082, abs=5e-4)


def test_what_is_slower_is_the_bound() -> None:
    assert model.predict(system()).bound_by_warps == "drives"
    assert model.predict(system(drives=10)).bound_by_warps == "link"
    slow = model.predict(system(drive=model.drive("980pro"), drives=16, line_bytes=512))
    assert slow.bound_by_warps == "drives"
    few = model.predict(system(drive=model.drive("980pro"), drives=16))
    assert few.bound_by_elements == "latency"
    assert few.gb_per_s_by_elements == pytest.approx(432 * 4096 / 310e-6 / 1e9)
    assert few.gb_per_s_by_elements < few.gb_per_s_by_warps


def test_faster_drives_help_until_the_link_is_full_and_then_a_wider_link_does() -> None:
    found = {name: model.predict(each).gb_per_s_by_warps for name, each in model.alternatives(system())}
    base, four = found["as it is"], found["drives of four times the reads"]
    assert base < four
    assert four == pytest.approx(model.link("gen4x16").payload_gb_per_s(256))
    assert found["PCIe Gen6 x16"] == base
    assert found["x16 drives (four times), one instead of four"] == pytest.approx(base)
    assert found["NVLink-C2C and drives of four times the reads"] == pytest.approx(4 * base)


def test_prices_give_the_papers_gains() -> None:
    gains = {each.name: round(each.gain, 1) for each in model.cost.all_media()}
    # Table 2 has 4.3 for the PM1735: 11.13 / 2.56 is 4.35.
    assert gains == {"hbm": 0.0, "dram": 1.0, "p5800x": 4.4, "pm1735": 4.3, "980pro": 21.8}
    assert model.cost.per_dollar(1.49, "p5800x") == pytest.approx(6.53, abs=0.005)
    assert model.cost.per_dollar(0.25, "p5800x", "hbm") == pytest.approx(0.25 * 625 / 2.54)
    assert "2022" in model.cost.dated()
    with pytest.raises(ValueError, match="there is no price of tape: choose one of hbm, dram"):
        model.cost.media("tape")


def test_the_cost_of_a_plan_counts_every_tier() -> None:
    gb = 10**9
    found = model.cost.cost_of(
        100 * gb,
        hbm_bytes=gb,
        dram_bytes=2 * gb,
        storage_bytes=100 * gb,
        drive="980pro",
        bytes_written_per_s=100 * gb / 86_400,
    )
    assert found.dollars == pytest.approx({"hbm": 625, "dram": 22.26, "980pro": 51})
    assert found.total == pytest.approx(698.26)
    assert (found.dram_dollars, found.hbm_dollars) == pytest.approx((1113, 62_500))
    assert found.per_dollar(0.5) == pytest.approx(0.5 * 1113 / 698.26)
    assert found.per_dollar(0.5, "hbm") == pytest.approx(0.5 * 62_500 / 698.26)
    assert found.drive_writes_per_day == pytest.approx(1.0)
    assert not found.endures
    text = str(found)
    for part in (
        "of 0.3 that it is made for",
        "prices of 2022 (dram, p5800x, pm1735, 980pro): BaM",
        "VideoCardz",
    ):
        assert part in text


def test_costs_that_cannot_be_are_refused() -> None:
    none = {"hbm_bytes": 0, "dram_bytes": 0, "storage_bytes": 1}
    with pytest.raises(ValueError, match="no price of drive tape: choose one of p5800x"):
        model.cost.cost_of(1, **none, drive="tape")
    with pytest.raises(ValueError, match="there are no data"):
        model.cost.cost_of(0, **none, drive="p5800x")
    with pytest.raises(ValueError, match="bytes_written_per_s -1: it is 0 or more"):
        model.cost.cost_of(1, **none, drive="p5800x", bytes_written_per_s=-1)
    with pytest.raises(ValueError, match="base tape: choose dram or hbm"):
        model.cost.cost_of(1, **none, drive="p5800x").per_dollar(base="tape")


def test_every_part_names_its_source() -> None:
    for kind, named in (("gpus", model.gpu), ("links", model.link), ("drives", model.drive)):
        assert all(named(name).source for name in model.names(kind))


def test_what_is_not_known_or_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no gpu b200: choose one of v100"):
        model.gpu("b200")
    with pytest.raises(ValueError, match="drives 0: it has to be positive"):
        model.predict(system(drives=0))
    with pytest.raises(ValueError, match="elements of 8192 bytes do not fit lines of 4096"):
        model.predict(system(element_bytes=8192))


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are not beside the package")
def test_predictions_stand_beside_their_result_lines() -> None:
    found = predictions(read_run_files([RESULTS]))
    assert len(found) > 15
    for each in found:
        assert each.measured > 0
        # Nothing is faster than first principles allow, but for what a line rounds.
        assert each.ratio >= 0.98 if each.unit == "s" else each.ratio <= 1.02, each.what


def test_the_command_prints_tables_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {
        "id": "miss.line4k.host",
        "value": 50.3,
        "unit": "GB/s",
        "baseline_value": 51.0,
        "baseline": "reads",
    }
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert cli.main(["model", str(path), "--drives", "10"]) == 0
    out = capsys.readouterr().out
    for word in (
        "times cheaper than DRAM",
        "prices of 2022",
        "bound by link",
        "NVLink-C2C",
        "misses of whole lines over Gen5 x16",
    ):
        assert word in out
    assert cli.main(["model", str(path), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert [each["measured"] for each in written["measured"]] == [51.0, 50.3]
    assert written["systems"][0]["bound_by_warps"] == "drives"


def test_the_command_refuses_what_it_cannot_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["model", "--drives", "0"]) == cli.REFUSED
    assert "drives 0: it has to be positive" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["3GiB", "5000", "256", "128KiB"])
def test_what_is_no_line_of_the_cache_is_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["model", "--line", line]) == cli.REFUSED
    assert "a line has a power of two of bytes, 512 to 65536" in capsys.readouterr().err
