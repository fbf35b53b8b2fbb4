"""The structures of a TsFile and their bytes: primitives, device ids, statistics, filter, index, tail."""
