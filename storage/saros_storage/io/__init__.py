"""The disk, injected so that tests can replace it; a disk in memory; folder locks; limits on bytes per second."""
