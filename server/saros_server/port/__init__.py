"""The port: clients' sockets. The first bytes of a connection determine its protocol.

listener             the port: addresses, start, drain
poller               a thread that accepts clients and watches idle ones
worker_pool          threads that execute requests
thread_pool          a pool with as many threads as its tasks need
protocol_detection   the first bytes of a connection: TLS, the protocol, answers to unsupported protocols
old_drivers          error answers for old drivers, which speak gRPC
tls                  the TLS of a listener, with certificates that are reloaded
client               a client, and the stage that its connection has reached
connection           a client's connection, as protocols use it
streams              bytes sent and received over a socket, with or without TLS
event_poll           waits for events of sockets, with epoll or a portable substitute
call_monitor         a thread that watches the clients of long calls
limits               limits on the number of clients, and timeouts
counters             counters for metrics
protocols            the interface of a protocol
"""
