"""HTTP for all above it: headers, hosts, encodings, JSON and the forms of errors."""
