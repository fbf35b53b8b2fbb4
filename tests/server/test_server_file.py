"""The search for the server of a folder, by `server.json` and the folder's lock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saros_server.process.daemon import last_log_line
from saros_server.process.server_file import Serving, announce, serving, withdraw
from saros_storage.base.errors import FolderInUse
from saros_storage.io.folder_lock import FolderLock, is_free, owner_of


def test_what_a_killed_server_left_names_nobody_also_if_its_process_id_is_in_use(tmp_path: Path) -> None:
    folder = str(tmp_path)
    said = Serving(os.getpid(), "127.0.0.1:6667")
    announce(folder, said)
    assert serving(folder) is None
    lock = FolderLock.acquire(folder)
    assert said == serving(folder)
    lock.release()
    assert serving(folder) is None


def test_the_last_words_are_the_last_line_of_the_log_if_there_is_one(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    for text, words in (("", "its log is empty"), ("one\nsaros start: two\n", "two")):
        log.write_text(text)
        assert f"{words}; see {log}" == last_log_line(str(tmp_path))


def test_whoever_has_the_folder_for_something_else_does_not_serve_it(tmp_path: Path) -> None:
    announce(str(tmp_path), Serving(1, "127.0.0.1:6667"))
    lock = FolderLock.acquire(str(tmp_path))
    assert serving(str(tmp_path)) is None
    withdraw(str(tmp_path))
    lock.release()


def test_looking_takes_nothing_and_changes_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert (True, None) == (is_free(folder), owner_of(folder))
    assert [] == os.listdir(folder)
    lock = FolderLock.acquire(folder)
    assert (False, os.getpid()) == (is_free(folder), owner_of(folder))
    with pytest.raises(FolderInUse) as refused:
        FolderLock.acquire(folder)
    assert os.getpid() == refused.value.pid
    lock.release()
    assert (True, None) == (is_free(folder), owner_of(folder))
