"""The calls to a CUDA driver, with one that is none: each in its device's context, and every refusal an error."""

import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from worldmove import state
from worldmove.errors import TransportError, UserError
from worldmove.state.kits import kit_of


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712


class Driver(ModuleType):
    """Notes its calls, with the context in which each was made. Devices 0 and 1 have the contexts 100 and 101."""

    CUipcMem_flags = SimpleNamespace(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS=1)

    def __init__(self) -> None:
        super().__init__("driver")
        self.contexts = [7]
        self.calls: list[tuple[Any, ...]] = []
        self.answers: dict[str, Any] = {"cuDevicePrimaryCtxRetain": lambda device: 100 + device}
        self.answers |= {"cuDeviceGet": lambda device: device, "cuMemAlloc": lambda size: 4096 * size}
        self.CUipcMemHandle = SimpleNamespace

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def function(*arguments: Any) -> tuple[Any, ...]:
            if name == "cuCtxGetCurrent":
                return Status.CUDA_SUCCESS, self.contexts[-1]
            if name == "cuCtxPushCurrent":
                self.contexts.append(*arguments)
                return (Status.CUDA_SUCCESS,)
            if name == "cuCtxPopCurrent":
                return Status.CUDA_SUCCESS, self.contexts.pop()
            self.calls.append((self.contexts[-1], name, *arguments))
            answer = self.answers.get(name)
            if isinstance(answer, list):
                answer = answer.pop(0) if answer else None
            if isinstance(answer, Status | Exception):
                if isinstance(answer, Exception):
                    raise answer
                return answer, None
            found = answer(*arguments) if answer else ()
            return (Status.CUDA_SUCCESS, *found) if isinstance(found, tuple) else (Status.CUDA_SUCCESS, found)

        function.__name__ = name
        return function


def forget(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have a module of the package imported anew, for one test."""
    monkeypatch.delitem(sys.modules, f"worldmove.state.{name}", raising=False)
    monkeypatch.delattr(state, name, raising=False)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    driver, bindings, cuda = Driver(), ModuleType("cuda.bindings"), ModuleType("cuda")
    bindings.driver = driver  # type: ignore[attr-defined]
    for name, module in {"cuda": cuda, "cuda.bindings": bindings, "cuda.bindings.driver": driver}.items():
        monkeypatch.setitem(sys.modules, name, module)
    forget(monkeypatch, "cuda_driver")
    yield driver
    sys.modules.pop("worldmove.state.cuda_driver", None)
    if hasattr(state, "cuda_driver"):
        del state.cuda_driver


@pytest.fixture
def ours(fake: Driver) -> Any:
    return import_module("worldmove.state.cuda_driver")


def test_every_call_is_made_in_its_devices_context_and_the_threads_own_is_there_again(fake: Driver, ours: Any) -> None:
    assert ours.allocate(1, 10) == 40960
    ours.copy_all(0, [(1, 2, 3), (4, 5, 6)], 77)
    ours.free(1, 40960)
    made = [call for call in fake.calls if call[1].startswith("cuMem")]
    assert made == [
        (101, "cuMemAlloc", 10),
        (100, "cuMemcpyAsync", 2, 1, 3, 77),
        (100, "cuMemcpyAsync", 5, 4, 6, 77),
        (101, "cuMemFree", 40960),
    ]
    assert fake.contexts == [7]
    assert [call[1] for call in fake.calls].count("cuDevicePrimaryCtxRetain") == 2


def test_host_memory_is_registered_for_every_context_of_the_process_and_given_back(fake: Driver, ours: Any) -> None:
    ours.register(1, 8192, 100)
    ours.unregister(1, 8192)
    made = [call for call in fake.calls if call[1].startswith("cuMem")]
    assert made == [(101, "cuMemHostRegister", 8192, 100, 3), (101, "cuMemHostUnregister", 8192)]


def test_host_memory_that_has_come_to_lie_where_some_was_registered_and_dropped_takes_its_place(
    fake: Driver, ours: Any
) -> None:
    fake.answers["cuMemHostRegister"] = [Status.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED]
    ours.register(1, 8192, 100)
    names = ["cuMemHostRegister", "cuMemHostUnregister", "cuMemHostRegister"]
    assert [name for _, name, *_ in fake.calls if name in names] == names
    fake.answers["cuMemHostRegister"] = [Status.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED] * 2
    with pytest.raises(TransportError, match="ALREADY_REGISTERED"):
        ours.register(1, 8192, 100)
    assert fake.contexts == [7]


def test_a_word_of_registered_memory_is_written_and_waited_for_in_a_streams_order(fake: Driver, ours: Any) -> None:
    fake.answers["cuMemHostGetDevicePointer"] = lambda address, flags: address + 1
    ours.write_word(1, 8192, 77, 5)
    ours.wait_for_word(0, 8192, 77, 6)
    made = [call for call in fake.calls if call[1].startswith("cuStream")]
    assert made == [(101, "cuStreamWriteValue32", 5, 8193, 77, 0), (100, "cuStreamWaitValue32", 6, 8193, 77, 1)]
    fake.answers["cuStreamWaitValue32"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(TransportError, match="cuStreamWaitValue32"):
        ours.wait_for_word(0, 8192, 77, 6)


def test_a_handle_has_64_bytes_however_it_came(fake: Driver, ours: Any) -> None:
    fake.answers["cuIpcGetMemHandle"] = lambda address: SimpleNamespace(reserved=bytes(range(64)))
    fake.answers["cuIpcOpenMemHandle"] = lambda handle, flags: len(handle.reserved) * 1000 + flags
    assert ours.export(0, 4096) == bytes(range(64))
    fake.answers["cuMemGetAddressRange"] = lambda address: (address, 100)
    assert [ours.open_handle(0, handle, 100) for handle in (b"", bytes(64), bytes(90))] == [64001] * 3


@pytest.mark.parametrize(("begins_before", "num_bytes"), [(0, 101), (1, 100), (0, 1 << 49)])
def test_a_handle_of_less_memory_than_is_said_is_refused_and_unmapped(
    fake: Driver, ours: Any, begins_before: int, num_bytes: int
) -> None:
    fake.answers["cuIpcOpenMemHandle"] = lambda handle, flags: 4096
    fake.answers["cuMemGetAddressRange"] = lambda address: (address - begins_before, 100)
    with pytest.raises(TransportError, match=f"has {100 - begins_before} bytes, not {num_bytes}"):
        ours.open_handle(1, bytes(64), num_bytes)
    assert fake.calls[-1] == (101, "cuIpcCloseMemHandle", 4096)
    assert fake.contexts == [7]


def test_a_handle_of_memory_whose_size_cannot_be_asked_is_unmapped_too(fake: Driver, ours: Any) -> None:
    fake.answers["cuIpcOpenMemHandle"] = lambda handle, flags: 4096
    fake.answers["cuMemGetAddressRange"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(TransportError, match="cuMemGetAddressRange"):
        ours.open_handle(1, bytes(64), 1)
    assert fake.calls[-1] == (101, "cuIpcCloseMemHandle", 4096)


def test_a_refusal_is_an_error_with_the_drivers_word_and_leaves_no_context_behind(fake: Driver, ours: Any) -> None:
    fake.answers["cuMemAlloc"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(TransportError, match="cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY") as raised:
        ours.allocate(0, 10)
    assert raised.value.status == ours.OUT_OF_MEMORY  # type: ignore[attr-defined]
    assert fake.contexts == [7]


def test_a_host_without_the_drivers_library_is_told_so(fake: Driver, ours: Any) -> None:
    fake.answers["cuInit"] = RuntimeError("Failed to dlopen libcuda.so.1")
    with pytest.raises(TransportError, match="there is no CUDA driver here: Failed to dlopen"):
        ours.allocate(0, 10)


@pytest.mark.skipif("cuda" in sys.modules, reason="cuda-bindings is here")
def test_a_device_without_the_bindings_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    for name in ("kit_cuda", "cuda_fields", "cuda_driver"):
        forget(monkeypatch, name)
    kit_of.cache_clear()
    with pytest.raises(UserError, match="cuda:3 needs cuda-bindings, which comes with torch for CUDA"):
        kit_of("cuda:3")
