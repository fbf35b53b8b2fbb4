"""All mistakes that can be planted, collected from the modules that define them. See `planting`."""

from __future__ import annotations

from storage import mutants_of_answers, mutants_of_backups, mutants_of_files, mutants_of_loading, mutants_of_the_log
from storage.planting import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]

#: When such a module is imported, its mistakes are added to `MUTANTS`.
MODULES = (mutants_of_the_log, mutants_of_files, mutants_of_answers, mutants_of_loading, mutants_of_backups)
