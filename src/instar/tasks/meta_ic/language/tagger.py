"""Words and their kinds: a text is split into words, and a tagger says which kind each word is.

The embedded tagger knows lists of common words, endings and the words around; it needs no model.
Any other is a function from words to tags: `docs/captions.md` shows one around spaCy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeAlias, get_args

from instar.tasks.meta_ic.language.nouns import plural

__all__ = ["COLOURS", "TAGS", "EmbeddedTagger", "Tag", "Tagger", "Words", "split"]

Tag = Literal[
    "noun",
    "plural",
    "verb",
    "adjective",
    "adverb",
    "determiner",
    "number",
    "preposition",
    "conjunction",
    "pronoun",
    "other",
]
TAGS: tuple[str, ...] = get_args(Tag)

Tagger: TypeAlias = Callable[[list[str]], Sequence[str]]
"""Takes the words of a text, punctuation among them, and returns a tag for each: one of `TAGS`.

`noun` is one in the singular, `plural` one in the plural; `verb` is any form of a verb, except where it stands before
a noun and describes it ("a parked car": `adjective`).
"""

_WORD = re.compile(r"w/o?(?=\s)|[^\W_]+(?:['’](?!s\b)[^\W_]+)*|['’]s\b|\S", re.IGNORECASE)
_APOSTROPHES = "'’‘`´"
_QUOTES = '"“”„«»'
_HYPHENS = "-‐‑"
_SAID = {"w/": "with", "w/o": "without", "&": "and"}


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, in lists of equal length.

    `lower` are the words in small letters, `start` and `end` their places in the text, `joined` says that only a hyphen
    stands before a word, and `quoted` which word is the first between the quotation marks around it (-1: without).
    """

    raw: list[str]
    lower: list[str]
    start: list[int]
    end: list[int]
    joined: list[bool]
    quoted: list[int]


def split(text: str) -> Words:
    """The words of a text: the 's of a possessive is one of its own, and so is every mark but hyphens and quotes.

    >>> split("A dog's two-tone “hot dog”.").lower
    ['a', 'dog', "'s", 'two', 'tone', 'hot', 'dog', '.']
    """
    found = Words([], [], [], [], [], [])
    raw, lower, start, end, joined, quoted = found.raw, found.lower, found.start, found.end, found.joined, found.quoted
    hyphen, quote = False, -1
    for match in _WORD.finditer(text):
        word = match[0]
        at, to = match.span()
        if len(word) == 1 and not word.isalnum():
            touching = bool(end) and end[-1] == at
            if word in _HYPHENS and touching and raw[-1][-1].isalnum() and text[to : to + 1].isalnum():
                hyphen = True
                continue
            if word in _QUOTES:
                quote = len(raw) if quote < 0 else -1
                continue
            if word in _APOSTROPHES and not (touching and lower[-1][-1] == "s"):  # else the dogs' bowls
                continue
        raw.append(word)
        small = word.lower().replace("’", "'")
        lower.append(_SAID.get(small, small))
        start.append(at)
        end.append(to)
        joined.append(hyphen)
        quoted.append(quote)
        hyphen = False
    return found


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LISTS: dict[Tag, str] = {
    "determiner": """a all an another any both each either every half his its my neither no our some such that's the
        their these this those what which whose your""",
    "number": """dozen eight eighteen eighty eleven few fewer fifteen fifty five forty four fourteen hundred less
        many million more most multiple nine nineteen ninety numerous one seven seventeen seventy several six sixteen
        sixty ten thirteen thirty thousand three twelve twenty two various zero""",
    "preposition": """about above across after against along alongside amid among amongst around as at atop before
        behind below beneath beside besides between beyond by despite down during except for from in inside into like
        minus near next of off on onto opposite out outside over past per round since than through throughout to
        toward towards under underneath until unto up upon via with within without""",
    "conjunction": "although and because but how if nor or plus so though when where whereas whether while why yet",
    "pronoun": """anything everything he her here hers herself him himself i it itself me mine myself nobody none
        nothing ones others ourselves she something that theirs them themselves there they us we who whom you
        yourself""",
    "verb": """ain't am are aren't be been being can can't cannot could couldn't did didn't do does doesn't doing
        don't done had hadn't has hasn't have haven't having is isn't let's may might must shall should shouldn't was
        wasn't were weren't will won't would wouldn't""",
    "adverb": """abroad again ahead almost alone already also always anywhere apart aside away back backward
        backwards downstairs downward earlier else even ever everywhere far fast forward forwards high however
        indoors instead just later longer low maybe mid midair nearby never not now nowhere often once only outdoors
        overhead perhaps quite rather side sideways somewhere soon still then today together tomorrow tonight too
        upside upstairs upward very well yesterday""",
}
_CLOSED: dict[str, Tag] = {word: tag for tag, words in _LISTS.items() for word in words.split()}
"""Words of one kind, whatever stands around."""

_VERBS = _set("""accept accompany add adjust admire adorn agree aim allow appear apply approach argue arrange arrive
    ascend ask assemble assist attach attempt attend avoid await babysit bake balance bark bask bat bathe bear beg
    begin believe belong bench bend bike bite block blow board boat boil book borrow bottle bounce bow bowl break
    breathe bring brush buck build burn bury bus buy call canoe captain carry carve catch celebrate chair chase chat
    check chew choose chop clap clean climb cling close coach collapse collect come compare compete consist contain
    continue converse cook couch cover crane crash crawl create creep cross crouch crowd cry cuddle cup cut cycle
    dance dangle decorate depart depict descend describe deserve devour dig dine dip disappear discuss display dive
    dog drag draw dress dribble drift drink drive drop dry duck dunk eat emerge enjoy enter erupt examine exit
    explode explore extend eye face fall father feature feed feel ferry fight fill find finish fish fix flap flee
    flip float flow fly fold follow fork frolic fry gallop gather gaze get give glance glide glow gnaw go grab graze
    greet grill grin grind grip groom grow growl guard guide guzzle hand hang happen head hear help hide hike hit
    hold hop horse host house hover howl hug hunt hurry include inspect interact intersect invite jog join judge
    juggle jump jut kayak keep kick kiss kite kneel knock know land laugh lay lead lean leap learn leave lend let
    lick lie lift light line listen live load look loom lounge lower lunge make man march meander meet melt microwave
    mingle miss mix model mother mount move mow munch nap navigate nestle nibble notice nurse nuzzle obscure observe
    occupy offer open operate order overlook own pack paddle paint parade park partner party pass pat pause pay peck
    peek peel peer perch perform peruse pet phone pick picture pilot pitch place play plow point poke police ponder
    pop pose pour practice prance prefer prepare present press pretend protrude provide pull purr push put race raise
    ram range reach read rear receive recline referee reflect relax release rely remain remove repair resemble rest
    return ride ring rip rise roam roll row run rush sail sandwich say scamper scoop scratch scream seat see seem
    sell send serve set shake shape share shave shepherd shine ship shoot shop shoulder show sign sing sink sip sit
    skate skateboard ski skip slam sleep slice slide slip slump smash smell smile smoke snack snap sneeze sniff
    snooze snorkel snowboard snuggle soar socialize speak speed spill spin splash spoon sport spray spread spring
    sprint squat squeeze stack stalk stand stare start stay steer step stick stir stomp stop store straddle stretch
    stroll strut study stuff suck sunbathe surf surround survey swallow swat sway swim swing swoop table take talk
    taste taxi teach tear tell tend text thank think throw tie tilt toast top toss touch tour tow trail train
    transport travel treat trek trick trim trot truck try tug tumble turn twist type umpire unload use venture vie
    view visit waddle wade wag wait wake walk wander want warm wash watch water wave wear weave wed whack wheel whip
    whisper wield win wipe wish work wrap wrestle write yank yawn yell zigzag zip zoom""")
_ALSO_NOUNS = _set("""balance bat bear bench bike block board boat book bottle bow bowl brush buck bus canoe captain
    chair check chop coach cook couch cover crane cross crowd cup cycle dance display dog dress drink duck eye face
    father feature feed ferry fish float fork grill groom guard guide hand head horse host house judge kayak kite
    land lift light line load lounge man march microwave model mother mount nurse pack paddle paint parade park
    partner party pass perch pet phone picture pilot pitch plow point police press race ram range rear referee rest
    return ride ring roll row run sail sandwich scoop seat set shape shepherd ship shop shoulder show sign sink skate
    skateboard ski slice slide smoke snack snowboard spoon sport spray spread spring stack stalk stand step stop
    store stuff surf surround survey swallow swing table taxi text tie toast top tour trail train treat trick trim
    truck turn type umpire view walk watch water wave wheel wrap zip""")
"""Verbs that are nouns as well, and whose third person looks like a plural: a boy skateboards, two skateboards."""
_ALSO_SINGULAR = _set("""bark break call catch chat climb crash crawl cry cut dip dive draw drive drop fall fight
    find fix flap flip fly fold glance glide glow grin grip growl hang help hit hold hop howl hug hunt jump kick kiss
    laugh lead leap lick mix move nap order peck peek place pop pose pull push raise reach rise rush scratch shake
    share shine shoot sip skip sleep slip smell smile snap spin splash sprint start stay stick stretch stroll study
    sway swim talk taste tear throw tilt toss touch tow travel trek trot try tug twist use visit wait wake warm wash
    wear whip wish work yawn""")
"""Verbs that are nouns as well, but hardly in the plural."""
_PLAIN = _set("""carry catch chase climb cook cut drink drive eat enjoy face fall feed fly graze hit hold jump lay
    lie look paddle play pose pull push reach rest ride row run share sit skateboard ski sleep snowboard stand stop
    surf swim swing take talk throw try use wait walk watch wear work""")
"""Verbs that stand right after somebody even without their -s: "a man ride a wave", "a cat climb a tree"."""
_PAST = _set("""ate beat became began bent bit blew bought bound brought built burnt burst came caught chose clung
    crept cut dealt drank drawn driven drove drunk dug eaten fallen fed fell felt flew flown forgotten fought found
    froze frozen gave given gone got gotten grew grown held hid hidden hung hurt kept knelt knew known laden laid
    lain leant led left lit lost made meant met paid put ran rang ridden risen rode rose said sang sat saw seen sent
    set shaken shone shook shot shown shut slept slid sold spent spilt split spoke spread sprung spun stole stolen
    stood struck stuck stung sung sunk swam swept swum swung taken taught thought threw thrown told took tore torn
    underwent went woke won wore worn wound woven written wrote""")
_NOUNS = _set("""accessory air airing airport aisle ally apartment archway area arm assembly attachment attire
    auction avenue awning axle background bag ball bar barn barrel basket bat bathroom bathtub battery bay beach beak
    beam beard bed bedding bedroom bedspring beijing bell belly belonging belt bench bin blanket blessing blind bone
    book bookcase boot booth border bottom bowl box branch bread breakfast breed bridge brush bucket buggy builder
    building bulb bully bumper bun bunch burner bush butter butterfly cab cabin cabinet cable cage call camera camp
    can canal candle cap cape captain car carousel carpet carriage carrier cart carving case castle ceiling cell
    cellar center centre chain channel charger cheese church cider circle city claim claw clearing cliff cloth
    clothes clothing club coast coat coating cockpit collar color colour column compartment conductor cone console
    container coop cop cord core corner costume counter country course court cover covering crash crate crib crossing
    crossroad crosswalk crown crust curb curtain cushion cutter dealer dealership deck delivery den depot desk
    diamond dining dinner dirt dispenser dock door doorway drawer drawing dress dresser dressing driver drum duckling
    dugout dumpling dwelling ear earring edge egg enclosure end engine entrance equipment evening exhaust exhibit
    exhibition eye face fair family fan fare farm farthing faucet feed feeder feet fence field figure figurine
    filling finger fire fireplace flag floor flooring floret flower fly food foot forest fountain frame frosting fry
    fur furniture game gang garage garden gate gathering gear glass glasses globe glove goal goat goggles gown
    graffiti grass greeting ground grove guitar gym habitat hair half hall hallway hand handle handlebar handler
    hangar harbor harbour harness hat head headlight hearing heart helmet hide highway hill hitch holder hole hood
    hook hoop horn hotel hour house housing hull hut ice icing image inning intersection island italy item jacket jar
    jelly jersey juice jump jumper kennel key keyboard king kitchen knob ladder lake lamp landing lane lap launch
    lawn leaf league leash leather leg lesson lettering lid life lift light lighting lily line lining listing living
    load lock lodge lodging logo lot luggage machine map mark market marking mask mast mat match meadow meal meat
    meeting menu messenger metal middle milk mirror mitt molding monopoly monument morning motion motor moulding
    mound mountain mouth mud muffin museum napkin neck necklace net netting night nose number oar object ocean
    offering office oil omelette opening orchard outfit outing oven owner pad paddle page painting pair palm pan
    panel pants paper park parking parlor part pass pasture patch path patio patrol pattern paving paw peak pedal
    peel pen pencil photo photograph piano pie piece pile pillow pit pitch plant plastic plate platform platter
    playground plaza plumbing plunger pocket pole pond pool porch portion portrait post poster pot potato practice
    price pricing print produce program propeller property pudding pump quiche race racetrack racing rack railing
    railroad railway rally ramp range reading reed remote rental repair report resort rest restaurant restroom rib
    rice ride rider riding ring rink river road robe rock roll roof roofing room rope route rug run runway saddle
    sail sailing salad salt sand sapling sauce scaffolding scarf scene schedule school screen sculpture sea season
    seasoning seat seating section seed segment serving setting shade shading shadow shaft shape shaving shed sheet
    shelf shell shelter shelving shipping shirt shoe shop shore shorts shot shoulder show shower sibling sidewalk
    siding sightseeing silhouette size skin skirt sky sled sleeve sleigh slice slicer slip slope snow sock soil soup
    spear speed split spot spring square stable stadium stage stair stalk stall stand station statue steak steam
    steed stem step stew stick sticker stocking stool stop store strap street string stripe structure stuffing stump
    suit suitcase sun sunset supply surface surfing sweater swing switch symbol table tablecloth tag tail tailgate
    tank target tart team temple tennis tent terminal theater thing thread ticket tile time tip tire toe top topping
    tour tow tower town toy track trail trailer trash tray treat tree trick trip trolley trunk tub tubing tunnel tusk
    undergrowth uniform utensil valley van vase vegetable vehicle vent vest village wall wallpaper washer water wave
    weather wedding wedge weed wetsuit wheel whisker whistle window wine wing winter wire wiring woods world worm
    wreck writing yard yearling zipper zoo""")
"""Nouns that end like another kind of word, or whose plural looks like a verb."""
_NEVER_VERBS = _set("""awning beijing ceiling clothing duckling dumpling earring evening king morning pudding ring
    sapling sibling spring string swing thing wedding wing yearling""")
_ADJECTIVES = _set("""abandoned ablaze able adjacent adorable adrift adult aerial afloat afraid african ajar akin
    alight alike alive aloft aloof american amiss ancient angry antique aqua ashore asian asleep assorted available
    awake aware bad bald bamboo bare barefoot beautiful beige best better big bigger biggest black blank blond blonde
    blue blurry bold brave brick bright british broad broken brown bushy busy calm careful ceramic certain cheap
    checkered chinese chubby circular clean clear close closest cloudy cluttered cold colorful colourful comfortable
    commercial common complete concrete cool cordless cotton crazy cream creamy crimson crowded curious curly cute
    damp dark dead decorative deep delicious denim desolate different difficult digital dim dingy dirty double dry
    due dull dusty early eastern elaborate elderly electric electronic elegant empty english enormous entire european
    even evil excited exotic extra extreme facing famous fancy fat female fifth final first fluffy foggy formal
    fourth free french fresh frosty frozen full funny furry fuzzy gentle german giant gigantic glad glass glossy gold
    golden good gorgeous granite grassy gray great greek green grey handsome happy hard hazy healthy heavy high hilly
    historic hot huge hungry identical indian indoor industrial intact interesting international irish italian
    japanese joyful juicy junior kind knit known lacy large larger largest last lavender lazy leafy lean leather left
    light like lit little lone lonely long loose loud lovely low lush magenta main major male marble maroon married
    massive mature mechanical medieval medium messy metallic mexican mid middle military mini miniature minimal mixed
    mobile modern muddy multicolored multiple muscular musical naked narrow nasty natural navy nearby nearest neat
    new next nice nude odd official old older olive open orange oriental ornamental ornate other outdoor outside oval
    own pale panoramic partial passing pastel peaceful peach perfect personal pink pit plaid plain plastic pleasant
    plump plush polar polka poor popular porcelain portable pretty previous private professional proud public purple
    quaint quiet rainy random rare raw ready real rear rectangular red regular remote rich right ripe rocky romantic
    rough round royal rude rugged ruined rural russian rustic rusty sad safe same sandy scarlet scary scenic scruffy
    second senior separate serious several shabby shaggy shallow sharp shiny short shorter shut sick silk silly
    silver similar simple single skinny sleek sleepy slick slim slow small smaller smallest smart smooth snowy soft
    soggy solid solitary solo southern spanish special specific spectacular spicy spotted square stainless steel
    steep sticky still stone stormy straight strange striped strong stuffed stylish such sunny super sweet tabby tall
    taller tallest tan tandem tasty teal teenage tender thai thick thin third tidy tight tiny tired top topless tough
    tropical turkish turquoise typical ugly underwater unique unknown unusual upper upright urban vacant valuable
    various vast vertical vibrant victorian vintage violet visible warm wary weird western wet white whole wicker
    wide wild wireless wispy wooden wool woollen woolly wooly worn worth worthy wrong yellow young younger yummy""")
_ADJECTIVE_ENDINGS = ("ful", "less", "ous", "able", "ible", "ish", "ive", "esque", "like", "colored", "coloured")
_NO_PLURAL_ENDINGS = ("ss", "us", "is")
COLOURS = _set("""aqua beige black blue bronze brown burgundy cream crimson cyan gold golden gray green grey lavender
    magenta maroon navy orange peach pink purple red rust salmon scarlet silver tan teal turquoise violet white
    yellow""")

_WILLING = _set("""able about attempt attempting attempts begin beginning begins continue decide decides get gets
    getting going how learn learning learns like likes love loves need needs plan plans prepare prepares preparing
    ready start starting starts teach teaches teaching tries try trying used want wants""")
"""After them, 'to' leads to a verb, and else to a noun: learning to ski, next to a ski."""
_MODALS = _set("""can can't cannot could couldn't did didn't do does doesn't don't may might must shall should
    shouldn't will won't would wouldn't""")
_ONE = _set("a an another each every lone one single this")
_DEFINITE = _set("her his its that the their")
_OBJECTS = _set(_LISTS["determiner"]) | _set("her herself him himself it itself me them themselves us")
"""What stands after a verb rather than after a noun."""
_SUBJECTS = _set("he i it she that they to we which who you")
_FINITE = _set("are can had has have is was were will")
_DIRECTIONS = _set("across along around away beside by down into over past through toward towards under up")
_AFTER_ACTIVITIES = _set("area areas lot lots of sign signs space spaces zone")
_COLOURED = _set("all are bright colored dark in is light painted was were")
_THINGS = _set("""backs boards bones boots bottles bowls cages carriers doors ears eyes faces heads houses legs
    lights parts pens poles races rides seats shows signs tails tires toys tracks trainers wheels windows""")
"""Plurals that stand after animals and people too: dog bowls, horse shows."""
_RARELY_VERBS = _set("benches bottles buses chairs clocks cups dogs forks horses mans spoons tables")
"""Plurals that are a verb only where nothing else is left: a boy cups his hands."""
_BEFORE_NOUNS = _set("adult baby child father female male mother passenger police student toddler tourist")
"""People that stand before what they describe: baby bears."""
_COMPOUNDING = _set("""bathroom bedroom beer birthday bread breakfast butter cafe cake christmas city coffee dinner
    farm fire fruit garden glass house kitchen lawn leather metal milk office paper park patio picnic pizza plastic
    restaurant room salad school soccer soda soup sports steel stone street subway tea tennis toy traffic water
    wedding wine wood""")
"""Nouns that stand before another noun rather than before their verb."""

_LAST_LATIN = "\u024f"
"""Words of other scripts are no nouns of English."""
_REACH = 12
"""How many words back anything looks, so that no text takes long."""

_N, _P, _V, _B, _G, _D, _J, _R = (1 << bit for bit in range(8))
"""What a word may be: noun, plural, verb with its -s, verb without, in -ing, in -ed; adjective, adverb."""


@dataclass(eq=False)
class EmbeddedTagger:
    """Tags by lists, endings and the words around; `nouns` and `plurals` are the words of a vocabulary.

    `animate` are those that do things, `people` among them: after them, a word that may be a verb is one.

    >>> EmbeddedTagger({"dog", "boy"}, {"dogs"}, {"dog", "boy"}, {"boy"})(["A", "boy", "dogs", "a", "dog"])
    ['determiner', 'noun', 'verb', 'determiner', 'noun']
    """

    nouns: Collection[str]
    plurals: Collection[str]
    animate: Collection[str]
    people: Collection[str]
    _known: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._known = dict(_known())
        _add(self._known, self.nouns, _N)
        _add(self._known, self.plurals, _P)

    def __call__(self, words: list[str]) -> list[str]:
        return self.tag([word.lower().replace("’", "'") for word in words])

    def guesses_noun(self, word: str) -> bool:
        """Whether a word is in no list, and does not end like a verb, an adjective or an adverb."""
        return word not in self._known and word not in _CLOSED and bool(_guess(word) & (_N | _P))

    def is_third(self, word: str) -> bool:
        """Whether a verb goes with one: stands."""
        return bool(self._flags(word) & _V)

    def is_plain(self, word: str) -> bool:
        """Whether a verb goes with many: stand."""
        flags = self._flags(word)
        return bool(flags & _B) and not flags & (_G | _D)

    def tag(self, words: list[str]) -> list[str]:
        """The same as a call, for words that are in small letters already."""
        tags: list[str] = []
        for at, word in enumerate(words):
            closed = _CLOSED.get(word)
            if closed is not None:
                tags.append(closed)
            elif word[0].isdigit():
                tags.append("number")
            elif not word[0].isalpha() or word[0] > _LAST_LATIN:
                tags.append("other")
            else:
                tags.append(self._open(words, tags, at) if word.isalpha() else "noun")
        return tags

    def _flags(self, word: str) -> int:
        found = self._known.get(word)
        return _guess(word) if found is None else found

    def _names(self, word: str) -> bool:
        """Whether a word can go on with what an adjective began."""
        return word not in _CLOSED and word.isalpha() and bool(self._flags(word) & (_N | _P | _J))

    def _open(self, words: list[str], tags: list[str], at: int) -> str:
        """The tag of a word that is in no closed list."""
        flags = self._flags(words[at])
        if flags == _N:
            return "noun"
        before = tags[at - 1] if at else ""
        if flags == _P:
            return "verb" if before == "noun" and self._after_one(words, tags, at) else "plural"
        if flags & (_V | _B) and self._is_verb(words, tags, at, flags):
            return "verb"
        if flags & (_G | _D):
            return self._participle(words, at, flags, before)
        if flags & _J and (not flags & (_N | _P) or self._describes(words, tags, at)):
            return "adjective"
        if flags & _N and flags & _P:  # sheep
            first = _start(words, tags, at)
            return "noun" if first and words[first - 1] in _ONE else "plural"
        if flags & (_N | _P):
            return "noun" if flags & _N else "plural"
        return "adverb" if flags & _R else "verb" if flags else "other"

    def _participle(self, words: list[str], at: int, flags: int, before: str) -> str:
        """A form in -ing or -ed: it describes a noun, is one (a crossing), or says what is done."""
        after = words[at + 1] if at + 1 < len(words) else ""
        compound = before == "noun" and words[at - 1] not in self.nouns and after not in _OBJECTS
        led = before in ("determiner", "adjective", "number")
        if flags & _N and (compound or led or not before or after in _AFTER_ACTIVITIES):
            return "noun"
        if (led or before == "preposition") and self._names(after):
            return "adjective"
        return "adjective" if not before and flags & _D and self._names(after) else "verb"

    def _describes(self, words: list[str], tags: list[str], at: int) -> bool:
        """Whether what may be an adjective or a noun (orange, remote) is the adjective."""
        word, before, after = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
        if self._names(after):
            return not self._flags(after) & (_G | _D) or (at + 2 < len(words) and self._names(words[at + 2]))
        if word not in COLOURS:
            return at > 0 and tags[at - 1] in ("verb", "adverb")
        beside = {
            words[at - 2] if at > 1 and before in ("and", "or", ",") else before,
            words[at + 2] if at + 2 < len(words) and after in ("and", "or", ",") else "",
        }
        return bool(beside & COLOURS) or before in _COLOURED

    def _is_verb(self, words: list[str], tags: list[str], at: int, flags: int) -> bool:
        """Whether what may be a verb is one. What is no noun at all is."""
        before, word_before = (tags[at - 1], words[at - 1]) if at else ("", "")
        after = words[at + 1] if at + 1 < len(words) else ""
        if word_before == "to":
            return bool(flags & _B) and (not flags & _N or after in _OBJECTS or (at > 1 and words[at - 2] in _WILLING))
        if word_before in _SUBJECTS and not (word_before == "that" and (at < 2 or tags[at - 2] == "verb")):
            return True
        if word_before in _MODALS:
            return bool(flags & _B)
        if not flags & (_N | _P):
            return not flags & _J or before in ("noun", "plural", "pronoun", "adverb")
        if before == "noun" or (word_before in self.nouns and word_before in self.plurals):
            return self._goes_with(words, tags, at, flags, after)
        if before == "plural":
            return bool(flags & _B) and after not in ("and", "or", ",")
        if before == "adverb":
            return at > 1 and tags[at - 2] in ("noun", "plural", "pronoun") and word_before not in ("back", "side")
        if before == "conjunction":
            return bool(flags & _V) and after in _OBJECTS and "verb" in tags[-_REACH:]
        return False

    def _after_one(self, words: list[str], tags: list[str], at: int) -> bool:
        """After 'a man': nothing in the plural goes on with it, so that what looks like one is a verb."""
        first = _start(words, tags, at - 1)
        return first > 0 and words[first - 1] in _ONE and words[at - 1] in self.animate and words[at - 1] != "couple"

    def _goes_with(self, words: list[str], tags: list[str], at: int, flags: int, after: str) -> bool:
        """After one noun: the verb that goes with it, or else the head of a compound."""
        noun, first = words[at - 1], _start(words, tags, at - 1)
        determiner = words[first - 1] if first else ""
        if not flags & _V:
            if noun in self.plurals:  # sheep graze
                return after in _OBJECTS or (words[at] in _PLAIN and determiner not in _ONE)
            return noun in self.animate and (
                after in _OBJECTS or (words[at] in _PLAIN and (after in _CLOSED or not after or noun in self.people))
            )
        if noun == "couple":  # a couple skis past; a couple cups of coffee
            return after in _DIRECTIONS or after in _OBJECTS
        if determiner in _ONE or after in _OBJECTS:
            return True
        if noun in _BEFORE_NOUNS or "number" in tags[first : at - 1]:
            return not flags & _P
        if noun in self.animate:
            return not flags & _P or (words[at] not in _THINGS and words[at] not in _RARELY_VERBS)
        if determiner not in _DEFINITE:
            return not flags & _P
        # The sun sinks behind the hills, the tree bears ripe fruit; but the kitchen sinks, the train tracks are long.
        if noun in _COMPOUNDING or any(word in _FINITE for word in words[at + 1 : at + 8]):
            return False
        if after in _CLOSED or not after or self._flags(after) == _P:
            return True
        return bool(self._flags(after) & _J) and at + 2 < len(words) and self._names(words[at + 2])


def _start(words: list[str], tags: list[str], at: int) -> int:
    """Where the noun phrase that ends here begins, after its article."""
    last = at
    while at and last - at < _REACH and words[at - 1] not in _ONE:
        word, tag = words[at - 1], tags[at - 1]
        linked = (
            word in ("and", ",") and at < last and tags[at] == "adjective" and tags[at - 2 : at - 1] == ["adjective"]
        )
        if not linked and (tag not in ("noun", "adjective", "number", "adverb") or word == "not"):
            break
        at -= 1
    return at


def _add(known: dict[str, int], words: Iterable[str], flag: int) -> None:
    for word in words:
        known[word] = known.get(word, 0) | flag


@cache
def _known() -> dict[str, int]:
    """What the words of the lists may be."""
    known: dict[str, int] = {}
    _add(known, _ADJECTIVES, _J)
    _add(known, _VERBS, _B)
    _add(known, map(_third, _VERBS), _V)
    _add(known, _PAST, _D)
    _add(known, _NOUNS | _ALSO_NOUNS | _ALSO_SINGULAR, _N)
    _add(known, {plural(word) for word in _NOUNS} - _NOUNS, _P)
    _add(known, map(_third, _ALSO_NOUNS), _P)
    _add(known, (word for word in _NOUNS - _NEVER_VERBS if word.endswith("ing")), _G)
    return known


def _third(verb: str) -> str:
    """The verb after he or she."""
    if verb[-1] == "y" and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "z", "ch", "sh", "go")) else f"{verb}s"


def _guess(word: str) -> int:
    """What a word that is in no list may be, by its ending."""
    if len(word) > 3 and word.endswith("ed"):
        return _D
    if len(word) < 3:
        return 0
    if len(word) > 4:
        if word.endswith("ing"):
            return _G
        if word.endswith("ly"):
            return _R
        if word.endswith(_ADJECTIVE_ENDINGS):
            return _J
    if len(word) > 3 and word[-1] == "s" and not word.endswith(_NO_PLURAL_ENDINGS):
        return _P | _V
    return _N
