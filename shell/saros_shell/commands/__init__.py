"""The other sub-commands of `saros`, a module each with `main(arguments) -> exit code`."""
