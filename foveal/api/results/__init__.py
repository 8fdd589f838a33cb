"""Results that show themselves: tables, pictures, scores and answers."""
