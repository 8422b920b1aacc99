"""What happens around every request, in one place: `edge.py` has the order, the other files one idea each."""
