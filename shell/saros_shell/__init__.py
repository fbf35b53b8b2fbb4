"""The `saros` command: the shell, import and export, servers, backups, clusters on this machine."""
