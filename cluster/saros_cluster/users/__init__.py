"""Users, roles and privileges: the rules of access to paths.

privileges          the privileges that can be granted, and their areas: `READ_DATA` on `root.plant.**`
commands            the changes, as values and as bytes
tokens              API tokens: a user's other credentials
users               the state: `Users.apply(command)` returns the next one
effective_privileges   the privileges of one user, compiled for fast checks
directory           where the state is kept: the `Directory` protocol, and `FileDirectory` for one folder
"""
