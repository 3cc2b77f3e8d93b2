"""TODO api/rest."""
