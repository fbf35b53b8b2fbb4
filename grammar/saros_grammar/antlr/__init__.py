"""Code around the generated parser: lexer, error messages, redaction, unsupported statements."""
