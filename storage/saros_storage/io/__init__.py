"""The disk, injected so that tests can replace it; one in memory; the lock of a folder; limits on bytes per second."""
