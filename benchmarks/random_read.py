"""Random 4 KiB line reads through array_view against fio (io_uring): same file, depth, cores, alternating.

    python benchmarks/random_read.py --build build-cpu --file /var/tmp/random.bin --results results/x

Needs fio and a build with -DPENSTOCK_BENCHMARKS=ON. Writes one JSON line per mode (page cache, direct I/O).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

LINE_BYTES = 4096


def run_ours(program: Path, file: Path, mib: int, depth: int, mode: str, seconds: float) -> dict[str, object]:
    arguments = [str(program), str(file), str(mib), str(LINE_BYTES), str(depth), mode, "cpu", str(seconds)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"random_read_benchmark: {done.stderr.strip() or done.stdout.strip()}")
    result: dict[str, object] = json.loads(done.stdout)
    return result


def run_fio(file: Path, mib: int, depth: int, mode: str, seconds: float, cores: int) -> float:
    """Reads per second. One job per core, the depth shared among them, as ours does."""
    arguments = ["fio", "--name=read", f"--filename={file}", "--rw=randread", f"--bs={LINE_BYTES}"]
    arguments += ["--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--norandommap", "--invalidate=0"]
    arguments += [f"--iodepth={depth // cores}", f"--numjobs={cores}", f"--direct={int(mode == 'direct')}"]
    arguments += [f"--size={mib}m", "--time_based", f"--runtime={seconds}", "--group_reporting"]
    arguments += ["--output-format=json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"fio: {done.stderr.strip()}")
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def warm(file: Path) -> None:
    with file.open("rb") as stream:
        while stream.read(1 << 22):
            pass


def measure(options: argparse.Namespace, mode: str) -> dict[str, object]:
    program = options.build / "random_read_benchmark"
    cores = len(os.sched_getaffinity(0))
    ours: list[float] = []
    theirs: list[float] = []
    verified = True
    last: dict[str, object] = {}
    for _ in range(options.repeats):
        if mode == "cached":
            warm(options.file)
        theirs.append(run_fio(options.file, options.mib, options.depth, mode, options.seconds, cores))
        last = run_ours(program, options.file, options.mib, options.depth, mode, options.seconds)
        # What was fetched, not what was asked for: a line that was still there counts for nobody.
        ours.append(float(str(last["fills_per_s"])))
        verified &= last["verified"] is True
    value, baseline = statistics.median(ours), statistics.median(theirs)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "id": f"read.random4k.{'page_cache' if mode == 'cached' else 'direct'}",
        "params": {
            "depth": options.depth,
            "line_bytes": LINE_BYTES,
            "file_mib": options.mib,
            "engine": last["engine"],
        },
        "value": round(value),
        "unit": "lines/s",
        "baseline": "fio 3.33, io_uring, registered files and buffers",
        "baseline_value": round(baseline),
        "ratio": round(value / baseline, 3),
        "repeats": options.repeats,
        "spread": round((max(ours) - min(ours)) / value, 3),
        "baseline_spread": round((max(theirs) - min(theirs)) / baseline, 3),
        "verified": verified,
        "bytes": {"storage_per_s": round(value * LINE_BYTES)},
        "machine": {
            "cores": cores,
            "cpu": cpu_name(),
            "device": last["device"],
        },
        "commit": commit.stdout.strip() or "unknown",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path("build-cpu"))
    parser.add_argument("--file", type=Path, required=True, help="made if it is not there; not on tmpfs")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    run_ours(options.build / "random_read_benchmark", options.file, options.mib, options.depth, "cached", 0.1)
    options.results.mkdir(parents=True, exist_ok=True)
    status = 0
    for mode in ("cached", "direct"):
        row = measure(options, mode)
        if row["verified"] is not True:
            print(f"{row['id']}: the output was wrong, so this is no result", file=sys.stderr)
            status = 1
            continue
        with (options.results / "random_read.jsonl").open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(
            f"{row['id']}: {row['value']:,} lines/s, {row['ratio']:.2f} of fio's {row['baseline_value']:,} "
            f"(spread {row['spread']:.2f} and {row['baseline_spread']:.2f})"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
