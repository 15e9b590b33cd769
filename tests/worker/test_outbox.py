"""The blocks that nobody has acknowledged."""

import asyncio

import msgspec

from worldmove.worker.messages import BlockDone
from worldmove.worker.outbox import MAX_LEFT_BYTES, Outbox


def done(block: int, epoch: int = 1) -> BlockDone:
    return BlockDone(session="s-1", epoch=epoch, block=block, frames=b"", frame_sha256=(), notes=(), compute_s=0.0)


def test_what_is_not_acknowledged_is_sent_again_in_order_in_the_name_of_the_new_epoch() -> None:
    sent: list[BlockDone] = []
    outbox = Outbox(sent.append)
    for block in range(4):
        outbox.send(done(block))
    outbox.acknowledge(1)
    sent.clear()
    outbox.send_again(7)
    assert [(message.block, message.epoch) for message in sent] == [(2, 7), (3, 7)]
    outbox.acknowledge(3)
    sent.clear()
    outbox.send_again(8)
    assert sent == []


def test_the_newest_blocks_that_have_left_are_kept_for_a_client_that_may_lack_them() -> None:
    outbox = Outbox(lambda message: None)
    for block in range(20):
        outbox.send(done(block))
    outbox.acknowledge(17)
    assert [message.block for message in outbox.left] == list(range(10, 18))
    assert outbox.first_kept(20) == 18


def test_large_blocks_are_kept_one_by_one() -> None:
    outbox = Outbox(lambda message: None)
    for block in range(3):
        outbox.send(msgspec.structs.replace(done(block), frames=bytes(MAX_LEFT_BYTES)))
        outbox.acknowledge(block)
    assert [message.block for message in outbox.left] == [2]


def test_a_takeover_sends_only_what_is_still_to_be_shown() -> None:
    sent: list[BlockDone] = []
    outbox = Outbox(sent.append)
    for block in (4, 5, 6):
        outbox.put(done(block))
    outbox.send_again(3, 5)
    assert [message.block for message in sent] == [5, 6]
    assert outbox.first_kept(7) == 5


def test_waiting_for_acknowledgements_ends_with_the_last_one_before_the_block() -> None:
    async def play() -> bool:
        outbox = Outbox(lambda message: None)
        for block in (0, 1, 2):
            outbox.send(done(block))
        waiting = asyncio.create_task(outbox.acknowledged(2))
        await asyncio.sleep(0)
        outbox.acknowledge(0)
        await asyncio.sleep(0)
        early = waiting.done()
        outbox.acknowledge(1)
        await asyncio.wait_for(waiting, 1)
        await asyncio.wait_for(outbox.acknowledged(2), 1)
        return early

    assert asyncio.run(play()) is False


def test_a_promised_block_counts_as_sent_and_not_acknowledged_until_it_is_sent() -> None:
    sent: list[BlockDone] = []
    outbox = Outbox(sent.append)
    outbox.promise(4)
    assert outbox.first_kept(5) == 4
    outbox.send_again(2)
    assert sent == []
    outbox.fulfil(done(4))
    assert (outbox.first_kept(5), [message.block for message in sent]) == (4, [4])


def test_a_promise_that_was_overtaken_is_not_kept() -> None:
    """Another owner has shown that block, or the copy goes on from a later one."""
    sent: list[BlockDone] = []
    outbox = Outbox(sent.append)
    for block in (4, 5, 6):
        outbox.promise(block)
    outbox.acknowledge(4)
    outbox.send_again(2, 6)
    for block in (4, 5, 6):
        outbox.fulfil(done(block))
    assert [message.block for message in sent] == [6]
