"""Train the island world: ``python -m training.train --out FOLDER``, about eight minutes on one H200."""

import argparse
import copy
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save_file

from training.figures import figures
from training.optimiser import initialise
from training.trainer import Trainer, TrainingConfig, fractions
from training.walks import walks
from worldmove.engine.reference.config import LayerShape, ReferenceConfig
from worldmove.engine.reference.model import ReferenceModel
from worldmove.engine.reference.presets import island


@dataclass(slots=True)
class Log:
    """What happened when: printed as it comes, kept as JSON."""

    began: float = field(default_factory=time.monotonic)
    lines: list[dict[str, float | str]] = field(default_factory=list)

    def say(self, event: str, **values: float) -> None:
        line: dict[str, float | str] = {"s": round(time.monotonic() - self.began, 1), "event": event, **values}
        self.lines.append(line)
        print(json.dumps(line), flush=True)


def flow(trainer: Trainer, log: Log) -> None:
    """Phase 1."""
    settings = trainer.settings
    trainer.flow_step(1.0, own_guesses=True)  # compiles
    log.say("compiled")
    began = time.monotonic()
    progress = lambda: (time.monotonic() - began) / settings.seconds[0]  # noqa: E731
    for step, fraction in enumerate(fractions(progress, 0.5, settings.steps[0])):
        own = step % 2 == 1 and (progress() > 0.3 or settings.steps[0] is not None)
        loss = trainer.flow_step(fraction, own_guesses=own)
        trainer.follow(trainer.average, min(0.998, (step + 1) / (step + 10)))
        if step % 100 == 0:
            log.say("flow", step=step, loss=round(float(loss), 5), rate=round(fraction, 3))
    log.say("flow done", step=step)


def straighten(trainer: Trainer, log: Log) -> ReferenceModel:
    """Phase 2. Returns the student's average."""
    settings = trainer.settings
    trainer.model.load_state_dict(trainer.average.state_dict())
    student = copy.deepcopy(trainer.average)
    began = time.monotonic()
    progress = lambda: (time.monotonic() - began) / settings.seconds[1]  # noqa: E731
    for step, fraction in enumerate(fractions(progress, 0.0, settings.steps[1])):
        loss = trainer.straighten_step(0.5 * fraction, student if step % 2 else None)
        trainer.follow(student, 0.99)
        if step % 50 == 0:
            log.say("straighten", step=step, loss=round(float(loss), 5), rate=round(0.5 * fraction, 3))
    log.say("straighten done", step=step)
    return student


def decide(trainer: Trainer, student: ReferenceModel, log: Log) -> None:
    """Phase 3."""
    settings = trainer.settings
    began = time.monotonic()
    progress = lambda: (time.monotonic() - began) / settings.seconds[2]  # noqa: E731
    for step, fraction in enumerate(fractions(progress, 0.0, settings.steps[2])):
        loss = trainer.decide_step(0.3 * fraction, student)
        trainer.follow(student, 0.99)
        if step % 50 == 0:
            log.say("decide", step=step, loss=round(float(loss), 5), rate=round(0.3 * fraction, 3))
    log.say("decide done", step=step)


def small() -> ReferenceConfig:
    """The island's geometry around a model that a laptop trains for a few steps in seconds."""
    full = island().config
    fields = {name: getattr(full, name) for name in full.__dataclass_fields__}
    layers = (LayerShape(window=4, num_heads=2), LayerShape(window=6, num_heads=1))
    return ReferenceConfig(**{**fields, "dim": 64, "mlp_dim": 128, "layers": layers})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, nargs=3, default=(110.0, 130.0, 110.0), help="of each phase")
    parser.add_argument("--steps", type=int, nargs=3, default=None, help="at most so many, for a smoke test")
    parser.add_argument("--small", action="store_true", help="a small model on the CPU, for a smoke test")
    parser.add_argument("--sessions", type=int, default=64, help="of the evaluation at the end; 0 skips it")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    log = Log()
    torch.set_float32_matmul_precision("high")
    device = "cpu" if options.small else "cuda"
    settings = TrainingConfig(
        batch=2 if options.small else 24,
        num_frames=16 if options.small else 64,
        device=device,
        seconds=tuple(options.seconds),
        steps=tuple(options.steps) if options.steps else (None, None, None),
        seed=options.seed,
        num_walks=50 if options.small else 20_000,
    )
    model = ReferenceModel(small() if options.small else island().config)
    initialise(model, options.seed)
    log.say("start", parameters=sum(parameter.numel() for parameter in model.parameters()))
    pool = walks(settings.num_walks, settings.num_frames, options.seed)
    log.say("walks")
    trainer = Trainer(model.to(device), settings, pool)
    flow(trainer, log)
    student = straighten(trainer, log)
    decide(trainer, student, log)
    if device == "cuda":
        log.say("memory", peak_gib=round(torch.cuda.max_memory_allocated() / 2**30, 2))

    options.out.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().bfloat16().cpu().contiguous() for name, tensor in student.state_dict().items()}
    save_file(tensors, options.out / "island.safetensors")
    average = {name: tensor.detach().bfloat16().cpu().contiguous() for name, tensor in trainer.average.state_dict().items()}
    save_file(average, options.out / "teacher.safetensors")
    (options.out / "training.json").write_text(json.dumps({"settings": asdict(settings), "log": log.lines}, indent=1))
    if options.sessions:
        student.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
        report = figures(student, sessions=options.sessions, say=log.say)
        (options.out / "figures.json").write_text(json.dumps(report, indent=1))
    (options.out / "training.json").write_text(json.dumps({"settings": asdict(settings), "log": log.lines}, indent=1))


if __name__ == "__main__":
    main()
