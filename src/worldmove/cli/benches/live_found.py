"""What came of a live loop in figures, and which of its goals were missed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worldmove.cli.benches.found import MATCHED, phase_times
from worldmove.cli.benches.live import LiveRun
from worldmove.cli.benches.live_blocks import Parted, beside, late, of_segments, parted
from worldmove.cli.benches.series import median_of, summary
from worldmove.cli.benches.tap import Arrival

PAUSE_P99_MS = 15.0
PAUSE_P99_BETWEEN_GPUS_MS = 20.0
COMMIT_MS, COMMIT_P99_MS = 1.0, 5.0
RESIDENTS_COST = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFound:
    """The figures of one run. ``check_blocks``: what a retired copy steps after each move."""

    run: LiveRun
    check_blocks: int
    gpus: tuple[str, ...] = ()
    """The workers' own, in turn; none where they share what there is."""
    head: Mapping[str, Any]

    @property
    def committed(self) -> list[Mapping[str, Any]]:
        return [report for report in self.run.reports if report["outcome"] == "committed"]

    @property
    def residents(self) -> Parted:
        return parted(self.run.residents, self.run.segments, self.run.moves)

    @property
    def cost(self) -> float | None:
        """How much longer a resident's block takes while a move is under way than where there is none, as a share.

        Compared are blocks beside the moved world at the same worker with such blocks, and those apart from it with
        those: a move changes that, too. Then the two are put together, by how many blocks there were of each.
        """
        found = self.residents
        during, control = beside(found.during, self.run.mine), beside(found.control, self.run.mine)
        longer, count = 0.0, 0
        for place, blocks in during.items():
            there, here = median_of(_compute_ms(blocks)), median_of(_compute_ms(control[place]))
            if there is not None and here:
                longer, count = longer + len(blocks) * (there / here - 1), count + len(blocks)
        return round(longer / count, 4) if count else None

    @property
    def blocks_a_move(self) -> float | None:
        """How many blocks of one world there are for each of its moves, while it is moved."""
        num_worlds, num_blocks = self.run.asked.sessions, len(self._mine(with_moves=True))
        num_moves = len(self.committed) / num_worlds
        return round(num_blocks / num_worlds / num_moves, 2) if num_moves else None

    def fields(self) -> dict[str, Any]:
        """Return everything, for programs."""
        run, residents = self.run, self.residents
        moved, control = self._mine(with_moves=True), self._mine(with_moves=False)
        took, _ = phase_times(self.committed)
        return {
            **self.head,
            "num_bytes": run.num_bytes,
            "period_ms": run.period_ms,
            "gpus": self.gpus,
            "sessions": run.asked.sessions,
            "moves": len(self.committed),
            "directions": dict(Counter(f"{report['from']} to {report['to']}" for report in self.committed)),
            "every_blocks": run.asked.every,
            "blocks_a_move": self.blocks_a_move,
            "check_blocks": self.check_blocks,
            "not_moved": [[r["outcome"], r["reason"]] for r in run.reports if r["outcome"] != "committed"],
            "residents": {"n": len(run.residents), **self._capacity(), "cost_of_a_move": self.cost},
            "pause_ms": summary(self._pauses()),
            "commit_ms": summary(took.get(MATCHED, [])),
            "phases_ms": {name: summary(values) for name, values in took.items()},
            "blocks": {"moved": _blocks(moved), "control": _blocks(control)},
            "residents_blocks": {
                "during_a_move": _blocks(residents.during),
                "between_moves": _blocks(residents.between),
                "control": _blocks(residents.control),
            },
            "frames": self._frames(),
            "replay": run.replay,
            "misses": self.misses(),
            "samples": self._samples(),
        }

    def rows(self) -> list[tuple[object, ...]]:
        """Return the table, for people: name, median, 99th percentile, largest."""
        took, _ = phase_times(self.committed)
        found = self.residents
        series = {
            "pause (ms)": self._pauses(),
            "ask of the commit to grant (ms)": took.get(MATCHED, []),
            "block, with moves (ms)": _compute_ms(self._mine(with_moves=True)),
            "block, control (ms)": _compute_ms(self._mine(with_moves=False)),
            "residents' block during a move (ms)": _compute_ms(found.during),
            "residents' block, control (ms)": _compute_ms(found.control),
        }
        summed = [(name, summary(values)) for name, values in series.items()]
        return [(name, each["median"], each["p99"], each["max"]) for name, each in summed if each is not None]

    def misses(self) -> list[str]:
        """Return the goals that were not met."""
        most_ms = PAUSE_P99_BETWEEN_GPUS_MS if len(self.gpus) > 1 else PAUSE_P99_MS
        pause, took = summary(self._pauses()), phase_times(self.committed)[0].get(MATCHED, [])
        commit, replay = summary(took), self.run.replay
        mine, others = (self._mine(with_moves=True), self._mine(with_moves=False)), self.residents
        of_others = ([*others.during, *others.between], others.control)
        known = (
            (len(self.committed) < self.run.asked.moves, f"{len(self.committed)} moves committed"),
            (pause is not None and pause["p99"] > most_ms, f"pause p99 over {most_ms:.0f} ms"),
            (_more_are_late(*mine), _lates(*mine)),
            (_more_are_late(*of_others), f"residents: {_lates(*of_others)}"),
            (commit is not None and commit["median"] > COMMIT_MS, f"commit median over {COMMIT_MS:.0f} ms"),
            (commit is not None and commit["p99"] > COMMIT_P99_MS, f"commit p99 over {COMMIT_P99_MS:.0f} ms"),
            ((self.cost or 0.0) > RESIDENTS_COST, f"residents' blocks over {RESIDENTS_COST:.0%} longer in a move"),
            (not replay.get("equal"), f"the replay {replay.get('why', 'is not equal')}"),
            (replay.get("num_moves", 0) < len(self.committed), "not every move's state was compared with the replay"),
            (any(self._frames()[name] for name in ("damaged", "missing", "checks_unequal")), "frames or checks differ"),
        )
        return [text for is_missed, text in known if is_missed]

    def sentence(self) -> str:
        """Return what came out, in one line."""
        missed, replay, size = self.misses(), self.run.replay, f"{self.run.num_bytes / 1e6:.1f} MB"
        verdict = "every goal met" if not missed else "missed: " + "; ".join(missed)
        return (
            f"{len(self.committed)} moves of {size} beside {len(self.run.residents)} others; equal to the replay are "
            f"{replay['num_blocks']} blocks, {replay['num_states']} states, {replay['num_moves']} moves: {verdict}."
        )

    def _mine(self, *, with_moves: bool) -> list[Arrival]:
        run, worlds = self.run, (self.run.mine, *self.run.others)
        found = (of_segments(each, run.segments, with_moves=with_moves, world=n) for n, each in enumerate(worlds))
        return [arrival for of_world in found for arrival in of_world]

    def _pauses(self) -> list[float]:
        return [report["pause_ms"] for report in self.committed if report["pause_ms"] is not None]

    def _capacity(self) -> dict[str, int | None]:
        """Say how many worlds of this pace fit a worker's period beside the moved one, with check blocks and without.

        After a move the copy left behind steps its check blocks in the time of as many blocks of another world.
        """
        block_ms = median_of(_compute_ms(self._mine(with_moves=False)))
        if not block_ms:
            return {"fit_without_checks": None, "fit_with_checks": None}
        blocks, checks = self.run.period_ms / block_ms, self.check_blocks / (self.blocks_a_move or 1.0)
        return {
            "fit_without_checks": max(0, int(blocks - 1)),
            "fit_with_checks": max(0, int(blocks - 1 - checks)),
        }

    def _frames(self) -> dict[str, int]:
        seen = self.run.seen
        return {
            "seen": sum(each.frames for each in seen),
            "damaged": sum(each.damaged for each in seen),
            "missing": sum(each.missing for each in seen),
            "checks": sum(each.checks for each in seen),
            "checks_unequal": sum(each.unequal for each in seen),
        }

    def _samples(self) -> dict[str, Any]:
        worlds = [self.run.mine, *self.run.others, *self.run.residents]
        return {
            "pause_ms": self._pauses(),
            "gap_ms": [report["gap_ms"] for report in self.committed],
            "moves_s": [[round(at, 4) for at in span] for span in self.run.moves],
            "segments_s": [
                {"with_moves": segment.with_moves, "blocks": segment.blocks, "span": segment.span}
                for segment in self.run.segments
            ],
            "blocks": [[_row(arrival) for arrival in world] for world in worlds],
        }


def _more_are_late(moved: Sequence[Arrival], control: Sequence[Arrival]) -> bool:
    """Whether a greater share of the blocks in segments with moves came late than of those in segments without."""
    return len(late(moved)) * max(1, len(control)) > len(late(control)) * len(moved)


def _lates(moved: Sequence[Arrival], control: Sequence[Arrival]) -> str:
    return f"{len(late(moved))} blocks late with moves, {len(late(control))} without"


def _blocks(blocks: Sequence[Arrival]) -> dict[str, Any]:
    margins = [1000 * arrival.margin_s for arrival in blocks if arrival.margin_s is not None]
    return {
        "n": len(blocks),
        "late": len(late(blocks)),
        "compute_ms": summary(_compute_ms(blocks)),
        "margin_ms": summary(margins),
    }


def _compute_ms(blocks: Sequence[Arrival]) -> list[float]:
    return [1000 * arrival.compute_s for arrival in blocks]


def _row(arrival: Arrival) -> list[float | int | None]:
    """Return block, epoch, when it came, its margin and what it took: the last two in ms."""
    margin = None if arrival.margin_s is None else round(1000 * arrival.margin_s, 2)
    return [arrival.block, arrival.epoch, round(arrival.arrived, 4), margin, round(1000 * arrival.compute_s, 2)]
