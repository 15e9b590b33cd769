"""An answer that goes out in pieces, and whose making is its client's to owe: it runs in a task of its own."""

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from worldmove.serve.loop_share import Measured, measured_of


class Streamed(StreamingResponse):
    """As it is in the framework, measured."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._measured = measured_of(scope)
        await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        await Measured(super().stream_response(send), self._measured)
