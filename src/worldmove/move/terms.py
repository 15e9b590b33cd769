"""Terms of a move: one part of the time that it takes, named as the phase of the report that it foretells. Pure."""

from dataclasses import dataclass

from worldmove.move.measured import Measured
from worldmove.move.reckoning.settled import Settled
from worldmove.units import bytes_text, seconds_text


@dataclass(frozen=True, slots=True)
class Term:
    """One part of what a move takes."""

    name: str
    seconds: float
    how: str = ""
    """What of, in a few words."""


class Way:
    """The way through a pause, station by station. A term is the stretch between two, so the terms overlap nowhere."""

    def __init__(self) -> None:
        self.at_s = 0.0
        """How long after the freeze its last station is passed."""
        self._terms: list[Term] = []

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(self._terms)

    def until(self, name: str, at_s: float, how: str) -> None:
        """Go on to a station that can be passed then; one that could be passed earlier costs nothing."""
        at_s = max(self.at_s, at_s)
        self._terms.append(Term(name, at_s - self.at_s, how))
        self.at_s = at_s

    def take(self, name: str, took_s: float, how: str) -> None:
        """Go on for a while."""
        self.until(name, self.at_s + took_s, how)


@dataclass(frozen=True, slots=True)
class Reckoning:
    """The terms before the freeze, during which the session is played, and the pause."""

    before: tuple[Term, ...]
    way: Way
    settled: Settled | None = None
    """What differs before it, of a strategy that pulls in rounds."""
    worst_s: float = 0.0
    """The pause of such a one where its rounds begin at the worst moment of a block; it has to fit, too."""


def freeze(way: Way, measured: Measured) -> None:
    """From the block's end to its resolved state."""
    way.until("freeze", measured.fixed.freeze_s, measured.fixed.of)


def commit(way: Way, measured: Measured) -> None:
    """From the later of the two proofs to the permission to compute."""
    way.take("commit", measured.fixed.commit_s, "comparison, the ledger's grant")


def source_pass_s(measured: Measured) -> float:
    """Return what one pass of the source over its state takes."""
    return measured.num_bytes / measured.rate("source_hash_rate")


def destination_pass_s(measured: Measured) -> float:
    """Return what the destination's pass over what is installed takes."""
    return measured.num_bytes / measured.rate("destination_hash_rate")


def room_for_another_s(measured: Measured) -> float:
    """Return the time that a destination has for another session in each period: (1 - U) T."""
    return max(0.0, 1.0 - measured.rate("utilisation")) * measured.rate("period_s")


def growth(measured: Measured) -> float:
    """Return how many times larger a state is than those that were measured; 1 where it is smaller."""
    known = measured.fixed.num_bytes
    return max(1.0, measured.num_bytes / known) if known else 1.0


def arrive(way: Way, measured: Measured, known_s: float, num_bytes: float) -> None:
    """Until both ends have proven the state: what is pulled and installed, beside the source's two passes.

    ``known_s``: when the destination knows what to pull. What it was told ahead it pulls before the state is resolved.
    """
    fixed, wire_s = measured.fixed, num_bytes / measured.rate("path_rate") + measured.fixed.land_s
    text = f"{size_text(num_bytes)} in {seconds_text(wire_s)}"
    if known_s < way.at_s:
        text += f", begun {seconds_text(way.at_s - known_s)} before the state is resolved"
    way.until("land", known_s + wire_s, text)
    landed_s = way.at_s
    way.take("install", fixed.install_s, "to where the pass over it begins")
    here_s, there_s = source_pass_s(measured), destination_pass_s(measured)
    first_s = fixed.freeze_s + here_s
    how = f"its pass in {seconds_text(there_s)}, beside the source's second pass, {seconds_text(here_s)}"
    if first_s > landed_s:
        how += f", after a first one that is over {seconds_text(first_s - landed_s)} after the landing"
    proven_s = max(way.at_s + there_s, max(landed_s, first_s) + here_s)
    way.until("verify", proven_s + fixed.verify_s, how)


def base(measured: Measured) -> Term:
    """A first copy of everything; played on meanwhile, so it may be torn."""
    return Term("base", measured.num_bytes / measured.rate("path_rate"), f"{size_text(measured.num_bytes)}, played on")


def rows(measured: Measured) -> Term:
    """The digests of a state's rows: at the destination before the freeze, at the source in the pause."""
    return Term("rows", measured.num_bytes / measured.rate("row_rate"), "digests of every row")


def size_text(num_bytes: float) -> str:
    """Say a reckoned size."""
    return bytes_text(round(num_bytes))
