"""The receiver: lets a store show the sealed data of senders in addition to the store's own data.

ownership      the owner of each device (its first supplier), and the refused devices: pure
reconcile      the schema changes that bring the store's schema in line with a sender's: pure
catalog        all senders, their rounds and devices: replacing this file is the commit
incoming       contents as they arrive in chunks; the journal of the current round
mirror         one sender's round, opened for reading
receiver       the rounds of all senders: begin, chunk, commit, recovery; transfer, drop
write_guard    refuses writes to senders' devices
synced_store   adds senders' data to the views of a store
"""
