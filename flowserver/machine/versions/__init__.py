"""How an alias divides the starts of a flow among its versions."""
