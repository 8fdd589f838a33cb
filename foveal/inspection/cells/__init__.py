"""The view `cells`: units of a language model that follow something in a text, such as quotes."""
