"""The write-ahead log: records, segments, group commit. It does not interpret its payloads."""

from saros_storage.log.log_syncer import LogSyncer
from saros_storage.log.record import Record
from saros_storage.log.segmented_log import Durability, LogOptions, SegmentedLog

__all__ = ["Durability", "LogOptions", "LogSyncer", "Record", "SegmentedLog"]
