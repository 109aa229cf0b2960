"""Models of strangers, read as they are: files of the vendor's Model Zoo and of Hugging Face."""
