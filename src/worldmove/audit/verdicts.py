"""From what the two processes found to a verdict for each leaf and each place. Pure.

Rules of this file:

1. A leaf is *static* if it never changed and a new session has the same; *needed* if without it anything else was
   different, or it itself was still different at the end; *derived* else.
2. A place outside the state counts if the restored process has something else there than the source had. It is
   *missing* if the session went another way, or if the place changed in play and was still different at the end:
   it remembers something, and whether a later block asks for it is not ours to guess. It is *derived* if it came
   right by itself (a buffer that each block fills anew), or if it is a cache of functools, which says of itself that
   it only remembers; *static* if it never changes in play (a time of start).
3. The process's own generators count only where they were drawn from: they are seeded anew in every process.
4. What an engine was tried with is *refused* if it raised, or died, or its state could not be carried then.
"""

from collections.abc import Iterator, Mapping, Sequence

from worldmove.audit.findings import BOUNDARIES, Continuation, Drop, LeafFact, RestoredFindings, SourceFindings
from worldmove.audit.graph import CACHE, CACHE_PATH, GENERATORS, Place, differing, related_to_any
from worldmove.audit.report import Report, Row, Verdict
from worldmove.audit.trail import Difference, Moment, first_difference, part_of, within


def judge(
    engine: str,
    source: SourceFindings,
    restored: RestoredFindings,
    *,
    allowed: Sequence[str] = (),
) -> Report:
    """Return the report. ``allowed``: places that the engine's author says are no state."""
    differences = {name: _difference(source, restored.continuations[name], name) for name in BOUNDARIES}
    is_exact = all(difference is None for difference in differences.values())
    places = [place for place in _places(source, restored, is_exact) if not _is_allowed(place.path, allowed)]
    return Report(
        engine=engine,
        spans=source.spans,
        differences=differences,
        rows=tuple(_leaf_rows(source, restored)),
        places=tuple(places),
        refused=tuple(_refused(restored)),
        walked=max(len(graph.nodes) for graph in source.starts.values()),
        complete=all(graph.complete for graph in (*source.starts.values(), *source.ends.values())),
    )


def _difference(source: SourceFindings, found: Continuation, name: str) -> Difference | None:
    start, end = source.spans[name]
    expected = source.moments[start : end + 1]
    # Of the boundary itself only the state is compared: the restored session has not shown a block yet.
    still = [_still(expected[0]), *expected[1:]]
    return first_difference(still, [_still(found.moments[0]), *found.moments[1:]])


def _still(moment: Moment) -> Moment:
    return Moment(frames="", notes="", state=moment.state, leaves=moment.leaves)


def _leaf_rows(source: SourceFindings, restored: RestoredFindings) -> Iterator[Row]:
    for name, path in _units(restored):
        leaves = [leaf for leaf in source.moments[source.spans[name][0]].leaves if within(leaf, path)]
        verdict, why = _leaf_verdict(path, source, restored)
        yield Row(
            path=path or "the state",
            verdict=verdict,
            kind=_kinds(leaves, source.facts),
            num_bytes=sum(source.facts[leaf].num_bytes for leaf in leaves),
            leaves=tuple((leaf, source.facts[leaf].kind, source.facts[leaf].num_bytes) for leaf in leaves),
            why=why,
        )


def _units(restored: RestoredFindings) -> list[tuple[str, str]]:
    """Every unit once, at the first boundary that has it, the widest first where the two boundaries cut differently."""
    found: dict[str, str] = {}
    for name in BOUNDARIES:
        for unit in restored.units[name]:
            if not any(within(unit.path, known) or within(known, unit.path) for known in found):
                found[unit.path] = name
    return [(name, path) for path, name in found.items()]


def _leaf_verdict(path: str, source: SourceFindings, restored: RestoredFindings) -> tuple[Verdict, str]:
    drops = [drop for drop in restored.drops if within(drop.path, path) or within(path, drop.path)]
    missed = next((drop for drop in drops if drop.is_missed), None)
    if missed is not None:
        return Verdict.NEEDED, _missed(missed)
    if drops:
        return Verdict.DERIVED, "changes, and was not missed"
    if _has_changed(path, source.moments):
        return Verdict.NEEDED, "changes; had its first value at both boundaries, so it could not be tried"
    return Verdict.STATIC, "never changes, and a new session has the same"


def _missed(drop: Drop) -> str:
    if drop.fault is not None:
        return f"without it: {drop.fault}"
    if drop.difference is not None:
        return f"without it, {drop.difference.seen}"
    return "without it, only itself, to the end"


def _has_changed(path: str, moments: Sequence[Moment]) -> bool:
    first = part_of(moments[0], path)
    return any(part_of(moment, path) != first for moment in moments)


def _kinds(leaves: Sequence[str], facts: Mapping[str, LeafFact]) -> str:
    kinds = sorted({facts[leaf].kind for leaf in leaves})
    if len(leaves) == 1:
        return kinds[0]
    return f"{len(leaves)} leaves" if leaves else "empty"


def _places(source: SourceFindings, restored: RestoredFindings, is_exact: bool) -> Iterator[Row]:
    named: dict[str, None] = {}
    for name in BOUNDARIES:
        found = restored.continuations[name]
        still = differing(source.ends[name], found.end)
        changed = differing(source.starts[name], source.opened)
        for place in differing(source.starts[name], found.start):
            has_changed = related_to_any(place.path, changed)
            if place.path in named or (place.path.startswith(GENERATORS) and not has_changed):
                continue
            named[place.path] = None
            yield _place_row(place, has_changed, related_to_any(place.path, still), is_exact)


def _place_row(place: Place, has_changed: bool, is_still: bool, is_exact: bool) -> Row:
    verdict, why = _place_verdict(place, has_changed, is_still, is_exact)
    return Row(
        path=place.path,
        verdict=verdict,
        kind=place.kind,
        num_bytes=place.num_bytes,
        leaves=(),
        why=f"{_compared(place)}; {why}",
    )


def _compared(place: Place) -> str:
    there, here = (text.partition(" #")[0] for text in (place.there, place.here))
    return "another value" if there == here else f"{there}, restored: {here}"


def _place_verdict(place: Place, has_changed: bool, is_still: bool, is_exact: bool) -> tuple[Verdict, str]:
    if not is_exact:
        return Verdict.MISSING, "changes in play" if has_changed else "never changes in play"
    if not is_still:
        return Verdict.DERIVED, "came right by itself"
    if place.kind == CACHE or place.path.startswith(CACHE_PATH):
        return Verdict.DERIVED, "a cache, and it was not missed"
    if has_changed:
        return Verdict.MISSING, "changes in play, and never came right"
    return Verdict.STATIC, "never changes in play, and was not missed"


def _refused(restored: RestoredFindings) -> Iterator[Row]:
    for tried in restored.tried:
        if tried.fault is not None:
            yield Row(path=tried.name, verdict=Verdict.REFUSED, kind="input", num_bytes=0, leaves=(), why=tried.fault)


def _is_allowed(path: str, allowed: Sequence[str]) -> bool:
    return any(within(path, prefix) for prefix in allowed if prefix)
