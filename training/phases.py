"""The three phases in time: each runs for its seconds, or for its steps if they come first."""

import copy
import time
from collections.abc import Callable, Iterator

from torch import Tensor

from training.log import Log
from training.trainer import Trainer
from worldmove.engine.reference.model import ReferenceModel

AVERAGE_DECAY = 0.998
STUDENT_DECAY = 0.99


def flow(trainer: Trainer, log: Log) -> None:
    """Phase 1: teach the model the world. Leaves the teacher in ``trainer.average``."""
    trainer.flow_step(1.0, own_guesses=True)  # compiles
    log.say("compiled")
    progress = clock(trainer.settings.seconds[0])
    for step, fraction in steps(trainer, progress, phase=0, flat_until=0.5):
        # A model that knows nothing yet has no guesses worth reading.
        own = step % 2 == 1 and (progress() > 0.3 or trainer.settings.steps[0] is not None)
        report(log, "flow", step, trainer.flow_step(fraction, own_guesses=own), every=100)
        trainer.follow(trainer.average, min(AVERAGE_DECAY, (step + 1) / (step + 10)))


def straighten(trainer: Trainer, log: Log) -> ReferenceModel:
    """Phase 2: from the teacher's weights on. Returns the student's average."""
    trainer.model.load_state_dict(trainer.average.state_dict())
    student = copy.deepcopy(trainer.average)
    for step, fraction in steps(trainer, clock(trainer.settings.seconds[1]), phase=1, flat_until=0.0):
        loss = trainer.straighten_step(0.5 * fraction, student if step % 2 else None)
        report(log, "straighten", step, loss, every=50)
        trainer.follow(student, STUDENT_DECAY)
    return student


def decide(trainer: Trainer, student: ReferenceModel, log: Log) -> None:
    """Phase 3: the student's average follows on."""
    for step, fraction in steps(trainer, clock(trainer.settings.seconds[2]), phase=2, flat_until=0.0):
        report(log, "decide", step, trainer.decide_step(0.3 * fraction, student), every=50)
        trainer.follow(student, STUDENT_DECAY)


def clock(seconds: float) -> Callable[[], float]:
    """How much of a phase's time is over: 0 to 1 and beyond."""
    began = time.monotonic()
    return lambda: (time.monotonic() - began) / seconds


def steps(
    trainer: Trainer, progress: Callable[[], float], *, phase: int, flat_until: float
) -> Iterator[tuple[int, float]]:
    """Steps of a phase, each with its share of the full rate: all until ``flat_until`` of the time, then down to 0."""
    most = trainer.settings.steps[phase]
    step = 0
    while (done := progress()) < 1 and (most is None or step < most):
        yield step, min(1.0, (1 - done) / (1 - flat_until))
        step += 1


def report(log: Log, phase: str, step: int, loss: Tensor, *, every: int) -> None:
    """Now and then: reading a loss waits for the device."""
    if step % every == 0:
        log.say(phase, step=step, loss=round(float(loss), 5))
