"""Whether a model folder can be loaded as it is: headers and settings against each other."""
