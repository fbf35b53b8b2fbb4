"""The sender: a separate process that reads an instance's files without a connection to the instance.

folder      the sender's own files, by receiver; its id
live        the sealed files of a data folder that another process has open; the schema, from the log
snapshot    hard links to the files of a round, and the round
sending     one round: snapshot, journal, contents, commit; resumes after a crash or a lost connection
window      how many chunks may be in flight: pure
process     one thread per receiver, which sends a round at each interval
"""
