"""`saros support`: a bundle for a support request, without secrets and data.

command      the options, the ZIP file, and the list of its contents
sections     the contents: machine, configuration, files, log, and what a running database reports
redaction    removes names, addresses, literals and credentials from texts
"""
