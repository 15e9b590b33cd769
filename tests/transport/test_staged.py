"""The path through pinned host memory: what becomes of its ring, and of either end when the other lies or goes."""

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport import exporter
from tests.transport.conformance import POISON, SIZE, extent, target
from tests.transport.conftest import OtherProcess
from tests.transport.exporter import pattern, staged_config
from tests.transport.on_device import OnDevice
from tests.transport.test_transports import Tokens
from worldmove.errors import TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.state.kit_double import DoubleKit
from worldmove.state.memory import Part, Piece
from worldmove.transport.ring import OwnRing, RingShape, loads, opened_ring
from worldmove.transport.staged import Staged, StagedTicket
from worldmove.transport.staged_line import FAILED
from worldmove.transport.staged_serving import StagedConfig, Welcome
from worldmove.transport.tcp_words import number, requests
from worldmove.worker.threads import OneThread

SHAPE = RingShape(4096, 3)
WHOLE = [extent(0, SIZE)]


class CountingKit(DoubleKit):
    """Counts what is pinned, and pins nothing if it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.num_pinned = self.pins = 0
        self.on_unpinned: Callable[[], object] = lambda: None
        self.refuses = False

    def pin(self, part: Part) -> Callable[[], None]:
        if self.refuses:
            raise TransportError("cuMemHostRegister: CUDA_ERROR_OUT_OF_MEMORY")
        self.num_pinned += 1
        self.pins += 1

        def release() -> None:
            self.num_pinned -= 1
            self.on_unpinned()

        return release


@asynccontextmanager
async def staged(path: Path, kit: DoubleKit | None = None, **changes: float) -> AsyncIterator[Staged]:
    config = StagedConfig(path=path, shape=SHAPE, **changes)  # type: ignore[arg-type]
    made = Staged(config=config, kit=kit or DoubleKit(), new_thread=OneThread, tokens=Tokens(7 << 40))
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def slot(kit: DoubleKit) -> DeviceArena:
    arena = DeviceArena(SIZE, "source", kit)
    exporter.write(arena, 0, pattern(SIZE))
    return arena


def story_of(story: Callable[[], object]) -> None:
    before = threading.active_count()
    asyncio.run(story())  # type: ignore[arg-type]
    assert threading.active_count() == before


# Loads.

runs_of_a_slot = st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 20_000)), max_size=20)


@given(runs_of_a_slot, st.sampled_from([4096, 8192, 1 << 16]))
@settings(deadline=None)
def test_loads_carry_every_byte_once_in_order_inside_their_buffers_and_at_places_with_the_same_remainder(
    gaps_and_lengths: list[tuple[int, int]], buffer_bytes: int
) -> None:
    runs, end = [], 0
    for gap, length in gaps_and_lengths:
        runs.append(extent(end + gap, length))
        end += gap + length
    carried: list[Extent] = []
    for load in loads(runs, buffer_bytes):
        last = 0
        for place, run in load:
            assert last <= place
            assert (place - run.offset) % 256 == 0
            last = place + run.length
            assert last <= buffer_bytes
            carried.append(run)
    joined: list[list[int]] = []
    for run in carried:
        if joined and joined[-1][1] == run.offset:
            joined[-1][1] = run.end
        else:
            joined.append([run.offset, run.end])
    assert joined == [[run.offset, run.end] for run in runs]


# The ring.


def test_a_ring_lies_ready_for_the_next_move_of_the_same_two_and_everything_is_given_back_in_the_end(
    tmp_path: Path, other_process_by_ring: OtherProcess
) -> None:
    kit = CountingKit()

    async def story() -> None:
        async with staged(tmp_path / "own", kit) as path:
            for _ in range(3):
                channel = await OnDevice(path).connect(bytes.fromhex(other_process_by_ring.ask("export")))
                into = target()
                await channel.pull(WHOLE, into.buffer)
                assert bytes(into.buffer[2000:]) == pattern(SIZE)[2000:]
                await channel.close()
                await asyncio.sleep(0.2)  # until the source has noticed: else it lends another ring
        assert (kit.pins, kit.num_pinned) == (1, 0)

    story_of(story)


def test_as_many_rings_are_kept_as_were_agreed_on(tmp_path: Path, other_process_by_ring: OtherProcess) -> None:
    kit = CountingKit()

    async def story() -> None:
        async with staged(tmp_path / "own", kit, rings_kept=1) as path:
            ticket = bytes.fromhex(other_process_by_ring.ask("export"))
            channels = [await path.connect(ticket) for _ in range(3)]
            assert kit.num_pinned == 3
            for channel in channels:
                await channel.close()
            assert kit.num_pinned == 1

    story_of(story)


def test_a_ring_within_one_process_is_given_back_at_once(tmp_path: Path) -> None:
    kit = CountingKit()

    async def story() -> None:
        async with staged(tmp_path / "own", kit, rings_kept=0) as path:
            channel = await path.connect(await path.export_device(slot(kit)))
            assert kit.num_pinned == 2
            loop, unpinned = asyncio.get_running_loop(), asyncio.Semaphore(0)
            kit.on_unpinned = lambda: loop.call_soon_threadsafe(unpinned.release)
            await channel.close()
            for _ in range(2):
                await asyncio.wait_for(unpinned.acquire(), 5)
            assert kit.num_pinned == 0

    story_of(story)


def test_a_ring_of_another_size_or_one_that_could_shrink_is_not_mapped() -> None:
    larger = OwnRing(identity=bytes(16), shape=RingShape(8192, 3), kit=DoubleKit())
    unsealed = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(unsealed, SHAPE.num_bytes)
    for descriptor in (os.dup(larger.descriptor), unsealed):
        with pytest.raises(TransportError, match="bytes that stay"):
            opened_ring(bytes(16), SHAPE, descriptor, DoubleKit())
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    larger.release()


@pytest.mark.parametrize("end", ["source", "destination"])
def test_memory_that_cannot_be_pinned_is_one_refused_connection_and_no_more(tmp_path: Path, end: str) -> None:
    kits = {"source": CountingKit(), "destination": CountingKit()}

    async def story() -> None:
        async with staged(tmp_path / "s", kits["source"]) as there, staged(tmp_path / "d", kits["destination"]) as here:
            ticket = await there.export_device(slot(kits["source"]))
            kits[end].refuses = True
            with pytest.raises(TransportError):
                await here.connect(ticket)
            kits[end].refuses = False
            channel = await OnDevice(here).connect(ticket)
            into = target()
            await channel.pull(WHOLE, into.buffer)
            assert bytes(into.buffer) == pattern(SIZE)
            await channel.close()
        assert [kit.num_pinned for kit in kits.values()] == [0, 0]

    story_of(story)


# Copies that take their time, as a device's do.


class LateCopy:
    """A copy that happens some time after it was begun."""

    def __init__(self, running: Future[object]) -> None:
        self._running = running

    def is_done(self) -> bool:
        return self._running.done()

    def wait(self) -> None:
        self._running.result()


class LateKit(CountingKit):
    """Copies in order, on a stream for each way, and each a little later than it is begun."""

    def __init__(self) -> None:
        super().__init__()
        self._streams = [ThreadPoolExecutor(1) for _ in range(2)]
        self._lock = threading.Lock()
        self.num_under_way_at_an_end = 0
        self._under_way: list[LateCopy] = []

    def pin(self, part: Part) -> Callable[[], None]:
        unpin = super().pin(part)

        def release() -> None:
            self.num_under_way_at_an_end += sum(not copy.is_done() for copy in self._under_way)
            unpin()

        return release

    def start_copy_out(self, pieces: Sequence[Piece]) -> LateCopy:  # type: ignore[override]
        return self._late(0, pieces)

    def start_copy_in(self, pieces: Sequence[Piece]) -> LateCopy:  # type: ignore[override]
        return self._late(1, pieces)

    def _late(self, stream: int, pieces: Sequence[Piece]) -> LateCopy:
        def copy() -> object:
            time.sleep(0.002)
            return self.start_copy(pieces)

        begun = LateCopy(self._streams[stream].submit(copy))
        with self._lock:  # both ends' threads come here
            self._under_way = [*(other for other in self._under_way if not other.is_done()), begun]
        return begun

    def close(self) -> None:
        for stream in self._streams:
            stream.shutdown()


@pytest.fixture
def late() -> Iterator[LateKit]:
    kit = LateKit()
    yield kit
    kit.close()


async def late_pull(path: Staged, kit: LateKit, ticket: bytes, into: memoryview) -> None:
    """Pull everything through a window whose copies are late."""
    address = int(np.frombuffer(into, dtype=np.uint8).ctypes.data)
    window, channel = DeviceWindow(kit, Part(address, into.nbytes)), await path.connect(ticket)
    try:
        await channel.pull_to_device(WHOLE, window)
    finally:
        window.close()  # which raises, where a copy is still under way
        await channel.close()


def test_no_buffer_is_told_of_or_given_back_before_its_copy_has_ended(tmp_path: Path, late: LateKit) -> None:
    async def story() -> None:
        async with staged(tmp_path / "s", late) as path:
            into = target()
            await late_pull(path, late, await path.export_device(slot(late)), into.buffer)
            assert bytes(into.buffer) == pattern(SIZE)

    asyncio.run(story())
    assert late.num_under_way_at_an_end == 0


def test_an_end_that_gives_up_waits_for_the_copies_that_it_has_begun(tmp_path: Path, late: LateKit) -> None:
    async def story() -> None:
        wrong = answers(number(0), number(1), number(7))
        async with fake_source(tmp_path / "s", wrong) as ticket, staged(tmp_path / "d", late) as here:
            with pytest.raises(TransportError, match="should speak of load 2"):
                await late_pull(here, late, ticket, target().buffer)
        async with staged(tmp_path / "s", late, rings_kept=0) as there:
            ticket, loop = await there.export_device(slot(late)), asyncio.get_running_loop()
            wanted = msgspec.msgpack.decode(ticket, type=StagedTicket)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
                asker.settimeout(0)
                await loop.sock_connect(asker, wanted.path)
                await loop.sock_sendall(asker, wanted.token)
                assert await loop.sock_recv(asker, 256)
                await loop.sock_sendall(asker, WHOLE_REQUEST)
                assert await loop.sock_recv(asker, 8) == number(0)
                await loop.sock_sendall(asker, b"nonsense")

    asyncio.run(story())
    assert late.pins > 1
    assert (late.num_pinned, late.num_under_way_at_an_end) == (0, 0)


# Ends that go.


def test_a_source_killed_in_the_middle_of_a_pull_is_heard_of_at_once_and_nothing_is_written_after(
    tmp_path: Path,
) -> None:
    other = OtherProcess("staged", str(tmp_path / "source.ring"))

    async def story() -> None:
        async with staged(tmp_path / "own", stall_s=30.0) as path:
            channel = await OnDevice(path).connect(bytes.fromhex(other.ask("export")))
            into = target()
            pull = asyncio.create_task(channel.pull(WHOLE * 4000, into.buffer))
            await asyncio.sleep(0.05)
            assert not pull.done()
            os.kill(other.pid, signal.SIGKILL)
            begin = time.perf_counter()
            with pytest.raises(TransportError):
                await pull
            assert time.perf_counter() - begin < 5
            into.buffer[:] = bytes([POISON]) * into.size
            await asyncio.sleep(0.02)
            assert set(bytes(into.buffer)) == {POISON}
            with pytest.raises(TransportError, match="closed"):
                await channel.pull(WHOLE, into.buffer)
            await channel.close()

    try:
        story_of(story)
    finally:
        other.kill()


def test_a_destination_that_goes_in_the_middle_of_a_pull_leaves_the_source_serving_others(tmp_path: Path) -> None:
    kit = CountingKit()

    async def story() -> None:
        async with staged(tmp_path / "s", kit, rings_kept=0) as there, staged(tmp_path / "d") as here:
            ticket = await there.export_device(slot(kit))
            channel = await OnDevice(here).connect(ticket)
            pull = asyncio.create_task(channel.pull(WHOLE * 4000, target().buffer))
            await asyncio.sleep(0.02)
            pull.cancel()
            await asyncio.gather(pull, return_exceptions=True)
            await channel.close()
            channel, into = await OnDevice(here).connect(ticket), target()
            await channel.pull(WHOLE, into.buffer)
            assert bytes(into.buffer) == pattern(SIZE)
            await channel.close()
        assert kit.num_pinned == 0

    story_of(story)


def test_a_pull_from_a_source_that_has_fallen_silent_ends_by_itself_and_a_cancelled_one_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with fake_source(tmp_path / "s", silent) as ticket, staged(tmp_path / "d", stall_s=0.1) as here:
            channel = await OnDevice(here).connect(ticket)
            with pytest.raises(TransportError, match=r"said nothing for 0.1 s"):
                await channel.pull(WHOLE, target().buffer)
            await channel.close()
        async with fake_source(tmp_path / "s", silent) as ticket, staged(tmp_path / "d", stall_s=60.0) as here:
            channel = await OnDevice(here).connect(ticket)
            pull = asyncio.create_task(channel.pull(WHOLE, target().buffer))
            await asyncio.sleep(0.02)
            pull.cancel()
            begin = time.perf_counter()
            await asyncio.gather(pull, return_exceptions=True)
            assert time.perf_counter() - begin < 5
            await channel.close()

    story_of(story)


# Ends that lie.

Script = Callable[[socket.socket], object]


@asynccontextmanager
async def fake_source(path: Path, script: Script, welcome: bytes | None = None) -> AsyncIterator[bytes]:
    """Something that welcomes as a source does, and then does as it likes with one asker."""
    ring = OwnRing(identity=b"i" * 16, shape=SHAPE, kit=DoubleKit())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(1)

        def play() -> None:
            with listener.accept()[0] as asker:
                asker.recv(64)
                said = welcome or msgspec.msgpack.encode(Welcome(SIZE, ring.identity, ring.shape))
                socket.send_fds(asker, [said], [ring.descriptor])
                script(asker)

        playing = threading.Thread(target=play)
        playing.start()
        yield msgspec.msgpack.encode(StagedTicket(str(path), bytes(32), SIZE))
        playing.join()
    ring.release()
    path.unlink()


def silent(asker: socket.socket) -> None:
    while asker.recv(1 << 17):
        pass


def answers(*words: bytes) -> Script:
    def script(asker: socket.socket) -> None:
        asker.recv(1 << 17)
        for word in words:
            asker.send(word)
        silent(asker)

    return script


@pytest.mark.parametrize(
    "words", [(number(1),), (number(0), number(0)), (b"\0",), (number(0) + b"\0",), (number(1 << 63),)]
)
def test_a_source_that_says_another_word_than_the_next_one_is_believed_no_more(
    tmp_path: Path, words: tuple[bytes, ...]
) -> None:
    async def story() -> None:
        async with fake_source(tmp_path / "s", answers(*words)) as ticket, staged(tmp_path / "d") as here:
            channel = await OnDevice(here).connect(ticket)
            with pytest.raises(TransportError, match="should speak of load"):
                await channel.pull(WHOLE, target().buffer)
            await channel.close()

    story_of(story)


@pytest.mark.parametrize(
    "welcome",
    [
        b"\xc1",
        msgspec.msgpack.encode((SIZE + 4096, b"i" * 16, (4096, 3))),
        msgspec.msgpack.encode((SIZE, b"i" * 15, (4096, 3))),
        msgspec.msgpack.encode((SIZE, b"i" * 16, (4096, 1 << 40))),
        msgspec.msgpack.encode((SIZE, b"i" * 16, (5000, 3))),
        msgspec.msgpack.encode((SIZE, b"i" * 16, (8192, 3))),
    ],
)
def test_a_welcome_that_is_none_connects_nobody_and_its_descriptor_is_closed(tmp_path: Path, welcome: bytes) -> None:
    async def story() -> None:
        async with fake_source(tmp_path / "s", silent, welcome) as ticket, staged(tmp_path / "d") as here:
            before = len(os.listdir("/proc/self/fd"))
            with pytest.raises(TransportError):
                await here.connect(ticket)
            for _ in range(200):  # the other end of the connection is this process's as well, and is closed later
                if len(os.listdir("/proc/self/fd")) <= before:
                    break
                await asyncio.sleep(0.01)
            assert len(os.listdir("/proc/self/fd")) <= before

    story_of(story)


(WHOLE_REQUEST,) = (words for words, _ in requests(WHOLE))
HOSTILE = {
    "outside": number(1) + number(SIZE - 4) + number(5),
    "empty run": number(1) + number(0) + number(0),
    "no runs": number(0),
    "too many runs": number(1 << 40),
    "shorter than it says": WHOLE_REQUEST[:-8],
    "longer than it says": WHOLE_REQUEST + bytes(16),
    "a byte": b"\0",
}


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
def test_a_request_that_nobody_should_make_is_answered_with_an_end_and_others_are_served_on(
    tmp_path: Path, words: bytes
) -> None:
    async def story() -> None:
        async with staged(tmp_path / "s") as path:
            ticket = await path.export_device(slot(DoubleKit()))
            loop, wanted = asyncio.get_running_loop(), msgspec.msgpack.decode(ticket, type=StagedTicket)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
                asker.settimeout(0)
                await loop.sock_connect(asker, wanted.path)
                await loop.sock_sendall(asker, wanted.token)
                assert await loop.sock_recv(asker, 256)
                await loop.sock_sendall(asker, words)
                assert (await loop.sock_recv(asker, 256)).startswith(FAILED)
                assert await loop.sock_recv(asker, 256) == b""
            channel, into = await OnDevice(path).connect(ticket), target()
            await channel.pull(WHOLE, into.buffer)
            assert bytes(into.buffer) == pattern(SIZE)
            await channel.close()

    story_of(story)


def test_a_destination_that_gives_back_what_it_has_not_got_is_served_no_more(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path / "s") as path:
            ticket = await path.export_device(slot(DoubleKit()))
            loop, wanted = asyncio.get_running_loop(), msgspec.msgpack.decode(ticket, type=StagedTicket)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
                asker.settimeout(0)
                await loop.sock_connect(asker, wanted.path)
                await loop.sock_sendall(asker, wanted.token)
                assert await loop.sock_recv(asker, 256)
                await loop.sock_sendall(asker, WHOLE_REQUEST)
                assert await loop.sock_recv(asker, 8) == number(0)
                await loop.sock_sendall(asker, number(5))
                heard = [await loop.sock_recv(asker, 8)]
                while heard[-1]:
                    heard.append(await loop.sock_recv(asker, 8))
                assert heard[:-2] == [number(load) for load in range(1, SHAPE.num_buffers)]
                assert heard[-2] == FAILED

    story_of(story)


def test_slots_in_host_memory_are_none_of_its(tmp_path: Path) -> None:
    async def story() -> None:
        async with staged(tmp_path / "s") as path:
            with pytest.raises(TransportError, match="lies in host memory"):
                await path.export(target())
            channel = await path.connect(await path.export_device(slot(DoubleKit())))
            with pytest.raises(TransportError, match="lies in host memory"):
                await channel.pull(WHOLE, target().buffer)
            await channel.close()
        with pytest.raises(TransportError, match="was not started, or is closed"):
            await path.export_device(slot(DoubleKit()))

    story_of(story)


def test_a_folder_that_is_not_there_and_a_name_that_is_too_long_are_told(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(TransportError, match="cannot be listened at"):
            async with staged(tmp_path / "no" / "s"):
                pass

    story_of(story)
    with pytest.raises(TransportError, match="at most 100"):
        staged_config("/" + "x" * 100)
