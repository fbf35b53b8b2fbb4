"""Connections, cursors, prepared statements and bulk writers."""
