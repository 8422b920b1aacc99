"""How a request is read: who asks, and a body of JSON or binary, held against its shape."""
