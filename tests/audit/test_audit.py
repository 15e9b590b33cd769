"""An audit finds what an engine's state lacks and names it; of a correct engine it says nothing."""

import pytest

from tests.own_path import ROOT
from worldmove.audit.audit import audit
from worldmove.audit.report import Report, Verdict
from worldmove.audit.workplace import Workplace
from worldmove.cli.audit import HEADER, cells_of
from worldmove.errors import UserError, WorldMoveError

BEFORE = 7
BLOCKS = 3


def audited(workplace: Workplace, engine: str, blocks: int = BLOCKS, *, allowed: tuple[str, ...] = ()) -> Report:
    name = f"tests.audit.omissions:{engine}"
    return audit(name, workplace, before=BEFORE, blocks=blocks, drops_leaves=False, allowed=allowed)


@pytest.fixture(scope="module")
def forgotten(workplace: Workplace) -> Report:
    return audited(workplace, "EveryOmission")


@pytest.fixture(scope="module")
def suspicious(workplace: Workplace) -> Report:
    return audited(workplace, "LateEffect", allowed=("engine.statistics",))


OMISSIONS = (
    "session.cache[3].k",
    "session.index",
    "session.dice",
    "session.late",
    "tests.audit.counter_module.blocks",
    "closure of f: seen",
    "tests.audit.omissions.SEEN",
    "the process's generator: torch",
    "tests.audit.omissions.ClassAttribute.total",
    "engine._moods",
    "default of remembering: memory",
    "engine._tints",
    "session.salt",
)


@pytest.mark.parametrize("path", OMISSIONS)
def test_what_is_forgotten_is_found_and_named(forgotten: Report, path: str) -> None:
    assert path in [row.path for row in forgotten.missing]


def test_nothing_is_named_that_was_not_forgotten(forgotten: Report) -> None:
    assert {row.path for row in forgotten.places} == set(OMISSIONS)
    assert "not in its state: " in forgotten.sentence()
    assert f"and {len(OMISSIONS) - 5} more" in forgotten.sentence()
    assert not forgotten.is_exact
    assert not forgotten.is_clean


def test_the_first_block_that_differs_is_named_with_what_differs_there(forgotten: Report) -> None:
    difference = forgotten.differences["busy"]
    assert difference is not None
    assert (difference.block, difference.leaf, difference.frames) == (1, "caches[0].k", True)
    assert "block 1: frames, notes, caches[0].k" in forgotten.sentence()


def test_what_remembers_is_missing_though_nothing_was_seen_of_it(suspicious: Report) -> None:
    assert suspicious.is_exact
    assert [row.path for row in suspicious.missing] == ["engine.blocks"]
    assert suspicious.sentence().endswith("; not in its state: engine.blocks.")


def test_what_comes_right_by_itself_or_is_allowed_is_no_alarm(suspicious: Report) -> None:
    assert {row.path: row.verdict for row in suspicious.places if row not in suspicious.missing} == {
        "engine.scratch": Verdict.DERIVED,
        "engine.table": Verdict.DERIVED,
        "engine.last": Verdict.DERIVED,
        "engine.started_at": Verdict.STATIC,
        "tests.audit.omissions.squared": Verdict.DERIVED,
    }


def test_each_leaf_is_needed_derived_or_static(workplace: Workplace) -> None:
    report = audit("tests.audit.omissions:Leaves", workplace, before=BEFORE, blocks=BLOCKS)
    verdicts = {row.path: row.verdict for row in report.rows}
    assert report.is_clean
    assert report.sentence() == (
        "tests.audit.omissions:Leaves went on exactly, 3 blocks from a busy boundary and 2 blocks from a calm "
        "boundary; nothing is missing."
    )
    assert verdicts.pop("blocks_times_two") is Verdict.DERIVED
    assert verdicts.pop("seed") is Verdict.STATIC
    assert set(verdicts.values()) == {Verdict.NEEDED}
    why = {row.path: row.why for row in report.rows}
    assert why["statistics"] == "without it, only itself, to the end"
    assert "without it: " in why["refused_at_zero"]


def test_an_engine_that_is_not_deterministic_is_said_to_be_so(workplace: Workplace) -> None:
    report = audit("tests.audit.omissions:Restless", workplace, before=1, blocks=1, drops_leaves=False)
    assert report.repeats is False
    assert report.missing == ()
    assert "not deterministic" in report.sentence()


@pytest.mark.parametrize(
    ("engine", "code", "says"),
    [
        ("Refused", "state_refused", "late cannot be carried: set is not a kind of leaf"),
        ("Broken", "engine_failed", "The engine could not step block 3: ZeroDivisionError"),
        ("Exits", "engine_failed", "The engine could not step block 3: SystemExit: no more frames"),
        ("ExitsWhenMade", "usage", "making the engine raised SystemExit: 0"),
        ("Interrupts", "interrupted", "It was interrupted"),
        ("Dies", "crashed", "ended with status 7"),
        ("DiesWithSuccess", "crashed", "ended with status 0"),
        ("nothing", "usage", "tests.audit.omissions has no nothing"),
    ],
)
def test_whatever_is_wrong_with_an_engine_is_one_sentence(
    workplace: Workplace, engine: str, code: str, says: str
) -> None:
    with pytest.raises(WorldMoveError) as raised:
        audited(workplace, engine, blocks=1)
    assert says in str(raised.value)
    assert raised.value.code == code
    assert "\n" not in str(raised.value)


STRAY, SECOND = "release of a key that is not down", "press of a key that is down"
LIFE = "release of every key under one number, as a restarted server says it"


@pytest.mark.parametrize(
    ("engine", "name", "why"),
    [
        ("NoStrayRelease", STRAY, "could not step block 0: ValueError"),
        ("NoStrayRelease", LIFE, "ValueError"),
        ("NoSecondPress", SECOND, "KeyError"),
        ("NoEmptyBeginning", "empty list", "could not step block 0: ValueError"),
        ("FewFingers", "list with every key at once", "IndexError"),
        ("NoTap", "press and release of a key in one list", "NotImplementedError"),
        ("ShortLists", "list of 64 changes", "ended with status 3"),
        ("RisingNumbers", LIFE, "IndexError"),
        ("SmallNumbers", LIFE, "could not step block"),
        ("UncarriedWhenFull", "list with every key at once", "set is not a kind of leaf"),
    ],
)
def test_what_an_engine_does_not_take_is_tried_and_said(workplace: Workplace, engine: str, name: str, why: str) -> None:
    report = audit(f"tests.audit.omissions:{engine}", workplace, before=1, blocks=1, drops_leaves=False)
    refused = {row.path: row.why for row in report.refused}
    assert why in refused[name]
    assert report.is_exact
    assert not report.missing
    assert not report.is_clean
    assert f"; it takes no {name}" in report.sentence()


def test_an_engine_that_takes_every_list_is_refused_nothing(workplace: Workplace) -> None:
    report = audit("tests.audit.omissions:Careful", workplace, before=1, blocks=1, drops_leaves=False)
    assert report.is_clean, report.sentence()


def overdue(workplace: Workplace, engine: str, limit_s: int) -> str:
    """Audit an engine that hangs, and return what is said of it."""
    name = f"tests.audit.omissions:{engine}"
    with pytest.raises(UserError) as raised:
        audit(name, workplace, before=1, blocks=1, limit_s=limit_s, drops_leaves=False)
    assert raised.value.code == "overdue"
    return str(raised.value)


def test_an_engine_that_hangs_ends_the_audit(workplace: Workplace) -> None:
    assert "was not through its blocks from the beginning within 1 s" in overdue(workplace, "Hangs", 1)


def test_an_engine_that_hangs_when_it_is_restored_ends_the_audit(workplace: Workplace) -> None:
    """Its beginning does not hang, and is through within some limit, however slow the machine is."""
    limit_s, said = 1, "from the beginning"
    while "from the beginning" in said and limit_s < 60:
        limit_s *= 2
        said = overdue(workplace, "HangsRestored", limit_s)
    assert f"was not through its blocks from what was restored within {limit_s} s" in said


def test_the_matrix_engine_has_all_of_its_state_in_its_state(workplace: Workplace) -> None:
    report = audit("reference:matrix-tiny", workplace, before=3, blocks=2, drops_leaves=False)
    assert report.is_clean, report.sentence()
    assert report.missing == ()


@pytest.mark.parametrize("name", ["engine", "forgetful"])
def test_the_document_shows_what_is_printed_of_the_example(workplace: Workplace, name: str) -> None:
    report = audit(f"examples.walker:{name}", workplace)
    shown = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8").partition(f"audit walker:{name}\n")[2]
    header, *rows = shown.partition("\nwalker:")[0].splitlines()
    told = [" ".join(str(cell) for cell in cells_of(row)) for row in (*report.missing, *report.rows)]
    assert tuple(header.split()) == HEADER
    assert [" ".join(row.split()) for row in rows] == told
    assert report.sentence().removeprefix("examples.") in shown
