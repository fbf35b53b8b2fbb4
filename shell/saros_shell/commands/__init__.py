"""The sub-commands of `saros`; each module has `main(arguments) -> exit code`.

start, server (stop and status), shell, user, audit, config, backup (and restore), sync, tsfile, verify, bench;
read_only_folders: data folders that cannot be written, for verify and backup.
"""
