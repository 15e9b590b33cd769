"""What all tests share: the order in which they run."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the browser's tests last: its driver keeps an event loop running in this thread until the session ends."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
