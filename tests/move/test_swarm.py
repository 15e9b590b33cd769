"""Many moves under seeded faults of every kind at once: each seed draws its own rates, half of them zero."""

import asyncio
import random

import pytest

from tests.move.harness import Fleet, LedgerFault, Worker, reference
from tests.move.virtual import run
from worldmove.move.ledger_rules import Operation
from worldmove.move.messages import AnyMoveMessage, Cancel

SEEDS = range(60)
MOVES = 4


class Weather:
    """The faults of one seed."""

    def __init__(self, seed: int, fleet: Fleet) -> None:
        self.rng = random.Random(f"weather:{seed}")
        self.fleet = fleet
        self.loss = self._rate(0.3)
        self.repeat = self._rate(0.3)
        self.late = self._rate(0.2)
        self.silence = self._rate(0.4)
        self.cancel = self._rate(0.5)
        self.death = self._rate(0.25)
        self.suspicion = self._rate(0.3)

    def post(self, message: AnyMoveMessage) -> tuple[float, ...]:
        if self.rng.random() < self.loss:
            return ()
        delays = [self._delay()]
        while self.rng.random() < self.repeat:
            delays.append(self._delay())
        return tuple(delays)

    def ledger(self, worker: Worker, operation: Operation) -> LedgerFault | None:
        return self.rng.choice(list(LedgerFault)) if self.rng.random() < self.silence else None

    async def blow(self) -> None:
        """Cancel, suspect and kill at random instants of a move."""
        await asyncio.sleep(self.rng.expovariate(1 / 0.02))
        row = self.fleet.row
        if row.attempt is not None and self.rng.random() < self.cancel:
            for name in self.fleet.workers:
                self.fleet.say(Cancel, name, row.attempt.attempt, row.epoch)
        if row.attempt is not None and self.rng.random() < self.death:
            self.fleet.kill(row.attempt.destination, noticed_after_s=self.rng.choice([0.0, 2.0]))
        elif self.rng.random() < self.suspicion:
            self.fleet.suspected.append(self.rng.choice(sorted(self.fleet.workers)))

    def clear(self) -> None:
        """The sun comes out."""
        fleet = self.fleet
        fleet.post_fault = lambda message: (0.0005,)
        fleet.ledger_fault = lambda worker, operation: None
        dead = [name for name, worker in fleet.workers.items() if worker.dead]
        fleet.suspected[:] = dead

    def _rate(self, most: float) -> float:
        return self.rng.choice([0.0, self.rng.random() * most])

    def _delay(self) -> float:
        return self.rng.expovariate(1 / 0.5) if self.rng.random() < self.late else 0.0005 + self.rng.random() * 0.004


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_weather_one_copy_goes_on_and_it_is_the_same_world(seed: int) -> None:
    async def main() -> None:
        fleet = Fleet()
        weather = Weather(seed, fleet)
        await fleet.play(2)
        for _ in range(MOVES):
            fleet.post_fault, fleet.ledger_fault = weather.post, weather.ledger
            to = "B" if fleet.row.owner == "A" else "A"
            moving = asyncio.create_task(fleet.move(to, limit_s=15.0))
            await weather.blow()
            await moving
            weather.clear()
            await fleet.play(2)  # a superseded end hears of it by a refused frame
            await fleet.one_goes_on()
            for name in [name for name, worker in fleet.workers.items() if worker.dead]:
                fleet.restart(name)
            await fleet.settled()
            assert fleet.gateway.shown == reference(fleet)

    run(main())
