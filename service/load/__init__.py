"""What keeps a server steady: its threads, who is let in, and how long an answer is of use."""
