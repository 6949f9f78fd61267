"""Warnings are errors; the end of a run lists what rows leave out and why."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
if "PYTEST_XDIST_WORKER" in os.environ:
    # several processes share the cores: threads that spin while they wait take them from the others
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
pytest.register_assert_rewrite("checks", "helpers")
# the same examples in every run, and no files left behind
settings.register_profile("extensor", deadline=None, database=None, derandomize=True)
settings.load_profile("extensor")


@pytest.fixture(autouse=True)
def _one_thread_count() -> Any:
    """A test that fails inside its thread settings does not change the next one."""
    import extensor as ex

    before = ex.get_num_threads()
    yield
    ex.set_num_threads(before)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "error")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    import optable

    left_out = [(row, what, why) for row in optable.ROWS for what, why in row.without.items()]
    terminalreporter.write_sep("-", f"op table: {len(optable.ROWS)} rows, left out")
    for row, what, why in left_out:
        terminalreporter.write_line(f"{row}: {what}: {why}")
    if not left_out:
        terminalreporter.write_line("nothing: every check runs on every row it fits")
