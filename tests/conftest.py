"""Settings for all tests."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

# Everyday runs are the same each time; HYPOTHESIS_PROFILE=explore asks for many other examples.
settings.register_profile(
    "everyday",
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.target],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", parent=settings.get_profile("everyday"), derandomize=False, max_examples=2_000)
settings.register_profile("shrink", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "first: takes longest, and so is begun first: at the end all would wait for it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
