"""Settings for all tests."""

import asyncio
import gc
import inspect
import os
import signal
from collections.abc import Generator
from itertools import islice

import pytest
from hypothesis import HealthCheck, Phase, settings

from lookout.app import process

LONGEST_TEST_S = 280  # of those that wait for something

# Everyday runs are the same each time; HYPOTHESIS_PROFILE=explore asks for many other examples.
settings.register_profile(
    "everyday",
    max_examples=50,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.target],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", parent=settings.get_profile("everyday"), derandomize=False, max_examples=2_000)
settings.register_profile("shrink", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))

# A shell's background ignores Ctrl-C, and so would all that is started there; some tests end something by it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Where Debian has varnishd and useradd, which not every user's PATH names.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])

# No everyday test needs the public certificate authorities, and every process that opens a client would load them all.
# OpenSSL still looks into its folder of them.
os.environ.setdefault("SSL_CERT_FILE", os.devnull)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test counts as failed")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "first: takes longest, and so starts first: at the end all would wait for it")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests that were found stay to the end. To scan them for garbage again and again takes a third of finding them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # after those that are not asked for were left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests mostly wait. Every second process, of those that share the tests, starts with its part of them;
    the others compute meanwhile."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    waiting = range(1, processes, 2) or range(1)
    first = [item for item in items if item.get_closest_marker("first")]
    others = iter([item for item in items if not item.get_closest_marker("first")])
    ordered: list[pytest.Item] = []
    for number in range(processes):
        share = (len(items) - len(ordered)) // (processes - number)  # as many as pytest-xdist gives to the process
        own = first[waiting.index(number) :: len(waiting)] if number in waiting else []
        ordered += (*own, *islice(others, max(0, share - len(own))))
    items[:] = (*ordered, *others)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run an ``async def test_…`` in a loop of its own, which is the one that the commands use."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = lambda **arguments: process.run(asyncio.wait_for(test(**arguments), LONGEST_TEST_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = f"--no-skips forbids this: {report.longreprtext}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Name at the very end, a line each, what failed: a log that is cut off at its beginning still has that."""
    yield
    for outcome in ("failed", "error"):
        for report in terminalreporter.getreports(outcome):
            terminalreporter.write_line(f"{outcome}: {report.nodeid}")
