"""How an equation is solved."""
