"""The view `gates`: how often the gates of LSTM and GRU are open or closed."""
