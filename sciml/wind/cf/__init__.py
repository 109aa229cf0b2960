"""What a field of wind is: names, units, grids and places by the CF conventions."""
