"""The section of docs/performance.md on partitioned graphs: measurements, and an estimate for a billion nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Result = dict[str, Any]
NODES, EDGES, MACHINES, LINK = 1e9, 1e10, 64, 1.25e9  # the last in bytes a second: 10 Gbit/s
CORES = 16  # of a machine, an assumption
SIGNALS, PROBES, MOMENTS, NEW = 32, 32, 129, 5
FILTER_STEPS = 32
VALUE = 8  # bytes
SIDE = int(CORES**0.5)  # partitions along the side of the square that those of a machine are
# of a machine and exchange: a partition's steps, what it tells the client, what it tells others of the machine; and
# what it tells other machines: one along a side, three at a corner
TASKS = 3 * CORES + 4 * (SIDE - 2) + 4 * 3


def costs(result: Result, table: Callable[..., str], verdict: Callable[[bool], str]) -> list[str]:
    """A pass by partitions over one machine's."""
    cost, alone = result["cost"], result["cost"]["one"]
    bars = {"cpu": "1.25", "megabytes": "2 MB", "memory": "1.3", "error": "1e-12"}
    rows = [
        [run["partitions"], f"{run['halo']:.1%}", f"{run['ratios']['cpu']:.2f}", f"{run['seconds']:.1f} s",
         f"{run['ratios']['megabytes']:.2f} MB", f"{run['ratios']['memory']:.2f}", f"{run['ratios']['error']:.0e}"]
        for run in cost["runs"] if "failed" not in run
    ]  # fmt: skip
    header = ["partitions", "nodes in halos", "CPU time / one machine's", "time", "moved a step", "memory / share",
              "difference of the moments"]  # fmt: skip
    verdicts = [
        f"* {run['partitions']} partitions: "
        + ", ".join(f"{name} at most {bars[name]} {verdict(met)}" for name, met in run["met"].items())
        for run in cost["runs"] if "failed" not in run
    ]  # fmt: skip
    failed = [f"* {run['failed']}" for run in cost["runs"] if "failed" in run]
    return [
        f"A pass of {cost['n_moments']} moments over {cost['n_nodes']:,} random points with {cost['n_neighbors']} "
        f"neighbours and {cost['n_signals']} signals, by two workers with one thread each, against the same pass on "
        f"one machine with two threads ({alone['cpu_seconds']:.1f} s of the processor, {alone['seconds']:.1f} s). CPU "
        "time is that of the workers, the scheduler and the client, the best of "
        f"{cost['repeats']}. Memory is what the larger worker took on top of its idle state, over half of what one "
        "machine took on top of its own.\n",
        table(header, rows),
        *verdicts,
        *failed,
        "",
    ]


def larger(result: Result, table: Callable[..., str], verdict: Callable[[bool], str]) -> list[str]:
    """The graph that workers have no memory for."""
    if "streamed" not in result:
        return ["**Larger than memory**: not measured yet: run `benchmarks/bench_dask.py streamed`.\n"]
    run = result["streamed"]
    if "failed" in run:
        return [f"A graph larger than the workers' memory: **failed**: {run['failed']}\n"]
    workers, client = run["gigabytes_of_workers"], run["gigabytes_of_client"]
    stages = sorted(run["stages"].items(), key=lambda item: -item[1])
    killed = "none" if not run["killed"] else str(run["killed"])
    return [
        f"**Larger than memory.** {run['n_nodes']:,} random points, {run['edges']:,} edges, {run['n_signals']} signals "
        f"in double precision ({run['signals_gigabytes']:.2f} GB) in a Zarr array, two workers with "
        f"{run['gigabytes']:g} GB together: `GraphGPRegressor(graph, Polynomial(2), residual=None, carry=None, "
        f"spectrum=Chebyshev(n_moments={run['n_moments']}, max_moments={run['n_moments']}))`, and the mean at "
        f"{run['n_new']} new inputs written to Zarr. The folder of {run['n_partitions']} partitions with halos of "
        f"{run['hops']} hops ({run['halo']:.0%} of the nodes) has {run['folder_gigabytes']:.1f} GB and was built in "
        f"{run['building_seconds']:.0f} s. A block of the 32 probes alone has "
        f"{32 * VALUE * run['n_nodes'] / 1e9:.1f} GB, and a pass two of them: what does not fit is on disk.\n",
        table(["stage", "time"], [[name, f"{seconds:.0f} s"] for name, seconds in stages]),
        f"* Workers took at most {' and '.join(f'{peak:.2f}' for peak in workers['peak'])} GB (idle: "
        f"{' and '.join(f'{idle:.2f}' for idle in workers['idle'])} GB); killed or restarted: {killed}. Within "
        f"{run['gigabytes']:g} GB: {verdict(run['within'])}.",
        f"* The client with the scheduler took {client['peak']:.2f} GB, of which {client['before']:.2f} GB when it "
        "built the graph.\n",
    ]


@dataclass(frozen=True)
class Stage:
    """A stage of a fit: steps between exchanges, columns, nanoseconds a node and step, bytes to the client."""

    name: str
    n_steps: int
    n_columns: int
    n_blocks: int
    hops: int
    nanoseconds: float
    told: float  # bytes a partition and exchange tells the client

    @property
    def n_exchanges(self) -> int:
        """Number of exchanges between partitions."""
        return -(-self.n_steps // self.hops)


def stages_of(measured: Result) -> list[Stage]:
    """Stages whose time grows with the graph."""
    spent, hops = measured["nanoseconds_a_node_and_step"], measured["hops"]
    n_steps = (MOMENTS - 1) // 2
    return [
        Stage("largest eigenvalue", measured["lanczos_steps"], 1, 3, 1, spent["largest eigenvalue"], 48),
        Stage("moments of the signals", n_steps, SIGNALS, 2, hops, spent["moments of the signals"],
              2 * hops * SIGNALS**2 * VALUE),
        Stage("moments of the probes", n_steps, PROBES, 2, hops, spent["moments of the probes"],
              2 * hops * PROBES * VALUE),
        Stage(f"mean at {NEW} inputs", FILTER_STEPS, NEW, 2, hops, spent["filter"], 0),
    ]  # fmt: skip


def on_paper(result: Result, learning: float, table: Callable[..., str]) -> list[str]:
    """A billion nodes on 64 machines, from measured times."""
    measured = result["paper"]
    if "failed" in measured:
        return [f"**On paper**: not measured: {measured['failed']}\n"]
    n_partitions = MACHINES * CORES
    own, task = NODES / n_partitions, measured["task_milliseconds"] / 1e3
    before = measured["n_nodes"] / measured["n_partitions"]
    boundary = measured["boundary"] * (own / before) ** 0.5
    share = boundary / own
    rows, total = [], {"computing": 0.0, "network": 0.0, "tasks": 0.0}
    for stage in stages_of(measured):
        level = boundary if stage.hops > 1 else boundary / measured["hops"]
        message = stage.n_blocks * stage.n_columns * VALUE * level
        computing = stage.nanoseconds / 1e9 * own * stage.n_steps
        network = stage.n_exchanges * (SIDE * message + n_partitions * stage.told) / LINK
        tasks = stage.n_exchanges * TASKS * MACHINES * task
        rows.append([stage.name, stage.n_steps, stage.n_exchanges, f"{stage.nanoseconds:.0f} ns", f"{computing:.0f} s",
                     f"{message / 1e6:.1f} MB", f"{network:.0f} s", f"{tasks:.0f} s",
                     f"{computing + network + tasks:.0f} s"])  # fmt: skip
        total = {name: total[name] + value for name, value in
                 (("computing", computing), ("network", network), ("tasks", tasks))}  # fmt: skip
    moved = 2 * SIGNALS * VALUE * NODES / MACHINES / LINK
    pieces = n_partitions**2 * task
    rows.append(["signals in, of a Dask array", "", 1, "", "", "", f"{moved:.0f} s", f"{pieces:.0f} s",
                 f"{moved + pieces:.0f} s"])  # fmt: skip
    rows.append(["mean out, a Dask array", "", 1, "", "", "", f"{moved * NEW / SIGNALS:.0f} s", f"{pieces:.0f} s",
                 f"{moved * NEW / SIGNALS + pieces:.0f} s"])  # fmt: skip
    rows.append(["learning, on the client", "", "", "", "", "", "", "", f"{learning:.1f} s"])
    header = ["stage", "steps", "exchanges", "a node and step", "computing", "a message", "network", "tasks", "sum"]
    per_machine, entries = NODES / MACHINES * (1 + share), 2 * EDGES / NODES
    graph = per_machine * (entries * 12 + 24) / 1e9
    state = 2 * per_machine * SIGNALS * VALUE / 1e9
    kept = (CORES + 2 * SIDE) * boundary * 2 * SIGNALS * VALUE * -(-(MOMENTS // 2) // measured["hops"]) / 1e9
    largest = max(total, key=total.__getitem__)
    return [
        f"**On paper: a billion nodes**, {EDGES:.0e} edges, {SIGNALS} signals, {MOMENTS} moments, {PROBES} probes, "
        f"{MACHINES} machines with {CORES} cores (an assumption) and {8 * LINK / 1e9:.0f} Gbit/s each. It was not run. "
        f"Measured were: nanoseconds of a core a node and step, on {measured['n_nodes']:,} points with "
        f"{measured['edges']:,} edges, as many a node; the boundary of a partition of {before:,.0f} nodes within "
        f"{measured['hops']} hops, {measured['boundary']:,.0f} nodes; "
        f"{1e3 * task:.2f} ms of the scheduler's and the client's processor a task, with "
        f"{measured['small_partitions']} partitions that have next to nothing to do; "
        f"{measured['lanczos_steps']} steps of Lanczos. The arithmetic:\n",
        f"* A worker a machine with a thread a core, and a partition a core: {n_partitions:,} of {own:,.0f} nodes, "
        f"those of a machine in a square of {SIDE} by {SIDE}. *Computing* = time a node and step x nodes x steps.",
        f"* In the plane the boundary grows with the root of the nodes: {boundary:,.0f}. A *message* is two blocks "
        f"(three for Lanczos, of one hop) x columns x {VALUE} bytes x boundary. A machine sends what lies along the "
        f"border of its square, as much as {SIDE} messages, an exchange; and all partitions send their products of "
        "columns to the client. *Network* = bytes / link x exchanges.",
        f"* *Tasks* = {TASKS} per machine and exchange x time per task: the scheduler is one process. A Dask array is "
        f"cut into {n_partitions:,} chunks x {n_partitions:,} partitions pieces, a task each.\n",
        table(header, rows),
        f"* Memory of a machine: {graph:.0f} GB for the rows of the weights with their halo; {state:.0f} GB for the "
        "two blocks of the signals, and as much for those of the probes, which stay until the fit ends; "
        f"{kept:.1f} GB for messages, which are kept for a pass, as sent and as received.",
        f"* The bottleneck is {_words(largest, total, pieces)}.",
        "* Graphs that no plane or space holds have larger boundaries. With halos of a quarter of the nodes, which is "
        f"where `n_hops=\"auto\"` stops, messages are {0.25 / share:.0f} times as large, and the network takes "
        f"{0.25 / share * total['network']:.0f} s, against {total['computing']:.0f} s for computing.\n",
    ]  # fmt: skip


def _words(largest: str, total: dict[str, float], pieces: float) -> str:
    sums = ", ".join(f"{name} {value:.0f} s" for name, value in total.items())
    if pieces > max(total.values()):
        return (
            f"the scheduler: {pieces:.0f} s each for cutting the signals and putting the predictions together, which "
            f"a memory map of the signals avoids on the way in; of the stages in between, {largest} ({sums}). Fewer, "
            "larger partitions shift it"
        )
    return f"{largest} ({sums})"


def section(
    result: Result, learning: float, table: Callable[..., str], verdict: Callable[[bool], str], introduction: str
) -> list[str]:
    """All of it."""
    parts = [introduction + "\n"]
    if "cost" in result:
        parts += costs(result, table, verdict)
    parts += larger(result, table, verdict)
    if "paper" in result:
        parts += on_paper(result, learning, table)
    return parts
