"""Language: the nouns of captions, and which objects a caption names."""

from instar.tasks.meta_ic.language.nouns import article, counted, plural, singular
from instar.tasks.meta_ic.language.paper import PAPER_CLASSES, read_paper
from instar.tasks.meta_ic.language.reading import Mention, Number, Reading, read_caption
from instar.tasks.meta_ic.language.tagger import TAGS, Tag, Tagger
from instar.tasks.meta_ic.language.vocabulary import Vocabulary, coco, read_vocabulary

__all__ = [
    "PAPER_CLASSES",
    "TAGS",
    "Mention",
    "Number",
    "Reading",
    "Tag",
    "Tagger",
    "Vocabulary",
    "article",
    "coco",
    "counted",
    "plural",
    "read_caption",
    "read_paper",
    "read_vocabulary",
    "singular",
]
