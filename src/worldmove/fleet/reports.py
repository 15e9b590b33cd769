"""What became of one move: see ``worldmove.move.report``, under the name by which the server's parts know it."""

from worldmove.move.report import Expectation, MoveReport, Outcome, PhaseTime

__all__ = ["Expectation", "MoveReport", "Outcome", "PhaseTime"]
