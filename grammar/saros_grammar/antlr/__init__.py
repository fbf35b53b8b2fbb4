"""Code around the generated parser: the lexer, error messages, redaction, unsupported statements, completion."""
