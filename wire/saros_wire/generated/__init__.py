"""Made from wire/*.proto by `make proto`; not written by hand."""
