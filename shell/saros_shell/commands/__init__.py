"""The sub-commands of `saros`, a module each with `main(arguments) -> exit code`.

start, server (stop and status), shell, user, audit, config, backup (and restore), sync, tsfile, verify, bench;
read_only_folders: data folders of other processes or file systems, for verify and backup.
"""
