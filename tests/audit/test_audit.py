"""An audit finds what an engine's state lacks and names it; of a correct engine it says nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from worldmove.audit.audit import audit
from worldmove.audit.report import Report, Verdict
from worldmove.audit.workplace import Workplace
from worldmove.cli.audit import HEADER, cells_of
from worldmove.errors import WorldMoveError


@pytest.fixture(scope="module")
def workplace() -> Iterator[Workplace]:
    """One pair of processes for all audits here: each order is carried out in a fork, so none meets another's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with Workplace() as both:
            yield both


ROOT = Path(__file__).parents[2]


def audited(workplace: Workplace, engine: str, blocks: int = 20, *, drops_leaves: bool = False) -> Report:
    return audit(f"tests.audit.omissions:{engine}", workplace, before=7, blocks=blocks, drops_leaves=drops_leaves)


@pytest.mark.parametrize(
    ("engine", "path"),
    [
        ("Cache", "session.cache[3].k"),
        ("Index", "session.index"),
        ("Generator", "session.dice"),
        ("WaitingInputs", "session.late"),
        ("ModuleCounter", "tests.audit.counter_module.blocks"),
        ("Closure", "closure of f: seen"),
        ("ModuleGlobal", "tests.audit.omissions.SEEN"),
    ],
)
def test_what_is_forgotten_is_found_and_named_and_nothing_else_is(workplace: Workplace, engine: str, path: str) -> None:
    report = audited(workplace, engine, blocks=3)
    assert [row.path for row in report.missing] == [path]
    assert path in report.sentence()
    assert not report.is_exact
    assert not report.is_clean


def test_several_things_that_are_forgotten_are_all_named(workplace: Workplace) -> None:
    report = audited(workplace, "Several", blocks=3)
    assert sorted(row.path for row in report.missing) == [
        "default of remembering: memory",
        "engine._moods",
        "engine._tints",
        "session.salt",
        "tests.audit.omissions.ClassAttribute.total",
        "the process's generator: torch",
    ]


def test_the_first_block_that_differs_is_named_with_what_differs_there(workplace: Workplace) -> None:
    report = audited(workplace, "WaitingInputs", blocks=3)
    difference = report.differences["busy"]
    assert difference is not None
    assert (difference.block, difference.leaf, difference.frames) == (1, "caches[0].k", True)
    assert "block 1: frames, notes, caches[0].k" in report.sentence()


def test_what_remembers_is_missing_though_nothing_was_seen_of_it(workplace: Workplace) -> None:
    report = audited(workplace, "LateEffect")
    assert report.is_exact
    assert [row.path for row in report.missing] == ["engine.blocks"]


def test_a_place_that_is_allowed_is_not_held_against_an_engine(workplace: Workplace) -> None:
    name = "tests.audit.omissions:LateEffect"
    report = audit(name, workplace, before=7, blocks=3, drops_leaves=False, allowed=["engine.blocks"])
    assert report.is_clean
    assert report.places == ()


def test_what_comes_right_by_itself_is_no_alarm(workplace: Workplace) -> None:
    report = audited(workplace, "Suspicious")
    assert report.is_clean
    assert {row.path: row.verdict for row in report.places} == {
        "engine.scratch": Verdict.DERIVED,
        "engine.table": Verdict.DERIVED,
        "engine.last": Verdict.DERIVED,
        "engine.started_at": Verdict.STATIC,
        "tests.audit.omissions.squared": Verdict.DERIVED,
    }


def test_each_leaf_is_needed_derived_or_static(workplace: Workplace) -> None:
    report = audited(workplace, "Leaves", drops_leaves=True)
    verdicts = {row.path: row.verdict for row in report.rows}
    assert report.is_clean
    assert verdicts.pop("blocks_times_two") is Verdict.DERIVED
    assert verdicts.pop("seed") is Verdict.STATIC
    assert set(verdicts.values()) == {Verdict.NEEDED}
    why = {row.path: row.why for row in report.rows}
    assert why["statistics"] == "without it, only itself: still different at the end"
    assert "without it: " in why["refused_at_zero"]


def test_an_engine_that_is_not_deterministic_is_said_to_be_so(workplace: Workplace) -> None:
    report = audited(workplace, "Restless", blocks=2)
    assert report.repeats is False
    assert report.missing == ()
    assert "not deterministic" in report.sentence()


@pytest.mark.parametrize(
    ("engine", "code", "says"),
    [
        ("tests.audit.omissions:Refused", "state_refused", "late cannot be carried: set is not a kind of leaf"),
        ("tests.audit.omissions:Broken", "engine_failed", "The engine could not step block 3: ZeroDivisionError"),
        ("tests.audit.omissions:Dies", "crashed", "ended with status 7"),
        ("tests.audit.omissions:needs_more", "usage", "cannot be made without preset, num_threads"),
        ("tests.audit.omissions:raises", "usage", "making the engine raised KeyError: 'weights'"),
        ("tests.audit.omissions:no_engine", "usage", "is no engine: object has no spec, state_types"),
        ("tests.audit.omissions:nothing", "usage", "tests.audit.omissions has no nothing"),
        ("tests.audit.nowhere:engine", "usage", "there is no module tests.audit.nowhere"),
        ("tests.audit.needy:engine", "usage", "tests.audit.needy needs a_module_that_is_not_there"),
        ("omissions", "usage", "write package.module:attribute"),
        ("a b:c", "usage", "write package.module:attribute"),
    ],
)
def test_whatever_is_wrong_with_an_engine_is_one_sentence(
    workplace: Workplace, engine: str, code: str, says: str
) -> None:
    with pytest.raises(WorldMoveError) as raised:
        audit(engine, workplace, before=4, blocks=1)
    assert says in str(raised.value)
    assert raised.value.code == code
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "name", ["tests.audit.omissions:correct", "python:tests.audit.omissions:threaded", "reference:tiny"]
)
def test_an_engine_is_named_as_itself_as_a_factory_or_as_serve_names_it(workplace: Workplace, name: str) -> None:
    report = audit(name, workplace, before=7, blocks=1, drops_leaves=False)
    assert report.is_exact
    assert report.missing == ()


def test_the_tiny_world_gives_no_alarm(workplace: Workplace) -> None:
    report = audit("worldmove.engine.reference:tiny", workplace, before=7)
    assert report.is_clean
    assert report.places == ()
    assert {row.verdict for row in report.rows} == {Verdict.NEEDED}
    assert report.sentence() == (
        "worldmove.engine.reference:tiny went on exactly in a fresh process over 20 blocks from each of 2 boundaries, "
        "and nothing is missing."
    )


@pytest.mark.parametrize("name", ["engine", "forgetful"])
def test_the_document_shows_what_is_printed_of_the_example(workplace: Workplace, name: str) -> None:
    report = audit(f"examples.walker:{name}", workplace)
    shown = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8").partition(f"audit walker:{name}\n")[2]
    header, *rows = shown.partition("\nwalker:")[0].splitlines()
    told = [" ".join(str(cell) for cell in cells_of(row)) for row in (*report.missing, *report.rows)]
    assert tuple(header.split()) == HEADER
    assert [" ".join(row.split()) for row in rows] == told
    assert report.sentence().removeprefix("examples.") in shown
