"""Who may connect: passwords, lockout, TLS prerequisites, and the audit trail.

login             the user behind a call
authentication    checks a name and a password, at a bounded rate
passwords         hashes of passwords
lockout           users and addresses that failed too often: pure
security          the rules of a secure listener; the first administrator
audit             the audit trail, a chain of hashes
"""
