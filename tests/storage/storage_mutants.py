"""All planted mistakes, collected from the modules that have them. See `planting`."""

from __future__ import annotations

from storage import mutants_of_answers, mutants_of_backups, mutants_of_files, mutants_of_loading, mutants_of_the_log
from storage.planting import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]

#: Importing a module adds its mistakes to `MUTANTS`.
MODULES = (mutants_of_the_log, mutants_of_files, mutants_of_answers, mutants_of_loading, mutants_of_backups)
