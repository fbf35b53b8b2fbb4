"""The port: clients' sockets, whose protocol is told by the first bytes.

listener             the port: addresses, start, drain
poller               a thread that accepts clients and watches silent ones
worker_pool          threads that carry out requests
thread_pool          threads for tasks: as many as are needed
protocol_detection   the first bytes of a connection: TLS, the protocol, answers to other protocols
old_drivers          an answer to drivers that speak gRPC
tls                  the TLS of a listener, with certificates that are reloaded
client               a client, and how far it is
connection           a client's socket, as protocols see it
streams              bytes over a socket, plain or TLS
call_monitor         a thread that watches the clients of long calls
limits               how many clients, and how long they may take
counters             figures for metrics
protocols            the interface of a protocol
"""
