"""Users, roles and privileges: who may do what on which paths.

privileges          what can be granted, and where: `READ_DATA` on `root.plant.**`
commands            the changes, as values and as bytes
tokens              API tokens: a user's other credentials
users               the state: `Users.apply(command)` gives the next one
effective_privileges   what one user may, compiled for fast questions
directory           where the state is kept: the `Directory` protocol, and `FileDirectory` for one folder
"""
