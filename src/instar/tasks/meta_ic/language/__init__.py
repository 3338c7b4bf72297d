"""Language: the nouns of captions, and which objects a caption names."""

from instar.tasks.meta_ic.language.english import is_english
from instar.tasks.meta_ic.language.mentions import Mention, Number, Reading
from instar.tasks.meta_ic.language.nouns import article, counted, plural, singular
from instar.tasks.meta_ic.language.paper import paper_classes, read_paper
from instar.tasks.meta_ic.language.reading import read_caption
from instar.tasks.meta_ic.language.tagger import TAGS, Tag, Tagger
from instar.tasks.meta_ic.language.vocabulary import Vocabulary, coco, read_vocabulary

# fmt: off
__all__ = [
    "TAGS", "Mention", "Number", "Reading", "Tag", "Tagger", "Vocabulary", "article", "coco", "counted", "is_english",
    "paper_classes", "plural", "read_caption", "read_paper", "read_vocabulary", "singular",
]
# fmt: on
