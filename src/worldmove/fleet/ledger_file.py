"""The ledger's file: opened, and begun where there is none; checked, before anybody plays, to be one, and whole."""

import sqlite3
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DatabaseError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from worldmove.errors import LedgerError
from worldmove.fleet.ledger_faults import as_ledger_error, name_of
from worldmove.fleet.ledger_place import no_file
from worldmove.fleet.ledger_tables import METADATA

SCHEMA_VERSION = 2
"""Kept in the file as ``PRAGMA user_version``. Version 1 had no notes, and kept its number in a table."""
APPLICATION_ID = 0x574D4C47
"""``PRAGMA application_id``, "WMLG": tells a ledger from any other database."""


class Durability(Enum):
    """What an answered operation survives."""

    NORMAL = "NORMAL"
    """The end of every process; not a power cut. For workers on the ledger's own host: a cut takes them too."""
    FULL = "FULL"
    """A power cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerConfig:
    """Where the ledger is kept, and how."""

    path: Path | None = None
    """A file; None keeps it in memory, for tests."""
    durability: Durability = Durability.FULL
    busy_s: float = 2.0
    """How long opening it waits for another process's transaction."""
    patience_s: float = 0.005
    """The same for each later operation: the event loop stands still for as long, and with it every world."""
    autocheckpoint_pages: int = 10_000
    """A checkpoint falls into some transaction and takes milliseconds; ``checkpoint`` is called between moves."""


def open_file(config: LedgerConfig) -> sql.Engine:
    """Open and check a ledger's file, or begin one. Raises LedgerError with one sentence that says why not."""
    where = name_of(config.path)
    url = sql.URL.create("sqlite", database=str(config.path) if config.path else None)
    engine = sql.create_engine(url, poolclass=StaticPool, connect_args={"timeout": config.busy_s})
    sql.event.listen(engine, "connect", lambda connection, _: _set_up(connection, config))
    sql.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        if config.path:
            config.path.touch(mode=0o600)
            _require_files(config.path)
        with engine.begin() as connection:
            _check_schema(connection, where)
            _check_pages(connection, where)
        pragma(engine, "journal_mode=WAL")  # only now: it would change a file that is not ours
        pragma(engine, f"busy_timeout={round(config.patience_s * 1000)}")
    except OSError as error:
        raise LedgerError(f"{where} cannot be opened: {error.strerror}. Use another --state folder.") from error
    except SQLAlchemyError as error:
        engine.dispose()
        raise as_ledger_error(error, config.path) from error
    except LedgerError:
        engine.dispose()
        raise
    return engine


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def pragma(engine: sql.Engine, text: str) -> None:
    """Run a pragma outside of any transaction."""
    connection = engine.raw_connection()
    try:
        connection.cursor().execute(f"PRAGMA {text}")
    except sqlite3.DatabaseError as error:
        raise DatabaseError(text, None, error) from error
    finally:
        connection.close()


def _set_up(connection: Any, config: LedgerConfig) -> None:
    connection.isolation_level = None  # the driver begins no transaction of its own
    connection.execute(f"PRAGMA synchronous={config.durability.value}")
    connection.execute(f"PRAGMA wal_autocheckpoint={config.autocheckpoint_pages}")


def _require_files(path: Path) -> None:
    """Raise LedgerError where something else lies there: SQLite would say little, or lose what is written."""
    found = no_file(path)
    if found is not None:
        raise LedgerError(found)


def _check_schema(connection: sql.Connection, where: str) -> None:
    tables = sql.inspect(connection).get_table_names()
    application, version = (_number(connection, name) for name in ("application_id", "user_version"))
    if not tables and not application:
        METADATA.create_all(connection)
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version={SCHEMA_VERSION}")
        return
    first = "worldmove_schema" in tables  # version 1, which had no application id
    if application != APPLICATION_ID and not first:
        raise LedgerError(f"{where} is a database, but not a ledger of WorldMove's: use another --state folder.")
    if version != SCHEMA_VERSION:
        age, found = ("an older", 1) if first else ("an older" if version < SCHEMA_VERSION else "a newer", version)
        raise LedgerError(
            f"{where} was written by {age} WorldMove (version {found}, this one has {SCHEMA_VERSION}): "
            "use that one, or use another --state folder."
        )


def _check_pages(connection: sql.Connection, where: str) -> None:
    """Read every page once: damage is to be said before anybody plays, not in the middle of a move."""
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if found != "ok":
        raise LedgerError(f"{where} is damaged, or no ledger: use another --state folder.")


def _number(connection: sql.Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
