"""What happens around every request, one idea a file; `service/app.py` has the order."""
