"""Rows that processes keep together: each reads what the others keep."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from numpy.typing import NDArray
from penstock import _native
from penstock.arrays import peers as peers_module
from penstock.sampling import Graph, NeighborSampler
from penstock.tiering import Peers, hottest, plan, tiered

ROWS, WIDTH = 4000, 33
DEVICES = ["cpu", *(["cuda"] if _native.cuda_usable()[0] else [])]

SCRIPT = """
import sys
import numpy as np
from penstock.tiering import Peers, tiered
rank, size, meeting, table, device = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6]
values = np.load(table)
scores = np.arange(len(values))[::-1].astype(float) ** 2
with Peers(rank, size, meeting, timeout=60) as peers:
    places = {"below": "storage", "cache": "1MiB", "device": device}
    array = tiered(table, scores, 0.2, **places, peers=peers, replicated=0.25)
    for _ in range(3):
        rows = np.random.default_rng(rank).integers(0, len(values), 3000)
        found = array[rows]
        assert np.array_equal(np.asarray(found.cpu() if hasattr(found, "cpu") else found), values[rows])
    moved = array.bytes_by_tier()
    assert moved["peers"] > 0, moved
    print(rank, array.kept_rows, moved)
    peers.together(lambda: None)
"""


def in_threads(size: int, action: Callable[[int], Any]) -> list[Any]:
    """Calls action(rank) in a thread each. Returns what it returned or raised."""
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = action(rank)
        except BaseException as problem:
            results[rank] = problem

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(90)
    return results


@pytest.fixture
def table(tmp_path: Path) -> tuple[str, NDArray[np.float32]]:
    values = np.random.default_rng(5).random((ROWS, WIDTH), np.float32)
    np.save(tmp_path / "table.npy", values)
    return str(tmp_path / "table.npy"), values


def falling(rows: int = ROWS) -> NDArray[np.float64]:
    return 1 / (np.arange(rows) + 10.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("below", ["host-cached", "storage"])
def test_peers_read_each_others_rows(
    table: tuple[str, NDArray[np.float32]], tmp_path: Path, device: str, below: str
) -> None:
    path, values = table
    if device == "cpu" and below == "host-cached":
        pytest.skip("rows in memory are not kept again there")

    def run(rank: int) -> tuple[int, dict[str, int]]:
        with Peers(rank, 3, tmp_path / "meet", timeout=60) as peers:
            array = tiered(
                path, falling(), 0.1, below=below, cache="1MiB", device=device, peers=peers, replicated=0.25
            )
            assert array.opened.notes == ()
            assert array.kept_rows == 100 + 3 * 300
            rows = np.random.default_rng(rank).integers(0, ROWS, 5000)
            assert np.array_equal(np.asarray(on_host(array[rows])), values[rows])
            peers.together(lambda: None)
            moved = array.bytes_by_tier()
            array.close()
            kept = set(hottest(falling(), 1000)[100:].tolist())
            peer = sum(1 for row in rows.tolist() if row in kept and (row - 100) % 3 != rank)
            assert moved["peers"] == peer * WIDTH * 4
            return rank, moved

    for result in in_threads(3, run):
        if isinstance(result, BaseException):
            raise result


def on_host(values: Any) -> Any:
    return values.cpu() if hasattr(values, "cpu") else values


@pytest.mark.parametrize("device", DEVICES)
def test_processes_of_their_own(table: tuple[str, NDArray[np.float32]], tmp_path: Path, device: str) -> None:
    path, _ = table
    command = [sys.executable, "-c", SCRIPT]
    runs = [
        subprocess.Popen(
            [*command, str(rank), "2", str(tmp_path / "meet"), path, device],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    told = [each.communicate(timeout=120)[0] for each in runs]
    assert [each.returncode for each in runs] == [0, 0], "\n".join(told)
    # A fifth of the rows each, a quarter of it the same rows.
    assert all(text.split()[1] == str(200 + 2 * 600) for text in told), told
    assert not (tmp_path / "meet").exists()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [0, 1, 70, 20_000])
def test_a_copy_lies_in_the_memory_of_all(tmp_path: Path, device: str, rows: int) -> None:
    values = np.random.default_rng(rows).random((rows, 1031), np.float32)
    np.save(tmp_path / "table.npy", values)
    options: Any = {"placement": "hbm", "device": device}

    def run(rank: int) -> None:
        with Peers(rank, 3, tmp_path / "meet", timeout=60) as peers:
            planned = penstock.plan(tmp_path / "table.npy", peers=peers, **options)
            assert planned.hbm_bytes == -(-values.nbytes // 3)
            array = penstock.open(tmp_path / "table.npy", peers=peers, **options)
            assert array.opened.notes == ()
        if rank == 1:
            array.close()
            return
        assert np.array_equal(np.asarray(on_host(array[:])), values)
        if rows:
            wanted = np.random.default_rng(rank).integers(0, rows, 999)
            assert np.array_equal(np.asarray(on_host(array[wanted])), values[wanted])
        array.close()

    for result in in_threads(3, run):
        if isinstance(result, BaseException):
            raise result


def test_a_graph_lies_in_the_memory_of_all(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    whole = Graph.from_edges(draw.integers(0, 500, 9000), draw.integers(0, 500, 9000), 500, device="cpu")
    np.save(tmp_path / "neighbors.npy", np.asarray(whole.neighbors[:]))
    wanted = NeighborSampler(whole, [5, 3], seed=1).sample(np.arange(40))

    def run(rank: int) -> None:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            lists = penstock.open(tmp_path / "neighbors.npy", placement="hbm", device="cpu", peers=peers)
            graph = Graph(np.asarray(whole.pointers[:]), lists, device="cpu")
            found = NeighborSampler(graph, [5, 3], seed=1).sample(np.arange(40))
            assert np.array_equal(on_host(found.nodes), on_host(wanted.nodes))

    assert in_threads(2, run) == [None, None]


def test_tensors_are_kept_together(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((ROWS, WIDTH), np.float32)

    def run(rank: int) -> None:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            array = penstock.from_tensor(values, "host", device="cpu", writable=False)
            array.keep_rows(np.arange(101), peers=peers, everywhere=1)
            assert np.array_equal(np.asarray(array[np.arange(200)]), values[:200])
            assert array.bytes_by_tier() == {"host": 150 * WIDTH * 4, "peers": 50 * WIDTH * 4}
            peers.together(lambda: None)

    assert in_threads(2, run) == [None, None]


def test_plans_count_what_peers_keep(table: tuple[str, NDArray[np.float32]], tmp_path: Path) -> None:
    path, _ = table

    def run(rank: int) -> None:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            planned = plan(path, falling(), 0.1, below="storage", peers=peers, replicated=0.5)
            scores = falling()
            assert planned.kept == 400
            assert planned.together == 600
            assert planned.hit_rate == pytest.approx(scores[:600].sum() / scores.sum())
            assert planned.peer_rate == pytest.approx(scores[200:600].sum() / scores.sum() / 2)
            assert "with peers" in str(planned)
            options: Any = {
                "scores": scores,
                "hot": 0.1,
                "below": "storage",
                "peers": peers,
                "replicated": 0.5,
            }
            whole = penstock.plan(path, placement="tiered", device="cpu", **options)
            assert whole.peer_rate == planned.peer_rate
            assert whole.hit_rate == planned.hit_rate

    assert in_threads(2, run) == [None, None]


def test_what_is_replicated_follows_from_the_scores(
    table: tuple[str, NDArray[np.float32]], tmp_path: Path
) -> None:
    path, _ = table

    def run(rank: int) -> list[int]:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            flat, steep = np.ones(ROWS), 0.9 ** np.arange(ROWS)
            return [plan(path, scores, 0.1, peers=peers).together for scores in (flat, falling(), steep)]

    even, skewed, few = in_threads(2, run)[0]
    assert even == 800
    # One row more in both costs the coldest one: it pays where it is read ten times as often.
    counts = np.arange(400)
    pays = falling()[counts] > 10 * falling()[counts + 2 * (400 - counts) - 1]
    assert skewed == 800 - int(np.argmin(pays))
    assert few < skewed


def test_other_rows_are_refused_in_all(table: tuple[str, NDArray[np.float32]], tmp_path: Path) -> None:
    path, _ = table

    def run(rank: int) -> None:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            tiered(
                path,
                np.random.default_rng(rank).random(ROWS),
                0.1,
                below="storage",
                device="cpu",
                peers=peers,
            )

    for result in in_threads(2, run):
        assert isinstance(result, ValueError)
        assert "other rows" in str(result)


@pytest.mark.parametrize("placement", ["hbm", "storage", "memory"])
def test_other_tables_are_refused_in_all(tmp_path: Path, placement: str) -> None:
    tables = [np.full((ROWS, WIDTH), rank, np.float32) for rank in range(2)]
    for rank in range(2):
        np.save(tmp_path / f"table{rank}.npy", tables[rank])

    def run(rank: int) -> None:
        path = tmp_path / f"table{rank}.npy"
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            if placement == "hbm":
                penstock.open(path, placement="hbm", device="cpu", peers=peers)
            elif placement == "storage":
                tiered(path, falling(), 0.1, below="storage", device="cpu", peers=peers)
            else:
                array = penstock.from_tensor(tables[rank], "host", device="cpu", writable=False)
                array.keep_rows(np.arange(10), peers=peers)

    for result in in_threads(2, run):
        assert isinstance(result, ValueError)
        assert "other tables" in str(result)


def test_other_sizes_are_refused_in_all(table: tuple[str, NDArray[np.float32]], tmp_path: Path) -> None:
    path, _ = table

    def run(rank: int) -> None:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            tiered(path, falling(), (0.0, 0.1)[rank], below="storage", device="cpu", peers=peers)

    for result in in_threads(2, run):
        assert isinstance(result, ValueError)
        assert "other rows" in str(result)


def test_a_meeting_that_has_ended(table: tuple[str, NDArray[np.float32]], tmp_path: Path) -> None:
    path, _ = table

    def run(rank: int) -> None:
        peers = Peers(rank, 2, tmp_path / "meet", timeout=60)
        peers.close()
        peers.close()
        with pytest.raises(ValueError, match="it has ended: make Peers anew"):
            penstock.open(path, placement="hbm", device="cpu", peers=peers)

    assert in_threads(2, run) == [None, None]


def test_a_forked_process_is_no_peer(tmp_path: Path) -> None:
    with Peers(0, 1, tmp_path / "meet") as peers:
        child = os.fork()
        if child == 0:
            try:
                peers.together(lambda: None)
            except ValueError as problem:
                os._exit(0 if "forked" in str(problem) else 2)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_failure_in_one_is_told_to_all(table: tuple[str, NDArray[np.float32]], tmp_path: Path) -> None:
    path, _ = table

    def run(rank: int) -> None:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            array = penstock.open(path, placement="storage", device="cpu", cache="1MiB")
            if rank == 1:
                array.keep_rows(np.arange(5))
            array.keep_rows(np.arange(50), peers=peers)

    first, second = in_threads(2, run)
    assert isinstance(first, ValueError)
    assert "process 1 of 2" in str(first)
    assert "kept already" in str(first)
    assert isinstance(second, (ValueError, penstock.Error))
    assert "kept already" in str(second)


def test_rows_that_a_peer_did_not_copy_are_not_read(
    table: tuple[str, NDArray[np.float32]], tmp_path: Path
) -> None:
    path, _ = table

    def stop(*_: object) -> None:
        raise RuntimeError("stopped")

    def run(rank: int) -> None:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            array = penstock.open(path, placement="storage", device="cpu", cache="1MiB")
            kind, words = ((ValueError, "process 1 of 2: .*stopped"), (RuntimeError, "stopped"))[rank]
            with pytest.raises(kind, match=words):
                array.keep_rows(np.arange(500), peers=peers, progress=stop if rank == 1 else None)
            with pytest.raises(ValueError, match="closed"):
                array.gather(np.arange(500))

    assert in_threads(2, run) == [None, None]


def test_one_that_dies_is_named(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom penstock.tiering import Peers\n"
        f"Peers(1, 3, {str(tmp_path / 'meet')!r}, timeout=60)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script])

    def run(place: int) -> None:
        with Peers((0, 2)[place], 3, tmp_path / "meet", timeout=60) as peers:
            peers.together(lambda: None)

    began = time.monotonic()
    results = in_threads(2, run)
    assert other.wait(60) == -signal.SIGKILL
    assert time.monotonic() - began < 30
    assert all(isinstance(each, ConnectionError) for each in results), results
    assert "process 1 of 3 has ended" in str(results[0])


def test_meetings_that_cannot_be(tmp_path: Path) -> None:
    for timeout in (0, -1, float("nan"), float("inf"), "soon"):
        with pytest.raises((ValueError, TypeError), match="timeout"):
            Peers(0, 2, tmp_path / "meet", timeout=timeout)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give a shorter one"):
        Peers(1, 2, tmp_path / ("m" * 120))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="Not a directory: give another path"):
        Peers(1, 2, tmp_path / "file" / "meet")
    for other in (tmp_path, tmp_path / "file"):
        for rank in (0, 1):
            with pytest.raises(ValueError, match="give another path"):
                Peers(rank, 2, other)
    assert Peers(np.int64(0), np.int64(1), tmp_path / "meet").together(lambda: 5) == [5]
    wrong: list[Any] = [(2, 2), (-1, 2), (0, 0), (0, 65), (0.5, 2), ("0", 2)]
    for rank, size in wrong:
        with pytest.raises(ValueError, match="give whole numbers, the rank below"):
            Peers(rank, size, tmp_path / "meet")
    with pytest.raises(TimeoutError, match="process 1 of 2 did not come"):
        Peers(0, 2, tmp_path / "meet", timeout=0.2)
    with pytest.raises(TimeoutError, match="process 0 did not come"):
        Peers(1, 2, tmp_path / "meet", timeout=0.2)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ValueError, match="give another path"):
        Peers(0, 2, tmp_path / "taken", timeout=0.2)
    assert (tmp_path / "taken").read_text() == "a file"
    assert not (tmp_path / "meet").exists()


def test_a_socket_that_was_left_is_taken_away(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "meet"))

    def run(rank: int) -> list[int]:
        with Peers(rank, 2, tmp_path / "meet", timeout=60) as peers:
            return peers.together(lambda: rank)

    results = in_threads(2, run)
    assert results == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("ranks", "sizes"),
    [((0, 1, 1), (3, 3, 3)), ((0, 1), (3, 4)), ((0, 3), (3, 4)), ((0, 1), (3, 2))],
)
def test_ranks_that_cannot_be_are_refused_in_all_at_once(
    tmp_path: Path, ranks: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    def run(place: int) -> Any:
        with Peers(ranks[place], sizes[place], tmp_path / "meet", timeout=40):
            return None

    began = time.monotonic()
    results = in_threads(len(ranks), run)
    assert time.monotonic() - began < 30
    assert all(isinstance(each, ValueError) for each in results), results
    assert "give each a rank of its own, and all the same size" in str(results[0])
    assert len({str(each) for each in results}) == 1


def test_the_others_hear_of_one_that_is_missing(tmp_path: Path) -> None:
    def run(place: int) -> Any:
        return Peers((0, 2)[place], 3, tmp_path / "meet", timeout=1)

    results = in_threads(2, run)
    assert all(isinstance(each, TimeoutError) for each in results), results
    assert all("process 1 of 3 did not come" in str(each) for each in results), results


def test_one_that_ends_before_all_have_come_is_named(tmp_path: Path) -> None:
    waiting: list[Any] = []
    began = time.monotonic()

    def come(rank: int) -> socket.socket:
        door = socket.socket(socket.AF_UNIX)
        while door.connect_ex(str(tmp_path / "meet")) != 0:
            time.sleep(0.02)
        peers_module._send(door, [rank, 4])
        return door

    def run(place: int) -> None:
        if place == 0:
            Peers(0, 4, tmp_path / "meet", timeout=60)
            return
        with come(2) as other:
            come(1).close()
            waiting.append(peers_module._receive(other)[0])

    results = in_threads(2, run)
    assert time.monotonic() - began < 30
    assert isinstance(results[0], ConnectionError), results
    assert "process 1 of 4 has ended" in str(results[0])
    assert waiting == [[True, str(results[0])]]


def test_what_a_peer_forked_does_not_stand_in_for_it(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom penstock.tiering import Peers\n"
        f"peers = Peers(1, 2, {str(tmp_path / 'meet')!r}, timeout=60)\n"
        "sys.stdin.read() if os.fork() == 0 else os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE):
        with (
            Peers(0, 2, tmp_path / "meet", timeout=60) as peers,
            pytest.raises(ConnectionError, match="process 1 of 2 has ended"),
        ):
            peers.together(lambda: None)
        assert time.monotonic() - began < 30


def test_no_peers_where_they_have_no_effect(table: tuple[str, NDArray[np.float32]]) -> None:
    path, _ = table
    with pytest.raises(ValueError, match="no peers"):
        tiered(path, falling(), 0.1, replicated=0.5)
    with pytest.raises(TypeError, match="Peers"):
        tiered(path, falling(), 0.1, peers=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Peers"):
        penstock.open(path, placement="hbm", device="cpu", peers="all")
    with pytest.raises(ValueError, match="keeps no rows"):
        penstock.open(path, placement="host", replicated=0.5)
    with pytest.raises(ValueError, match="no peers"):
        penstock.open(path, placement="host").keep_rows(np.arange(3), everywhere=1)
    for everywhere in (-1, 1.5, 4):
        with pytest.raises(ValueError, match="whole number up to 3"):
            penstock.open(path, placement="host").keep_rows(np.arange(3), everywhere=everywhere)  # type: ignore[arg-type]
