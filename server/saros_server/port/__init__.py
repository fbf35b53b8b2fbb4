"""The port: clients' sockets. The first bytes of a connection determine its protocol.

listener             the port: addresses, start, drain
poller               a thread that accepts clients and watches idle ones
worker_pool          threads that execute requests
thread_pool          threads for tasks: as many as are needed
protocol_detection   the first bytes of a connection: TLS, the protocol, answers to unsupported protocols
old_drivers          an answer to drivers that speak gRPC
tls                  the TLS of a listener, with certificates that are reloaded
client               a client, and the stage of its connection
connection           a client's socket, as protocols see it
streams              bytes over a socket, plain or TLS
event_poll           waiting for events of sockets, with epoll or a portable substitute
call_monitor         a thread that watches the clients of long calls
limits               limits on the number of clients, and timeouts
counters             counters for metrics
protocols            the interface of a protocol
"""
