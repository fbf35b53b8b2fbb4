"""The interactive shell, import and export."""
