"""Turn a logical plan into fragments.

plan_cache, plan_template    plans that are reused with other values
distribution                 fragments, split at exchanges
scan_splits                  large devices split by time among a fragment's instances
"""
