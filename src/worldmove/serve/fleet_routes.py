"""The routes of the fleet as a whole: its workers, the last moves, its health, its counters."""

from fastapi import FastAPI, Response

from worldmove import __version__
from worldmove.engine.facts import fields_of
from worldmove.serve import http_models as body
from worldmove.serve.answers import environment_body, failover_body, move_body, worker_body
from worldmove.serve.parts import Parts


def add_fleet(app: FastAPI, parts: Parts) -> None:
    """Workers, moves, health and counters are shown."""
    fleet = parts.gateway.fleet
    engine = fields_of(parts.gateway.config.live.spec)
    frame_period_s = 1 / parts.gateway.config.live.spec.frames_per_s

    @app.get("/api/workers")
    async def workers() -> body.Workers:
        """List the workers."""
        return body.Workers(workers=[worker_body(view) for view in fleet.workers()])

    @app.get("/api/moves")
    async def moves() -> body.Moves:
        """List the last moves, oldest first."""
        return body.Moves(moves=[move_body(report, frame_period_s) for report in fleet.moves()])

    @app.get("/api/failovers")
    async def failovers() -> body.Failovers:
        """List the last failovers, oldest first."""
        return body.Failovers(failovers=[failover_body(report) for report in fleet.failovers()])

    @app.get("/api/environment")
    async def environment() -> body.Environment:
        """Show what decides whether two workers compute the same bytes, and where that is not equal."""
        return environment_body(engine, fleet.workers())

    @app.get("/healthz")
    async def health() -> body.Health:
        """Say that the server answers, and what it serves."""
        return _health(parts)

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Show the counters in Prometheus' text format."""
        return Response(parts.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _health(parts: Parts) -> body.Health:
    fleet, live = parts.gateway.fleet, parts.gateway.config.live
    return body.Health(
        status="ok",
        ledger="ok" if fleet.ledger_failure is None else str(fleet.ledger_failure),
        version=__version__,
        server_life=live.server_life,
        engine=live.spec.name,
        preset=live.spec.preset,
        weights_sha256=live.spec.weights_sha256,
        num_sessions=len(parts.gateway.lives),
    )
