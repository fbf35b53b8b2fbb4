"""IoTDB's session protocol, with which programs written for IoTDB's clients can use Saros without changes.

protocol        connections: frames in, answers out
methods         the table of calls: arguments, function, answer
sessions        the session of a connection: login, time zone, statements
queries         statements and queries
results         open results and their pages
tsblock         Arrow record batches as TsBlocks
metadata        calls about databases, series, templates and deletions, as SQL
writes          tablets and records: to inserts, and back to statuses
tablets, records, values    decoding of tablets and records to columns
status_codes    statuses of calls, with IoTDB's codes
codec, structs  messages: the binary protocol, and its structs
"""
