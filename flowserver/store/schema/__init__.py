"""Tables and their indexes, and the migrations that make them."""
