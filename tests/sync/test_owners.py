"""Owners of devices, refused devices, and changes of owner, if several senders send to one receiver.

One sender may also have several receivers.
"""

from __future__ import annotations

import pytest
from storage.store_model import delete_series, write_rows
from sync.sync_world import Centre, Edge, devices_of

from saros_sync.errors import NoSuchSender, RoundRefused
from saros_sync.receiver.request_checks import Requester
from saros_sync.transport import Conflict


def points(centre: Centre, device: str) -> list[int]:
    return sorted(devices_of(centre.store).devices[device].series["x"])


def two() -> tuple[Centre, Edge, Edge]:
    """Return a centre, and two senders with root.a.d1. The first also has root.a.d2, the second root.b.c.d1."""
    centre = Centre()
    first, second = Edge(centre.line()), Edge(centre.line())
    first.tell(write_rows("root.a.d1", [1], 1), write_rows("root.a.d2", [1], 1))
    second.tell(write_rows("root.a.d1", [2], 2), write_rows("root.b.c.d1", [2], 2))
    return centre, first, second


def test_the_first_sender_of_a_device_has_it_and_the_other_is_told() -> None:
    centre, first, second = two()
    assert () == first.sync().conflicts
    assert (
        Conflict("root.a.d1", f"sender edge ({first.id})", "another sender sent it first"),
    ) == second.sync().conflicts
    assert [1] == points(centre, "root.a.d1")
    assert [2] == points(centre, "root.b.c.d1")
    centre.restart()
    assert [1] == points(centre, "root.a.d1")
    assert 1 == len(second.sync().conflicts)


def test_a_transfer_shows_at_once_what_the_other_sender_has_sent() -> None:
    centre, first, second = two()
    first.sync()
    second.sync()
    centre.receiver.transfer("root.a.d1", second.id)
    assert [2] == points(centre, "root.a.d1")
    assert () == second.sync().conflicts
    first.tell(write_rows("root.a.d1", [3], 1))
    assert ["root.a.d1"] == [conflict.device for conflict in first.sync().conflicts]
    assert [2] == points(centre, "root.a.d1")
    centre.restart()
    assert [2] == points(centre, "root.a.d1")


def test_a_transfer_to_who_has_not_sent_the_device_is_refused() -> None:
    centre, first, second = two()
    first.sync()
    with pytest.raises(NoSuchSender, match="SHOW SENDERS"):
        centre.receiver.transfer("root.a.d1", second.id)
    second.sync()
    with pytest.raises(RoundRefused, match=r"has not sent root\.a\.d2"):
        centre.receiver.transfer("root.a.d2", second.id)


def test_a_device_that_its_sender_drops_goes_to_the_other() -> None:
    centre, first, second = two()
    first.sync()
    second.sync()
    first.tell(delete_series("root.a.d1.*"))
    first.sync()
    assert "root.a.d1" not in devices_of(centre.store).devices
    assert () == second.sync().conflicts
    assert [2] == points(centre, "root.a.d1")


def test_a_sender_that_is_dropped_leaves_nothing() -> None:
    centre, first, second = two()
    first.sync()
    second.sync()
    assert 2 == centre.receiver.drop(first.id)
    assert ["root.b.c.d1"] == list(devices_of(centre.store).devices)
    centre.check_nothing_left("a drop")
    assert () == second.sync().conflicts
    assert [2] == points(centre, "root.a.d1")
    first.restart_sender()
    assert ["root.a.d1"] == [conflict.device for conflict in first.sync().conflicts]
    assert [1] == points(centre, "root.a.d2")


def test_what_the_server_has_itself_is_refused_until_it_is_dropped() -> None:
    centre, first, _ = two()
    write_rows("root.a.d1", [9], 9).run(centre.store)
    assert [("root.a.d1", "this server")] == [(c.device, c.owner) for c in first.sync().conflicts]
    assert [9] == points(centre, "root.a.d1")
    centre.store.delete_series("root.a.d1.*")
    assert () == first.sync().conflicts
    assert [1] == points(centre, "root.a.d1")


def test_a_user_brings_only_devices_that_it_may_write() -> None:
    centre = Centre()
    ann = Requester("ann", lambda device: device.startswith("root.a."), administrator=False)
    edge = Edge(centre.line(ann))
    edge.tell(write_rows("root.a.d1", [1], 1), write_rows("root.b.c.d1", [2], 2))
    conflicts = edge.sync().conflicts
    assert ["root.b.c.d1"] == [conflict.device for conflict in conflicts]
    assert "" == conflicts[0].owner
    assert "WRITE_DATA" in conflicts[0].reason
    assert ["root.a.d1"] == list(devices_of(centre.store).devices)


def test_a_sender_is_its_users_alone() -> None:
    centre = Centre()
    edge = Edge(centre.line(Requester("ann", administrator=False)))
    edge.tell(write_rows("root.a.d1", [1], 1))
    edge.sync()
    edge.line = centre.line(Requester("bob", administrator=False))
    edge.restart_sender()
    with pytest.raises(RoundRefused, match="belongs to another user"):
        edge.sync()


def test_a_receiver_that_is_another_one_gets_all_there_is() -> None:
    centres = [Centre(), Centre()]
    edge = Edge(centres[0].line())
    edge.tell(write_rows("root.a.d1", [1], 1))
    edge.sync()
    edge.tell(write_rows("root.a.d1", [2], 1))
    edge.store.flush()
    edge.line = centres[1].line()
    edge.restart_sender()
    edge.sending.run_round()  # the sender's records concern the first receiver; the second one must ask for all files
    assert [1] == points(centres[0], "root.a.d1")
    assert [1, 2] == points(centres[1], "root.a.d1")


def test_a_file_that_is_damaged_at_the_receiver_is_sent_again() -> None:
    centre, first, _ = two()
    first.sync()
    (path, *_) = [file.path for file in centre.receiver.shown.mirrors[first.id].files]
    centre.disk.place(path, bytes(centre.disk.map(path))[:-9])
    centre.restart()
    assert centre.store.status().problems
    assert first.sync().files
    assert () == centre.store.status().problems
    assert [1] == points(centre, "root.a.d1")


def test_a_receiver_that_lost_a_round_as_a_whole_gets_it_again() -> None:
    centre, first, _ = two()
    first.sync()
    folder = f"data/sync-receiver/{first.id}/data"
    for name in centre.disk.list(folder):
        if name.endswith((".round", ".schema")):
            centre.disk.remove(f"{folder}/{name}")
    centre.restart()
    assert centre.store.status().problems
    first.sync()
    assert [1] == points(centre, "root.a.d1")
    assert () == centre.store.status().problems
    centre.check_nothing_left("a loss")
