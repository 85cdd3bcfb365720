"""Room of the doctor: the seven traps, one module a trap, each with evidence and a remedy."""
