"""What became of one move: see ``worldmove.move.report``, under the name by which the server's parts know it."""

from worldmove.move.report import MoveReport, Outcome, PhaseTime

__all__ = ["MoveReport", "Outcome", "PhaseTime"]
