"""Operators that join their children by time, by window, by device or by level."""
