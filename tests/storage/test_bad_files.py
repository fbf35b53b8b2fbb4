"""Mutated files of all kinds, and folders with one of them; see `bad_files`.

`make campaign-storage` runs new seeds.
"""

from __future__ import annotations

import logging

import pytest
from storage.bad_files import Survivals, attack, attack_folder, attack_watching_memory, folder, kinds, see_damage

FILES, WATCHED, FOLDERS = 10_000, 100, 120


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Suppress the warnings about torn ends, of which there are thousands here."""
    caplog.set_level(logging.ERROR)


@pytest.mark.slow
def test_mutated_files_are_refused_or_read_right() -> None:
    found = Survivals()
    attack(kinds(), 0, FILES, found)
    print(found)
    assert FILES == sum(found.files.values())
    assert all(found.refused.get(name, 0) > 100 for name in found.files)


@pytest.mark.slow
def test_mutated_files_do_not_allocate_much() -> None:
    found = Survivals()
    attack_watching_memory(kinds(), 1_000, WATCHED, found)
    print(f"{found.largest_bytes >> 20} MiB")
    assert sum(found.files.values()) == WATCHED


@pytest.mark.slow
def test_a_store_with_a_bad_file_names_it_or_answers() -> None:
    found = Survivals()
    files = folder()
    for number in range(FOLDERS):
        attack_folder(files, number, found)
    print(found)
    assert sum(found.refused.values()) > FOLDERS // 10


def test_no_damage_of_an_acknowledged_record_goes_unseen() -> None:
    assert see_damage() > 1_000
