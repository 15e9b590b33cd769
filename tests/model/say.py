"""A path in words: what changed from each state to the next."""

from tests.model.ends import Message
from tests.model.world import ENDS, FLIGHT, GATE, LUCK, PLANS, ROW, SHOWN, State, World


def say(world: World, trace: tuple[State, ...]) -> str:
    """Return one line for each state of a path."""
    return "\n".join(_change(world, before, after) for before, after in zip((None, *trace), trace, strict=False))


def _change(world: World, before: State | None, after: State) -> str:
    said = []
    if before is None or before[ROW] != after[ROW]:
        row = world.book.rows.values[after[ROW]]
        attempt = row.attempt.attempt if row.attempt else "none"
        said.append(f"row: {row.owner}.{row.incarnation} e{row.epoch} shown={row.shown} open={attempt} lost={row.lost}")
    for place, name, values in (
        (GATE, "gate", world.gates),
        (PLANS, "plans", world.plans),
        (LUCK, "luck", world.lucks),
    ):
        if before is None or before[place] != after[place]:
            said.append(f"{name}: {values.values[after[place]]}")
    if before is None or before[SHOWN] != after[SHOWN]:
        said.append(f"shown: {after[SHOWN]}")
    for place in range(ENDS, len(after)):
        if before is None or before[place] != after[place]:
            end = world.ends.values[after[place]]
            default = type(end)()
            fields = [f"{name}={value}" for name, value in end._asdict().items() if value != getattr(default, name)]
            said.append(f"{'ABC'[place - ENDS]}: " + " ".join(str(field) for field in fields))
    old = 0 if before is None else before[FLIGHT]
    for sign, mask in (("+", after[FLIGHT] & ~old), ("-", old & ~after[FLIGHT])):
        said.extend(sign + _message(world, message) for message in world.wire.of(mask))
    return "; ".join(said)


def _message(world: World, message: Message) -> str:
    if message[0] == "ask":
        return f"ask({world.book.operations.values[message[1]]})"
    if message[0] == "answer":
        answer = world.book.answers.values[message[4]]
        return f"answer({'ABC'[message[1]]}, {answer})"
    return str(message)
