"""What the routes stand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.metrics import Metrics
from worldmove.serve.page import PageFile
from worldmove.serve.spool import Spool


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a server that answer, each named."""

    desk: Desk
    gateway: Gateway
    metrics: Metrics
    page: Mapping[str, PageFile]
    spool: Spool = field(default_factory=Spool)
