"""What proves that a client has a block, and what proves nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldmove.serve.receipts import KEY_BYTES, RECEIPT_BYTES, Receipts, claim_of

HERE = Receipts(bytes(range(KEY_BYTES)))
ELSEWHERE = Receipts(bytes(KEY_BYTES))
BLOCKS = st.integers(0, 2**53 - 1)


@given(st.text(max_size=30), BLOCKS)
def test_what_was_given_is_known_again(session: str, block: int) -> None:
    receipt = HERE.of(session, block)
    assert len(receipt) == RECEIPT_BYTES
    assert HERE.proven(session, claim_of(block, receipt)) == block


@given(BLOCKS, BLOCKS)
def test_a_receipt_is_of_one_block_of_one_session_of_one_folder(block: int, other: int) -> None:
    receipt = HERE.of("s-1", block)
    if other != block:
        assert HERE.proven("s-1", claim_of(other, receipt)) is None
    assert HERE.proven("s-2", claim_of(block, receipt)) is None
    assert ELSEWHERE.proven("s-1", claim_of(block, receipt)) is None


@pytest.mark.parametrize(
    ("timeline", "block", "forks", "counts"),
    [
        (0, 9, (), True),
        (0, 9, (10,), True),
        (0, 10, (10,), False),
        (1, 10, (10,), True),
        (1, 30, (10, 30), False),
        (0, 12, (20, 12), False),  # the second fork lies before the first
        (1, 11, (20, 12), True),
        (2, 99, (20, 12), True),
        (3, 5, (20, 12), False),
    ],
)
def test_a_receipt_counts_up_to_where_its_timeline_was_left(
    timeline: int, block: int, forks: tuple[int, ...], counts: bool
) -> None:
    claim = claim_of(block, HERE.of("s-1", block, timeline))
    assert HERE.proven("s-1", claim, forks) == (block if counts else None)


@given(st.integers(0, 8 * RECEIPT_BYTES - 1))
def test_no_bit_of_a_receipt_may_differ(bit: int) -> None:
    receipt = (int.from_bytes(HERE.of("s-1", 5), "big") ^ 1 << bit).to_bytes(RECEIPT_BYTES, "big")
    assert HERE.proven("s-1", claim_of(5, receipt)) is None


SIXTEEN = 16 * "0"
WORDS = (None, "", "5", "5-", "-5-" + SIXTEEN, "5-0011", "5-001122334455667G", "\u0665-" + SIXTEEN, f"5-{SIXTEEN}\n")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_without_a_receipt_is_none(word: str | None) -> None:
    assert HERE.proven("s-1", word) is None


@given(st.text(max_size=40))
def test_no_word_breaks_the_reader(word: str) -> None:
    assert HERE.proven("s-1", word) is None


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="a key of 3 bytes"):
        Receipts(b"key")
