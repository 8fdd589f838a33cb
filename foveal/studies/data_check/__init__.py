"""The study `data check`: what a careful person looks for in data before training."""
