"""GGUF files of llama.cpp: settings, tokenizer and quantized weights of a language model in one file."""
