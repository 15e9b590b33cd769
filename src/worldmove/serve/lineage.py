"""Which server this is of those that have lived in a state folder, and what it must not go on with. Pure."""

from collections.abc import Iterator, Mapping

from worldmove.errors import UserError
from worldmove.fleet.notes import ServerNote


def next_life(
    before: ServerNote | None,
    *,
    engine: str,
    fields: Mapping[str, str],
    speech: str,
    now_ms: int,
    num_alive: int,
    fresh_key: bytes,
) -> ServerNote:
    """Return the note of a server that begins now, with a life number greater than every one before it.

    The key of its receipts is that of the servers before it, and ``fresh_key`` where there was none.

    ``fields``: what the engine of that name is now. ``num_alive``: how many workers of an earlier server live. Raises
    UserError where they could not be gone on with: they compute another engine, or do not understand this version.
    """
    if before is not None and num_alive:
        if before.engine != engine:
            why = (
                f"Worlds of {before.engine} go on in {num_alive} workers of an earlier server; start with "
                f"--engine {before.engine}, or give another folder with --state."
            )
            raise UserError(why, code="other_engine", status=409)
        if before.speech != speech:
            why = (
                f"{num_alive} workers of an earlier server speak another version of WorldMove; start that version "
                "again, or give another folder with --state. They end by themselves when no server comes."
            )
            raise UserError(why, code="other_version", status=409)
        if said := "; ".join(_differences(before.fields or fields, fields)):
            why = (
                f"Worlds go on in {num_alive} workers of an earlier server, and {engine} is another "
                f"engine now: {said}. Start it with that one, or give another folder with --state."
            )
            raise UserError(why, code="other_engine", status=409)
    life = max(0 if before is None else before.life + 1, now_ms)  # a clock may stand anywhere
    key = before.receipt_key if before is not None and before.receipt_key else fresh_key.hex()
    return ServerNote(life=life, engine=engine, fields=dict(fields), speech=speech, receipt_key=key)


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({**before, **now}):
        if before.get(name) != now.get(name):
            yield f"{name} was {before.get(name, 'not set')} and is {now.get(name, 'not set')}"
