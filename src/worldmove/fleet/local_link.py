"""The server's end of a worker's link on this machine."""

from worldmove.worker.link import WorkerEnd
from worldmove.worker.messages import ToWorker


class LocalLink:
    """The server's end of a worker's link, over whichever connection the worker has made last (a ``WorkerLink``)."""

    def __init__(self) -> None:
        self._connection: WorkerEnd | None = None

    def join(self, connection: WorkerEnd) -> None:
        """Use this connection from now on."""
        self.close()
        self._connection = connection

    def has_left(self, connection: WorkerEnd) -> bool:
        """Whether the worker has made another connection since: what still waits in this one is older than that."""
        return self._connection is not None and self._connection is not connection

    def send(self, message: ToWorker) -> None:
        if self._connection is not None:
            self._connection.send(message)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
