"""The contents of a data folder: layout, manifests, resources, node and schema files, options; snapshots of it."""
