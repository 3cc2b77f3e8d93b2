"""Function Compute's API of 2016-08-15, as far as callers of functions use it. It translates only."""
