"""The view `hidden-attention`: a selective scan as a matrix of weights, beside attention."""
