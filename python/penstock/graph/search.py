"""Breadth-first search over a graph, wherever its edges lie."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from penstock.callbacks import Progress
from penstock.graph.options import GraphOptions
from penstock.graph.results import BfsResult, with_tensors
from penstock.graph.run import GraphLike, check_source, prepare, source_number
from penstock.options import show_options

if TYPE_CHECKING:
    from typing_extensions import Unpack


@show_options(GraphOptions)
def bfs(
    graph: GraphLike,
    *,
    source: Hashable = None,
    progress: Progress | None = None,
    **options: Unpack[GraphOptions],
) -> BfsResult:
    """Search a graph level by level; its edges stay where they are.

    graph: a graph folder, "volume:NAME@MEMBER,MEMBER" (docs/VOLUMES.md), a file (.el, .txt, .wel, .gr,
        .graph, .mtx, .npz, .sg, .bel, .bcsr, .parquet, .csv; packed, too), a folder or a pattern of parts of
        a table, a generator (kron:20, urand:20:16, social:20), "debian", or a graph that penstock.graph
        opened. Files and what is generated are made once, in `cache_dir`. Or a graph in memory: an
        edge_index, a sparse matrix, a graph of NetworkX, a DataFrame (`penstock.graph.resolve` has them).
    source: a vertex by its number, or as text by its name (by its number where vertices have no names); of a
        graph of NetworkX a node; without one, a vertex with out-edges drawn with a fixed seed.
    progress: called with what is being done, how much is done, how much there is.

    Options, of all algorithms (keywords):
    placement: where edges and weights lie. "storage": behind a cache; "host": their files mapped and read in
        place, which a GPU does over its link; "pinned": the same, once they are copied to pinned memory;
        "host-cached": behind a cache, into which the missing group copies a line of the mapped file; "hbm":
        copied to the GPU. Two more are baselines: "managed", moved there by the driver, page by page, anew
        in each trial, and "subgraph", where CPU threads put each round's lists together to be copied there.
    strategy: how groups of threads share out edges: "thread", "merged", "merged_aligned", "transposed(128)",
        "coarsened(8)", "tiled(256)", "tiled(256,search)", "frontier", "tiled_frontier(256)",
        "tiled_frontier(sort)"; docs/GRAPHS.md says what each does. "auto" chooses for each round, and reads
        fewer edges where an algorithm can do with fewer: a search from below, components by samples.
    cache, line: bytes of the cache and of what one miss brings in; numbers, or text; 16MiB and 4KiB unless
        given.
    directory: how the cache finds a line; direct costs 8 bytes for each line of the edges, set 64 for each
        seven lines of the cache. auto takes direct while that is little beside the cache.
    executor: "cpu", "cuda", or "auto". engine: of the controller's threads; "auto", "io_uring", "pread".
    ablate: disables one feature of the cache: "cache", "coalescing", "validation" or "read-ahead".
    direct: bypass the page cache (O_DIRECT). queues, queue_depth: queue pairs of a controller (0: one for
        each CPU thread or multiprocessor), and the entries of each (of a GPU's, where queues is 0: at most).
    media, drives, layout, media_place, server_sms: instead of "file" the preset of a drive that is modelled
        ("p5800x", "pm1735", "980pro", "gen5"), how many of them there are, whether the graph is "striped"
        over them or each has all of it ("replicated"), whether their bytes lie in "hbm" or "host", and the
        SMs that serve them (0: a third).
    threads: of the CPU executor, or those that put lists together; 0 takes as many as there are cores.
    trials: how often, once the graph is open, each time from the next source where none is given; the result
        is the last one's, with the seconds of each. Later ones find in the cache what earlier ones left.
    sources: which vertices sources are drawn from: "gap" and "emogi", those that have edges; "bam", those
        with more than two. level_traffic: reports what each round moved, which takes a little time.
    verify: checks the last result by GAP's rules. cache_dir: where converted graphs are kept.
    incoming: of a directed graph, makes the lists of incoming edges too, once, in its folder. Where they are
        there, ranks are pulled, and "auto" searches from below if lists are read in place.
    undirected, format, memory: of a file that is converted, as `penstock.graph.resolve` has them: each edge
        is taken both ways; what it is, whatever its name; the memory that converting may take.
    columns, delimiter, header, first_id, renumber: of text, tables and DataFrames, as
        `penstock.graph.resolve` has them: which columns are source, target and weight, and how ids become
        vertices.

    Raises ValueError or TypeError for bad arguments and bad files, ValueError also for an option that would
    change nothing (penstock.graph.effects), penstock.Error when the machine refuses.
    """
    check_source(source, graph)
    job = prepare("bfs", graph, progress, options, source=source)
    found = job.native.bfs(job.options, source_number(job, source), progress)
    return BfsResult(**job.facts, **with_tensors(found, "parents"))
