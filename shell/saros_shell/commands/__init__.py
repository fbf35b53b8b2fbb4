"""The sub-commands of `saros`. Each module has `main(arguments) -> exit code`.

start, server (stop and status), console, shell, user, audit, config, backup (and restore), sync, tsfile, verify, bench,
warm_up; read_only_folders: data folders that cannot be written, for verify and backup.
"""
