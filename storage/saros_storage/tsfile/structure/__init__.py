"""Encoding and decoding of a TsFile's structures: primitives, device ids, statistics, bloom filter, index, tail."""
