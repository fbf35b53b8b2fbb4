r"""The interactive shell and scripts.

repl  history  lexer  keywords                 the prompt
completion  completion_context                 the words that Tab offers; the kind of word before the cursor
shell_config                                   the user's preferences
session  statements                            split a text into statements and backslash commands; run them in order
runner  hints  confirmation                    run a statement; hints for an empty result; questions before deletions
backslash_commands  copy  named_queries        `\d`, `\copy`, `\n`, and the other commands
"""
