"""The structures of a TsFile and their bytes: primitives, device ids, statistics, bloom filter, index, tail."""
