"""What keeps a server steady: threads, memory, open files, who is let in, how long an answer is of use."""
