"""The disk, injected so that tests can replace it; the lock of a folder; limits on bytes per second."""
