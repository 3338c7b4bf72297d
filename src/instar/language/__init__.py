"""Language: the nouns of captions, and which objects a caption names."""
