"""Readers: a pinned view, series and devices merged by rank, statistics of windows, latest points."""
