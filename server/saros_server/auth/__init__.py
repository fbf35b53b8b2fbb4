"""Authentication of clients: passwords, tokens, lockout, rules of secure listeners, and the audit trail.

login             admission of clients, and the current privileges of each
authentication    checks a name and a password or a token, at a bounded rate
passwords         hashes of passwords
tokens            secrets of API tokens
token_uses        the days on which tokens were used
lockout           users and addresses with too many failed logins: pure
security          the rules of a secure listener; the first administrator
audit             the audit trail, a hash chain
"""
