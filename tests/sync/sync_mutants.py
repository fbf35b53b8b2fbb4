"""Mistakes planted in senders and receivers, one at a time. Random stories, crashes and failing disks must reveal each.

See `storage.planting`. `benchmarks/campaign_sync.py --mutants` tries all of them.
"""

from __future__ import annotations

import errno
from random import Random

from msgspec.structs import replace
from storage.planting import Mutant, planting
from sync.cluster_crashes import TAKES, cluster_crashes
from sync.sync_crashes import centre_crashes, centre_failures, rounds, sender_crashes
from sync.sync_stories import tell_story, two_senders_at_once
from sync.sync_world import Unheard

from saros_cluster.meta.metadata_kv import Notes
from saros_sync.clustered import schema as schema_module
from saros_sync.clustered.content_store import Contents
from saros_sync.clustered.receiver import ClusterReceiver
from saros_sync.clustered.replica_store import ReplicaStore
from saros_sync.receiver import incoming as incoming_module
from saros_sync.receiver import receiver as receiver_module
from saros_sync.receiver.incoming import Incoming
from saros_sync.receiver.ownership import OwnershipDecision
from saros_sync.receiver.receiver import Receiver
from saros_sync.sender import snapshot as snapshot_module
from saros_sync.sender.live import SchemaFollower
from saros_sync.sender.sending import Sending

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


def stories() -> None:
    for seed in range(60):
        tell_story(seed, edges=1 + seed % 3, steps=30)


def cluster_stories() -> None:
    for seed in range(150):
        tell_story(seed, edges=1 + seed % 3, steps=30, cluster=True)


def receiver_cut() -> None:
    centre_crashes(rounds(), Random(1), 0.1, chores=Unheard())


def sender_cut() -> None:
    sender_crashes(rounds(), Random(2), 0.1)


def receiver_fails() -> None:
    centre_failures(rounds()[:1], errno.EIO, 1)


def node_cut() -> None:
    cluster_crashes(rounds(), Random(3), TAKES, 0.1)


# ---------------------------------------------------------------------- the sender


@mutant(stories)
def does_not_send_tombstones(plant):
    def partition(*words, partition=snapshot_module.SentPartition):
        return replace(partition(*words), tombstones=())

    plant(snapshot_module, "SentPartition", partition)


@mutant(stories)
def looks_at_the_schema_once(plant):
    def dump(self, dump=SchemaFollower.dump):
        if self._tree is None:
            dump(self)
        return self._tree.dump()

    plant(SchemaFollower, "dump", dump)


@mutant(sender_cut)
def ends_a_round_without_noting_what_the_receiver_has(plant):
    def end(self, snapshot):
        self._snapshot.remove()
        self._journal.end()

    plant(Sending, "_end", end)


# ---------------------------------------------------------------------- a server


@mutant(receiver_cut)
def acknowledges_a_round_that_is_not_durable(plant):
    def write(disk, path, data):
        disk.create(path).write([data])

    plant(receiver_module, "write_durably", write)


@mutant(receiver_cut)
def names_a_file_that_is_not_durable(plant):
    plant(incoming_module, "_sync_after", lambda earlier, file: None)


@mutant(receiver_cut)
def removes_what_is_shown_before_the_next_round_is_committed(plant):
    def claim(self, speaker, sender, mirror, claim=Receiver._claim):
        self._incoming_of(sender).sweep(self._folder(sender).names(mirror.document, mirror.round))
        return claim(self, speaker, sender, mirror)

    plant(Receiver, "_claim", claim)


@mutant(receiver_fails)
def leaves_a_commit_as_a_failing_disk_left_it(plant):
    plant(Receiver, "_mirror_of", lambda self, entry: self.shown.mirrors.get(entry.id) or self._load(entry))


@mutant(receiver_fails)
def goes_on_with_what_a_failed_sync_left(plant):
    plant(Incoming, "_remove_unknown", lambda self, content: self._unknown.discard(content.sha256))


@mutant(receiver_cut)
def leaves_after_a_start_what_a_commit_had_left(plant):
    plant(Receiver, "_forget_rest", lambda self, entry, mirror: None)


@mutant(stories)
def gives_a_device_to_whoever_sends_it(plant):
    plant(receiver_module, "claims", lambda sender, devices, *rest: OwnershipDecision(frozenset(devices), ()))


# ---------------------------------------------------------------------- a cluster


@mutant(cluster_stories)
def commits_before_more_than_half_have_the_round(plant):
    plant(ClusterReceiver, "_hold", lambda self, sender, document, number: None)


@mutant(two_senders_at_once)
def writes_notes_whatever_was_written_meanwhile(plant):
    def put(self, notes, index, put=Notes.put):
        return put(self, replace(notes, version=self.version), index)

    plant(Notes, "put", put)


@mutant(cluster_stories)
def says_that_it_has_a_round_before_that_is_durable(plant):
    plant(Contents, "make_durable", lambda self, target: None)


@mutant(cluster_stories)
def lets_go_of_what_others_have_not_fetched_yet(plant):
    def is_needed(self, sender, round_, last, now, is_needed=ReplicaStore._is_needed):
        return self._keeps(sender) and is_needed(self, sender, round_, last, now)

    plant(ReplicaStore, "_is_needed", is_needed)


@mutant(cluster_stories)
def lets_go_of_what_it_said_it_has_when_it_is_to_be_a_keeper(plant):
    def is_needed(self, sender, round_, last, now, is_needed=ReplicaStore._is_needed):
        half, *_ = self._replica_sets(sender)
        if last is None or last.sha256 != round_.document.sha256 or self._node in half:
            return is_needed(self, sender, round_, last, now)
        return not all(self.held(node, sender, last, round_.number) for node in half)

    plant(ReplicaStore, "_is_needed", is_needed)


@mutant(cluster_stories)
def does_not_mark_whose_a_device_is(plant):
    plant(schema_module, "marked", lambda device, sender: device)


@mutant(node_cut)
def leaves_what_has_arrived_of_a_round_that_is_over(plant):
    def is_over(self, incoming, entry, is_over=ClusterReceiver._is_finished):
        return bool(incoming.number) and is_over(self, incoming, entry)

    plant(ClusterReceiver, "_is_finished", is_over)
