"""Figures of a model in play, for many sessions at once: memory, its end, flags, drift, passes."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from training.country import maps
from training.scenes import STEPS, crosshair_token, nearest, tiles_of_frames
from training.tiles import CLASSES, NUM_PLAIN, NUM_TEXTURES
from training.walks import FLAG, OPPOSITE, STAY, walks
from worldmove.engine.reference.caches import empty_caches
from worldmove.engine.reference.model import ReferenceModel
from worldmove.engine.reference.pictures import to_patches
from worldmove.engine.reference.sampler import Sampler, canvas_shape

Figures = dict[str, object]


@torch.no_grad()
def play(sampler: Sampler, actions: Tensor, *, seed: int, wipe_at: int | None = None) -> Tensor:
    """Frames, uint8 [batch, frames, height, width, 3], of sessions that do ``actions`` [batch, frames].

    ``wipe_at``: the frame before which all memory is lost.
    """
    config, device = sampler.config, actions.device
    generator = torch.Generator(device).manual_seed(seed)
    batch, num_frames = actions.shape
    poses = STEPS.to(device)[actions].cumsum(dim=1)
    caches, filled, shown = empty_caches(config, batch, str(device)), [0] * config.num_layers, []
    for frame in range(0, num_frames, config.frames_per_block):
        if frame == wipe_at:
            caches, filled = empty_caches(config, batch, str(device)), [0] * config.num_layers
        canvas = torch.randn((batch, *canvas_shape(config)), generator=generator, device=device)
        span = slice(frame, frame + config.frames_per_block)
        shown.append(
            sampler.advance(caches, filled, poses=poses[:, span], actions=actions[:, span], frame=frame, canvas=canvas)
        )
    return torch.cat(shown, dim=1)


def out_and_back(distance: int, count: int, *, flag: bool) -> list[list[int]]:
    """Look for a block, perhaps plant a flag, go ``distance`` tiles out and come back; one way for each session."""
    directions = list(OPPOSITE)
    ways = []
    for index in range(count):
        move = directions[index % 4]
        start = [STAY, FLAG if flag else STAY]
        ways.append(start + [move] * distance + [OPPOSITE[move]] * distance)
    return ways


def memory(sampler: Sampler, distance: int, sessions: int, device: str) -> Figures:
    """How much of a place is as it was after going away and coming back, remembered and wiped."""
    actions = torch.tensor(out_and_back(distance, sessions, flag=False), device=device)
    turn = 2 + distance - distance % 2
    result: Figures = {}
    for name, wipe_at in (("kept", None), ("wiped", turn)):
        seen = tiles_of_frames(sampler.config, play(sampler, actions, seed=distance, wipe_at=wipe_at)[:, [1, -1]])
        before, after = seen.unbind(dim=1)
        result[f"{name}_exact"] = share(before == after)
        result[f"{name}_class"] = share(before % NUM_PLAIN // NUM_TEXTURES == after % NUM_PLAIN // NUM_TEXTURES)
    return result


def flag_persistence(sampler: Sampler, distance: int, sessions: int, device: str) -> Figures:
    """Flags that appear when planted, that are there on return, and that nobody planted."""
    actions = torch.tensor(out_and_back(distance, sessions, flag=True), device=device)
    seen = tiles_of_frames(sampler.config, play(sampler, actions, seed=100 + distance)[:, [1, -1]]) >= NUM_PLAIN
    token = crosshair_token(sampler.config)
    elsewhere = torch.arange(seen.shape[-1], device=device) != token
    return {
        "appeared": share(seen[:, 0, token]),
        "returned": share(seen[:, 1, token]),
        "false": share(seen[:, 1][:, elsewhere]),
    }


def drift(sampler: Sampler, sessions: int, device: str, num_frames: int = 300) -> Figures:
    """Distance to the nearest tile picture (RMS, range -1..1), by 50 frames of a long mixed walk."""
    actions = torch.from_numpy(walks(sessions, num_frames, seed=77)).to(device)
    frames = play(sampler, actions, seed=5)
    distances = [nearest(sampler.config, to_patches(sampler.config, part))[1] for part in frames.split(50, dim=1)]
    return {
        "rms": [round(float(part.mean()), 5) for part in distances],
        "tiles_over_0.1": [share(part > 0.1) for part in distances],
    }


def invention(sampler: Sampler, sessions: int, device: str) -> Figures:
    """First blocks, of which nothing is known: how far from tiles, how unlike real country in its shares of kinds."""
    actions = torch.full((sessions, sampler.config.frames_per_block), STAY, device=device)
    frames = play(sampler, actions, seed=9)
    index, distance = nearest(sampler.config, to_patches(sampler.config, frames))
    real = maps(sessions, torch.Generator(device).manual_seed(9))
    kinds, real_kinds = (i % NUM_PLAIN // NUM_TEXTURES for i in (index, real))
    shares = [torch.bincount(k.flatten(), minlength=len(CLASSES)) / k.numel() for k in (kinds, real_kinds)]
    return {
        "rms": round(float(distance.mean()), 5),
        "tiles_over_0.1": share(distance > 0.1),
        "frames_disagree": share(index[:, 0] != index[:, 1]),
        "kinds_variation": round(float((shares[0] - shares[1]).abs().sum() / 2), 4),
        "kinds": [round(float(kind), 4) for kind in shares[0]],
    }


def share(flags: Tensor) -> float:
    return round(float(flags.float().mean()), 5)


def figures(model: ReferenceModel, *, sessions: int, say: Callable[..., None]) -> Figures:
    """All of them, in float32; and memory under other numbers of passes."""
    device = str(model.place.device)
    torch.set_float32_matmul_precision("highest")
    sampler = Sampler(model)
    report: Figures = {}
    report["invention"] = invention(sampler, 4 * sessions, device)
    say("invention", **report["invention"])  # type: ignore[arg-type]
    for distance in (4, 8, 12, 20, 22, 24, 30):
        report[f"memory_{distance}"] = memory(sampler, distance, sessions, device)
        say(f"memory {distance}", **report[f"memory_{distance}"])  # type: ignore[arg-type]
    for distance in (4, 12, 20):
        report[f"flag_{distance}"] = flag_persistence(sampler, distance, sessions, device)
        say(f"flag {distance}", **report[f"flag_{distance}"])  # type: ignore[arg-type]
    report["drift"] = drift(sampler, min(sessions, 16), device)
    say("drift", **report["drift"])  # type: ignore[arg-type]
    for passes in ((1.0,), (1.0, 0.75), (1.0, 0.75, 0.45)):
        other = Sampler(with_levels(model, passes))
        name = "passes_" + "_".join(map(str, passes))
        report[name] = memory(other, 12, sessions, device) | invention(other, sessions, device)
        say(name, **report[name])  # type: ignore[arg-type]
    return report


def with_levels(model: ReferenceModel, levels: tuple[float, ...]) -> ReferenceModel:
    """The same weights under another schedule."""
    with torch.device("meta"):
        other = ReferenceModel(replace(model.config, levels=levels))
    other.load_state_dict(model.state_dict(), assign=True)
    return other.requires_grad_(requires_grad=False)
