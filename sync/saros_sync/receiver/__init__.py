"""The receiver: what senders have sealed, shown by a store beside its own data.

ownership      whose a device is: first come, first served; what is refused: pure
reconcile      what the store's schema lacks of what is shown: pure
catalog        who has sent what, and whose each device is: the file that is the commit
incoming       contents that arrive piece by piece; the journal of the round in hand
mirror         one sender's round, as its partitions are read
receiver       rounds of all senders: begin, chunk, commit, recovery; transfer, drop
write_guard    refuses writes to what senders' data shows
synced_store   lets a store show it; views by device
"""
