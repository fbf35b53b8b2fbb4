r"""The interactive shell and scripts.

repl  history  lexer  keywords                 the prompt
completion  completion_context                 the words that Tab offers, and the place that they are offered for
shell_config                                   the user's preferences
session  statements                            split a text into statements and backslash commands; run them in order
runner  hints  confirmation                    run a statement; hints where a result is empty; the question before it
backslash_commands  copy  named_queries        `\d`, `\copy`, `\n`, and the others
"""
