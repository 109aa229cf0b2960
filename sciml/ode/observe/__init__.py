"""What is seen of a solution: when, with which noise, with which gaps."""
