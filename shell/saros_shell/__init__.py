"""The command line of users: the shell, import and export, backups, clusters on this machine."""
