"""Parts by name, and code from outside the package that registers more of them."""
