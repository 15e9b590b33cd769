"""What a command line may name: an engine, what makes one, or what ``serve`` calls it; all else is one sentence."""

import pytest

from worldmove.audit.names import find_engine
from worldmove.errors import UserError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tests.audit.omissions:correct", "Engine"),
        ("tests.audit.omissions:Index", "Index"),
        ("python:tests.audit.omissions:threaded", "Engine"),
        ("reference:tiny", "ReferenceEngine"),
        ("reference:matrix-tiny", "MatrixEngine"),
    ],
)
def test_an_engine_is_named_as_itself_as_what_makes_it_or_as_serve_names_it(name: str, kind: str) -> None:
    assert type(find_engine(name)).__name__ == kind


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tests.audit.omissions:needs_more", "cannot be made without preset, num_threads"),
        ("tests.audit.omissions:raises", "making the engine raised KeyError: 'weights'"),
        ("tests.audit.omissions:no_engine", "is no engine: object has no spec, state_types"),
        ("tests.audit.omissions:nothing", "tests.audit.omissions has no nothing"),
        ("tests.audit.nowhere:engine", "there is no module tests.audit.nowhere"),
        ("tests.audit.needy:engine", "tests.audit.needy needs a_module_that_is_not_there"),
        ("omissions", "write package.module:attribute"),
        ("a b:c", "write package.module:attribute"),
    ],
)
def test_a_name_without_an_engine_is_one_sentence(name: str, says: str) -> None:
    with pytest.raises(UserError) as raised:
        find_engine(name)
    assert says in str(raised.value)
    assert raised.value.code == "usage"
    assert "\n" not in str(raised.value)
