"""What is done to texts before and after an encoder: cut, grouped, or found blank."""
