"""The memory of a storage that lies in host memory, for tests to read and to spoil."""

from worldmove.state.array import Memory
from worldmove.state.capture import HostStorage, Storage


def host_memory(storage: Storage) -> Memory:
    assert isinstance(storage, HostStorage)
    return storage.memory
