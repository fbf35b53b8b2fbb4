"""A data group's state: a region of storage, driven by the group's log."""
