"""Who may connect: passwords, lockout, TLS prerequisites, and the audit trail.

login             the user behind a call
authentication    checks a name and a password or a token, at a bounded rate
passwords         hashes of passwords
tokens            secrets of API tokens
token_uses        the days on which tokens were used
lockout           users and addresses that failed too often: pure
security          the rules of a secure listener; the first administrator
audit             the audit trail, a chain of hashes
"""
