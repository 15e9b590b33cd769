"""Terms of a move: one part of the time that it takes, and those that every strategy has. Pure."""

from dataclasses import dataclass

from worldmove.move.measured import Measured
from worldmove.units import bytes_text, seconds_text


@dataclass(frozen=True, slots=True)
class Term:
    """One part of what a move takes."""

    name: str
    seconds: float
    how: str = ""
    """What of, in a few words."""


@dataclass(frozen=True, slots=True)
class Reckoning:
    """The terms before the freeze, during which the session is played, and those of the pause."""

    before: tuple[Term, ...]
    pause: tuple[Term, ...]


def freeze(measured: Measured) -> Term:
    """From the block's end to the first byte."""
    return Term("freeze", measured.fixed.freeze_s, measured.fixed.of)


def commit(measured: Measured) -> Term:
    """From the later second pass to the permission to compute."""
    return Term("commit", measured.fixed.commit_s, "proof, comparison, the ledger's grant")


def source_pass_s(measured: Measured) -> float:
    """Return what one pass of the source over its state takes."""
    return measured.num_bytes / measured.rate("source_hash_rate")


def copy(measured: Measured, num_bytes: float) -> Term:
    """The boundary round, beside the source's first pass."""
    wire_s, pass_s = num_bytes / measured.rate("path_rate"), source_pass_s(measured)
    beside = f"the source's first pass, {seconds_text(pass_s)}"
    how = f"{size_text(num_bytes)} in {seconds_text(wire_s)}, beside {beside}"
    return Term("copy", max(wire_s, pass_s), how)


def verify(measured: Measured) -> Term:
    """The destination's install and pass, beside the source's second pass."""
    there_s = measured.fixed.install_s + measured.num_bytes / measured.rate("destination_hash_rate")
    beside = f"the source's second pass, {seconds_text(source_pass_s(measured))}"
    how = f"install and pass in {seconds_text(there_s)}, beside {beside}"
    return Term("verify", max(source_pass_s(measured), there_s), how)


def base(measured: Measured) -> Term:
    """A first copy of everything; played on meanwhile, so it may be torn."""
    return Term("base", measured.num_bytes / measured.rate("path_rate"), f"{size_text(measured.num_bytes)}, played on")


def rows(measured: Measured) -> Term:
    """The digests of a state's rows: at the destination before the freeze, at the source in the pause."""
    return Term("rows", measured.num_bytes / measured.rate("row_rate"), "digests of every row")


def size_text(num_bytes: float) -> str:
    """Say a reckoned size."""
    return bytes_text(round(num_bytes))
