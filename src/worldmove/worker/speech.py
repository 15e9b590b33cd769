"""A digest of every message between workers and servers: equal where each understands the other."""

import hashlib

import msgspec

from worldmove.worker.messages import ToServer, ToWorker


def speech() -> str:
    """Return SHA-256 of the schemas of both directions: any field that differs makes another one."""
    schemas = [msgspec.json.schema(ToServer), msgspec.json.schema(ToWorker)]
    return hashlib.sha256(msgspec.json.encode(schemas, order="deterministic")).hexdigest()
