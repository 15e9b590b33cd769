"""Fuzz one decoder, guided by coverage, in this process: ``python -m bench.fuzz_one NAME [libFuzzer's options]``.

Atheris watches which lines of WorldMove a byte string reaches, and keeps those that reach new ones. What raises
anything beside the announced errors, takes more than 10 s or 2 GiB, ends the process with a traceback.
"""

import sys

import atheris

with atheris.instrument_imports(include=["worldmove"]):
    from bench.fuzz_decoders import ANNOUNCED, DECODERS

LIMITS = ("-max_len=65536", "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1")


def main() -> None:
    name, *options = sys.argv[1:]
    read = DECODERS[name]

    def one(data: bytes) -> None:
        try:
            read(data)
        except ANNOUNCED:
            return

    atheris.Setup([sys.argv[0], *LIMITS, *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
