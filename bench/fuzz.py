"""Throw bytes at every decoder for so many seconds, guided by coverage. ``make fuzz SECONDS=60``

Atheris watches which lines a byte string reaches, and keeps those that reach new ones. A finding is any exception
beside the one error that a decoder announces, or memory beyond what is announced; it ends the run with a traceback.
"""

import argparse
import sys
import time
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["worldmove"]):
    import msgspec

    from worldmove.errors import ManifestError, MessageError, TransportError
    from worldmove.serve.client_messages import decode
    from worldmove.serve.frames import unpack
    from worldmove.serve.origin import host_is_known, origin_is_own, size_fits
    from worldmove.state.manifest import Layout, Manifest
    from worldmove.transport.shm import ShmTicket
    from worldmove.worker.messages import ToServer, ToWorker

Decoder = Callable[[bytes], object]


def _text(read: Callable[[str], object]) -> Decoder:
    return lambda data: read(data.decode("utf-8", "surrogatepass" if data[:1] == b"\0" else "replace"))


DECODERS: tuple[Decoder, ...] = (
    Manifest.from_bytes,
    Layout.from_bytes,
    msgspec.msgpack.Decoder(ToServer).decode,
    msgspec.msgpack.Decoder(ToWorker).decode,
    msgspec.msgpack.Decoder(ShmTicket).decode,
    _text(decode),
    _text(lambda text: host_is_known(text, (), loopback_only=True)),
    _text(lambda text: origin_is_own(text, "localhost")),
    _text(size_fits),
    unpack,
)
ANNOUNCED = (ManifestError, MessageError, TransportError, msgspec.DecodeError, UnicodeError)


def one(data: bytes) -> None:
    """Give one input to the decoder that its first byte names."""
    if not data:
        return
    try:
        DECODERS[data[0] % len(DECODERS)](data[1:])
    except ANNOUNCED:
        return


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz every decoder.")
    parser.add_argument("--seconds", type=int, default=60)
    told, rest = parser.parse_known_args()
    limits = [f"-max_total_time={told.seconds}", "-max_len=65536", "-rss_limit_mb=2048", "-timeout=10"]
    begun = time.monotonic()
    sys.stderr.write(f"{len(DECODERS)} decoders for {told.seconds} s\n")
    atheris.Setup([sys.argv[0], *limits, *rest], one)
    atheris.Fuzz()
    sys.stderr.write(f"ended after {time.monotonic() - begun:.0f} s\n")


if __name__ == "__main__":
    main()
