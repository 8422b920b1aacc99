"""What a run starts from, keeps in its folder, and leaves behind."""
