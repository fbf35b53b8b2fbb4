"""The write-ahead log: records, segments, group commit. The log does not interpret its payloads."""

from saros_storage.log.log_syncer import LogSyncer
from saros_storage.log.record import Head, ReadPiece, Record, heads, whole_record
from saros_storage.log.segment_name import SegmentName, list_segments
from saros_storage.log.segmented_log import Durability, LogOptions, SegmentedLog

__all__ = [
    "Durability",
    "Head",
    "LogOptions",
    "LogSyncer",
    "ReadPiece",
    "Record",
    "SegmentName",
    "SegmentedLog",
    "heads",
    "list_segments",
    "whole_record",
]
