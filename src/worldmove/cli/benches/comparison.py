"""Every way to bring a session's bytes elsewhere, side by side in one run: ours, in two forms, and those beside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from worldmove.cli.benches.direct import Direct, measure_direct
from worldmove.cli.benches.found import Measured
from worldmove.cli.benches.machine import head
from worldmove.cli.benches.move import measure
from worldmove.cli.benches.peers import Times, measure_peers, medians
from worldmove.cli.benches.series import median_of
from worldmove.serve.server_config import ServerConfig

FILES = "torch.save and torch.load through memory"
RESIDENT, SCATTERED = "slot-resident", "scattered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """What a move without a server may take."""

    most_copies: Mapping[str, float]
    """From freeze to match, in flat copies of as many bytes along the same way."""
    least_of_files: float
    """How often a slot-resident one goes into the time of torch's files in memory."""


ONE_GPU = Goals(most_copies={RESIDENT: 3.2, SCATTERED: 4.0}, least_of_files=800.0)
TWO_GPUS = Goals(most_copies={RESIDENT: 1.15, SCATTERED: 1.30}, least_of_files=450.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How often. ``scattered``: with a session, too, none of whose tensors lies in its slot when it is frozen."""

    moves: int
    repeats: int
    file_repeats: int
    scattered: bool
    scattered_moves: int | None = None
    """Of those under play; None: as many as of the other session. 0: without a server alone."""
    strategy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of one run."""

    engine: str
    device: str
    """Where sessions lie: ``cpu`` or ``cuda``."""
    gpus: tuple[str, ...]
    """The workers' own, in turn; none where they share what there is."""
    found: Measured
    """Moves under play in a server; the engine's session as it lies."""
    scattered: Measured | None
    direct: Mapping[str, Direct]
    peers: Times
    head: Mapping[str, Any]

    def fields(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {
            **self.head,
            "engine": self.engine,
            "gpus": self.gpus,
            **self.found.fields(),
            "scattered": None if self.scattered is None else self.scattered.fields(),
            "between_processes": {name: each.fields() for name, each in self.direct.items()},
            "peers_ms": medians(self.peers),
            "peer_samples_ms": {name: _rounded(times) for name, times in self.peers.items()},
            "ratios": self.ratios(),
            "misses": self.misses(),
        }

    def ratios(self) -> dict[str, float | None]:
        """Return how often each move without a server goes into the time of torch's files in memory."""
        files = medians(self.peers).get(FILES)
        return {f"torch files in {name}": _ratio(files, median_of(each.match_ms)) for name, each in self.direct.items()}

    def rows(self) -> list[tuple[object, ...]]:
        """Return the table, for people."""
        rows = self.found.rows()
        if self.scattered is not None:
            rows += [(f"{SCATTERED}: {name}", *numbers) for name, *numbers in self.scattered.rows()]
        rows += [(f"without a server, {name} (ms)", median_of(each.match_ms)) for name, each in self.direct.items()]
        rows += [(f"{name} (ms)", taken) for name, taken in medians(self.peers).items()]
        return [(*row, *[""] * (4 - len(row))) for row in rows]

    def misses(self) -> list[str]:
        """Return the goals that were not met."""
        of_scattered = [] if self.scattered is None else self.scattered.misses()
        on_device = self._device_misses() if self.device == "cuda" else []
        return [*self.found.misses(), *(f"{SCATTERED}: {each}" for each in of_scattered), *on_device]

    def _device_misses(self) -> list[str]:
        goals = TWO_GPUS if len(self.gpus) > 1 else ONE_GPU
        copies = {name: each.match_in_copies or 0.0 for name, each in self.direct.items()}
        missed = [
            f"{name} without a server {copies[name]:.2f} flat copies, goal {most}"
            for name, most in goals.most_copies.items()
            if copies.get(name, 0.0) > most
        ]
        files = self.ratios().get(f"torch files in {RESIDENT}")
        if files is not None and files < goals.least_of_files:
            missed.append(f"{files:.0f} times in torch's files, goal {goals.least_of_files:.0f}")
        return missed

    def sentence(self) -> str:
        """Return what came out, in one line."""
        return self.found.sentence()


def compare(config: ServerConfig, asked: Asked, stage: Callable[[str], None]) -> Comparison:
    """Take everything, one thing after another."""
    begin = head()
    engine, threads = config.worker.engine, config.worker.num_threads
    resident = measure(config, asked.moves, stage, strategy=asked.strategy)
    cases, scattered = {RESIDENT: engine}, None
    if asked.scattered:
        cases[SCATTERED] = f"scattered:{engine}"
        moves = asked.moves if asked.scattered_moves is None else asked.scattered_moves
        worker = replace_engine(config, cases[SCATTERED])
        scattered = measure(worker, moves, stage, strategy=asked.strategy).found if moves else None
    return Comparison(
        engine=engine,
        device=resident.device,
        gpus=config.gpus,
        found=resident.found,
        scattered=scattered,
        direct={
            name: measure_direct(each, threads, asked.repeats, stage, gpus=config.gpus) for name, each in cases.items()
        },
        peers=measure_peers(resident.leaf_bytes, resident.device, stage, file_repeats=asked.file_repeats),
        head=begin,
    )


def replace_engine(config: ServerConfig, engine: str) -> ServerConfig:
    """Return the same configuration for another engine, whose workers nobody looks into."""
    return replace(config, worker=msgspec.structs.replace(config.worker, engine=engine, profile=""))


def _ratio(value: float | str | None, unit: float | str | None) -> float | None:
    known = isinstance(value, float) and isinstance(unit, float) and unit > 0
    return round(float(value) / float(unit), 3) if known and value is not None and unit is not None else None


def _rounded(times: list[float] | str) -> list[float] | str:
    return times if isinstance(times, str) else [round(value, 4) for value in times]
