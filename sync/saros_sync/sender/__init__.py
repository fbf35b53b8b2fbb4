"""The sender: a process of its own beside an instance; it looks at the instance's files and asks it nothing.

folder      where a sender keeps what, by receiver; its id
live        what is sealed in a data folder that somebody else has open; the schema, from the log
snapshot    hard links to what a round needs, and the round
sending     a round: snapshot, journal, contents, commit; goes on where a crash or a lost line ended it
window      how many chunks are in flight: pure
process     a thread per receiver, a round every so often
"""
