"""What a controller does when somebody asks for it: worlds are opened and closed, moved, and asked about."""

from worldmove.fleet.asking import Asking, first_number
from worldmove.fleet.books import Books
from worldmove.fleet.mover import Mover, MoverPorts
from worldmove.fleet.opener import Opener
from worldmove.fleet.workers import WorkerRecord


class Services:
    """One controller's."""

    def __init__(self, books: Books, ports: MoverPorts) -> None:
        config, workers, sessions, desk = books.config, books.workers, books.sessions, books.desk
        self.asking = Asking(
            config=config, workers=workers, sessions=sessions, desk=desk, begins_at=first_number(ports.nonce())
        )
        self.opener = Opener(
            config=config,
            workers=workers,
            sessions=sessions,
            desk=desk,
            notes=books.notes,
            gateway=books.gateway,
            salt=ports.salt,
        )
        self.mover = Mover(
            config=config,
            ports=ports,
            workers=workers,
            sessions=sessions,
            desk=desk,
            gateway=books.gateway,
            history=books.history,
            containment=books.containment,
        )

    def died(self, worker: WorkerRecord) -> None:
        """A worker is dead: whoever waits for a word of it hears so."""
        self.mover.died(worker.name)
        self.asking.died(worker.name, worker.incarnation)
        self.opener.died(worker.name, worker.incarnation)
