"""The view `attention`: where each head of each layer reads, in numbers by head, maps, and over an image."""
