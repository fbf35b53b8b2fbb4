"""What all of the engine stands on: errors, interfaces to the database below, sessions and their rights."""
