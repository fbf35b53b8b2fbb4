"""Readers: pinned views, series and device readers merged by rank, window statistics, latest points."""
