r"""The interactive shell and scripts.

repl  history  completion  lexer  keywords     the prompt
session  statements                            split a text into statements and backslash commands; run them in order
runner  hints                                  run a statement; hints where a result is empty
backslash_commands  copy                       `\d`, `\copy`, and the others
"""
