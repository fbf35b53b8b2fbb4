"""The layout of a data folder, its manifests, resources, node and schema files, its options, and snapshots of it."""
