"""Fine-tuning of the three sides: representations, scores, losses, hard negatives."""
