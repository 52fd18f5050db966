"""The words the grammar knows, as tables to read and extend.

The entries are read by `inflection`; the marks `|` and `*` are explained in `orthography`. What follows the
colon are the kinds a word belongs to: verbs and adjectives go with kinds of noun, so that nobody eats a book.
A fixed expression links the words that carry the same number: `la semaine:1 dernière:2` = `last:2 week:1`.
"""

from typing import Literal

from grammar.inflection import (
    Adjective,
    Aspect,
    Noun,
    Verb,
    adjective,
    english_verb,
    french_verb,
    noun,
)

Expression = tuple[str, str]
Time = Literal["past", "present", "future"]


def _lines(table: str) -> list[str]:
    return [line.strip() for line in table.strip().splitlines()]


def _pairs(table: str) -> tuple[Expression, ...]:
    """Return the pairs of a list `French = English, ...`."""
    entries = (entry.partition(" = ") for entry in table.replace("\n", " ").split(","))
    return tuple((french.strip(), english.strip()) for french, _, english in entries)


# Kinds : gender French[/plural] = English[/plural], ...
NOUNS: tuple[Noun, ...] = tuple(
    noun(entry, frozenset(kinds.split()))
    for kinds, _, entries in (
        line.partition(" : ")
        for line in _lines("""
    person adult : m homme = man/men, f femme = woman/women
    person child : m garçon = boy, f fille = girl, m enfant = child/children
    person friend : m voisin = neighbour, m ami = friend, f amie = friend
    person : m *héros = hero
    profession : m étudiant = student, f étudiante = student, m médecin = doctor, m professeur = teacher
    profession : m avocat = lawyer, f avocate = lawyer, m boulanger = baker, f infirmière = nurse
    profession : m fermier = farmer, f journaliste = journalist, m ingénieur = engineer
    profession : f artiste = artist, m policier = police officer, f actrice = actress
    profession : f chanteuse = singer
    kin : m frère = brother, f sœur = sister, m oncle = uncle, f tante = aunt, f cousine = cousin
    kin : m fils = son
    kin parent : m père = father, f mère = mother, m grand-père/grands-pères = grandfather
    animal pet : m chat = cat, m chien = dog, m lapin = rabbit
    animal : m cheval = horse, m oiseau = bird, f souris = mouse/mice, m âne = donkey
    animal : m *hibou/*hiboux = owl
    animal farm : f vache = cow
    animal wild : m loup = wolf/wolves, m lion = lion, m ours = bear, m éléphant = elephant
    food fruit : f pomme = apple, f orange = orange, f tomate = tomato
    food : m gâteau = cake, m œuf = egg, m sandwich = sandwich, f pomme de|d' terre = potato
    food : m *haricot = bean, m *homard = lobster, m légume = vegetable
    dish : m pain = bread, f viande = meat, m poisson = fish, m riz = rice
    dish national : m fromage = cheese, m chocolat = chocolate
    dish warm : f soupe = soup
    drink warm : f eau = water, m lait = milk, m café = coffee, m thé = tea
    drink national : m vin = wine
    drink : m jus de|d' orange = orange juice
    meal : m dîner = dinner, m déjeuner = lunch, m petit déjeuner = breakfast
    text gift : m livre = book, m roman = novel
    text post : f lettre = letter, m rapport = report
    text : f histoire = story
    press gift : m journal = newspaper
    gift thing : f carte = map
    furniture surface : f table = table, m bureau = desk, m lit = bed
    thing gift container opening : m sac = bag, f valise = suitcase, f boîte = box
    thing gift : f clé = key, m parapluie = umbrella
    gift post : f photo = photo/photos
    thing : m couteau = knife/knives
    thing post : m cadeau = present
    thing fragile : f tasse = cup, f assiette = plate
    thing fragile container : f bouteille = bottle
    thing fragile machine : f lampe = lamp
    thing gift machine : f montre = watch, m téléphone = telephone
    gift machine : m ordinateur = computer, m vélo = bicycle
    machine : f horloge = clock
    machine vehicle : f voiture = car
    transport : m train = train, m avion = plane, m bateau = boat
    transport vehicle : m bus = bus
    clothes : f robe = dress
    clothes worn : f chemise = shirt, m chapeau = hat, m manteau = coat, f veste = jacket
    clothes worn : f écharpe = scarf/scarves
    building home : f maison = house
    building home : f ferme = farm
    building sight : m château = castle, f église = church
    building sight at : m musée = museum
    building at : m hôtel = hotel, m restaurant = restaurant, f gare = train station
    building at : m hôpital = hospital, f école = school, f université = *university
    building at : f bibliothèque = library
    building sight : m pont = bridge
    at shop : m marché = market
    at beach : f plage = beach
    open : m jardin = garden, m parc = park, f forêt = forest, f rue = street
    room kitchen : f cuisine = kitchen
    room : f chambre = bedroom, m salon = living room, f salle de|d' bains = bathroom
    opening part : f porte = door
    opening part fragile : f fenêtre = window
    part : m mur = wall, m toit = roof
    show : m film = film, m match = match
    gathering : f réunion = meeting, f fête = party, m concert = concert
    deal : m accord = agreement, m traité = treaty, f loi = law, m projet = project
    deal : m programme = programme
    area : f zone = area, f politique = policy, f union = *union
    institution : f assemblée = assembly, m parlement = parliament, f commission = commission
    institution : m conseil = council
    """)
    )
    for entry in entries.split(", ")
)

# Adjectives before the noun in French; everywhere in English.
_PRECEDING = """
    petit petite = small : animal thing clothes building room furniture
    grand grande = big : animal thing building room furniture open
    beau|bel belle = beautiful : building clothes open sight pet
    nouveau|nouvel nouvelle = new : machine press clothes profession deal area text absolute
    vieux|vieil vieille = old : adult building machine animal clothes furniture
    jeune jeune = young : adult profession pet
    bon bonne = good : text dish food profession drink show
    joli jolie = pretty : clothes room home thing
    gros grosse = fat : pet farm
    long longue = long : text show gathering
"""
_FOLLOWING = """
    rouge rouge = red : clothes vehicle thing colour
    vert verte = green : clothes vehicle thing colour
    bleu bleue = blue : clothes vehicle thing colour
    noir noire = black : clothes vehicle thing pet colour
    blanc blanche = white : clothes vehicle furniture pet colour part
    jaune jaune = yellow : clothes vehicle thing colour
    gris grise = grey : clothes vehicle pet colour part
    cher chère = expensive : clothes machine gift furniture
    moderne moderne = modern : building machine furniture
    utile utile = *useful : machine press deal
    cassé cassée = broken : fragile machine absolute
    vide vide = empty : container absolute
    intéressant intéressante = interesting : text show gathering sight press
    difficile difficile = difficult : text deal
    drôle drôle = funny : text show
    célèbre célèbre = famous : sight
    dangereux dangereuse = dangerous : wild
    intelligent intelligente = intelligent : person profession kin name
    gentil gentille = kind : person profession kin name
    timide timide = shy : person kin name
    patient patiente = patient : person profession kin name
    poli polie = polite : person profession kin name
    fatigué fatiguée = tired : person kin name mood
    malade malade = sick : person kin name pet mood
    heureux heureuse = happy : person kin name mood
    triste triste = sad : person kin name mood
    inquiet inquiète = worried : person kin name mood
    délicieux délicieuse = delicious : food dish drink absolute
    frais fraîche = fresh : food dish
    mûr mûre = ripe : fruit
    chaud chaude = hot : warm
    froid froide = cold : warm
    propre propre = clean : clothes room
    sale sale = dirty : clothes room vehicle
    important importante = important : deal area gathering
    nécessaire nécessaire = necessary : deal area absolute
    français française = French : profession national vehicle origin state
    anglais anglaise = English : profession vehicle origin
    allemand allemande = German : profession vehicle origin state
    italien italienne = Italian : profession national vehicle origin state
    espagnol espagnole = Spanish : profession national origin state
    économique économique = economic : sector
    monétaire monétaire = monetary : sector
    commercial commerciale = commercial : sector
    agricole agricole = agricultural : sector
    social sociale = social : sector
    industriel industrielle = industrial : sector
    européen européenne = *European : region state
    national nationale = national : region
    international internationale = international : region
    canadien canadienne = Canadian : region state
"""
ADJECTIVES: tuple[Adjective, ...] = tuple(
    adjective(entry, precedes)
    for table, precedes in ((_PRECEDING, True), (_FOLLOWING, False))
    for entry in _lines(table)
)

PEOPLE = ("person", "profession", "kin", "name")

# The six forms of the present, the past participle and the stem of the future.
_IRREGULAR: dict[str, list[str]] = {
    line.split()[0]: line.split()[1:]
    for line in _lines("""
    aller vais vas va allons allez vont allé ir
    avoir ai as a avons avez ont eu aur
    boire bois bois boit buvons buvez boivent bu boir
    connaître connais connais connaît connaissons connaissez connaissent connu connaîtr
    construire construis construis construit construisons construisez construisent construit construir
    courir cours cours court courons courez courent couru courr
    devoir dois dois doit devons devez doivent dû devr
    dire dis dis dit disons dites disent dit dir
    dormir dors dors dort dormons dormez dorment dormi dormir
    envoyer envoie envoies envoie envoyons envoyez envoient envoyé enverr
    faire fais fais fait faisons faites font fait fer
    lire lis lis lit lisons lisez lisent lu lir
    ouvrir ouvre ouvres ouvre ouvrons ouvrez ouvrent ouvert ouvrir
    partir pars pars part partons partez partent parti partir
    pleuvoir pleus pleus pleut pleuvons pleuvez pleuvent plu pleuvr
    pouvoir peux peux peut pouvons pouvez peuvent pu pourr
    prendre prends prends prend prenons prenez prennent pris prendr
    recevoir reçois reçois reçoit recevons recevez reçoivent reçu recevr
    rire ris ris rit rions riez rient ri rir
    savoir sais sais sait savons savez savent su saur
    suivre suis suis suit suivons suivez suivent suivi suivr
    voir vois vois voit voyons voyez voient vu verr
    vouloir veux veux veut voulons voulez veulent voulu voudr
    écrire écris écris écrit écrivons écrivez écrivent écrit écrir
    être suis es est sommes êtes sont été ser
    """)
}


def _verbs(aspect: Aspect, table: str) -> tuple[Verb, ...]:
    """Return the verbs of entries `French = English : subjects [> objects] [@ places]`."""
    verbs = []
    for entry in _lines(table):
        rest, _, places = entry.partition(" @ ")
        words, _, frame = rest.partition(" : ")
        french, _, english = words.partition(" = ")
        subjects, _, objects = frame.partition(" > ")
        verbs.append(
            Verb(
                french=french_verb(french, _IRREGULAR),
                english=english_verb(english),
                aspect=aspect,
                subjects=_kinds(subjects),
                objects=_kinds(objects),
                places=_kinds(places),
            )
        )
    return tuple(verbs)


def _kinds(field: str) -> tuple[str, ...]:
    return tuple(field.replace("people", " ".join(PEOPLE)).split())


TRANSITIVE = (
    *_verbs(
        "action",
        """
        manger = eat/ate/eaten : people > food dish @ room open
        boire = drink/drank/drunk : people > drink @ room
        préparer = prepare : people > meal @ kitchen
        acheter:achèt = buy/bought : people > food dish thing gift clothes machine @ shop
        vendre = sell/sold : people > gift vehicle
        lire = read/read : people > text press @ room open
        écrire = write/wrote/written : people > text @ room
        regarder = watch : people > show animal @ open
        chercher = look for : people > thing clothes pet person @ room open
        aider = help : people > people
        attendre = wait for : people > people transport @ open at
        écouter = listen to : people > people
        suivre = follow : people > person profession animal
        réparer = repair : people > machine
        laver = wash : people > clothes vehicle
        porter = wear/wore/worn : people > worn
        nettoyer:nettoi = clean : people > room
        visiter = visit : people > sight
        ouvrir = open : people > opening
        fermer = close : people > opening
        construire = build/built : people > home
        """,
    ),
    *_verbs(
        "event",
        """
        trouver = find/found : people > thing clothes gift @ room open
        rencontrer = meet/met : people > people @ at open
        inviter = invite : people > person profession kin name
        recevoir = receive : people > post
        prendre = take/took/taken : people > transport
        """,
    ),
    *_verbs(
        "accident",
        """
        casser = break/broke/broken : people > fragile
        oublier = forget/forgot/forgotten : people > thing clothes @ at
        perdre = lose/lost : people > thing clothes @ open at
        """,
    ),
    *_verbs(
        "perception",
        """
        voir = see/saw/seen : people > people animal transport @ open at
        entendre = hear/heard : people > people animal
        """,
    ),
    *_verbs(
        "state",
        """
        connaître = know/knew/known : people > people
        avoir = have/had : people > gift pet vehicle
        """,
    ),
)
INTRANSITIVE = (
    *_verbs(
        "action",
        """
        dormir = sleep/slept : people animal @ room
        manger = eat/ate : people animal @ room open
        travailler = work : people @ room at
        rire = laugh : people
        courir = run/ran : people pet @ open
        nager = swim/swam : people @ beach
        marcher = walk : people @ open
        chanter = sing/sang : people @ room open
        danser = dance : people @ room open
        pleurer = cry : people @ room
        jouer = play : child pet @ open room
        parler = talk : people @ room open at
        se|s' lever:lèv = get/got up : people
        se|s' réveiller = wake/woke up : people
        se|s' reposer = rest : people @ room open
        se|s' promener:promèn = go/went for a walk : people @ open
        se|s' habiller = get/got dressed : people
        se|s' coucher = go/went to bed : people
        """,
    ),
    *_verbs(
        "event",
        """
        arriver+être = arrive : people transport @ at
        partir+être = leave/left : people transport
        """,
    ),
    *_verbs("accident", "tomber+être = fall/fell : people @ open room"),
)
# Something is given to somebody; the objects are what is given.
GIVING = _verbs(
    "action",
    """
    donner = give/gave/given : people > gift
    montrer = show/showed/shown : people > gift post
    envoyer = send/sent : people > post
    apporter = bring/brought : people > gift drink
    """,
)
# Likes and dislikes are for a whole kind: j'aime le café, I like coffee.
TASTES = _verbs(
    "state",
    """
    aimer = like : people > food dish drink animal
    adorer = love : people > food dish drink animal
    """,
)
LAWMAKING = _verbs(
    "event",
    """
    signer = sign : institution > deal
    adopter = adopt : institution > deal
    présenter = present : institution > deal
    rejeter:rejett = reject : institution > deal
    """,
)
REPORTING = _verbs(
    "state",
    """
    penser = think/thought : people
    savoir = know/knew/known : people
    espérer:espèr = hope : people
    """,
) + _verbs("perception", "dire = say/said : people")
(BE, AVOIR_AS_BE, FAIRE_AS_BE) = _verbs(
    "state",
    """
    être = be/was/been : people
    avoir = be/was/been : people
    faire = be/was/been : weather
    """,
)
WEATHER = _verbs(
    "action",
    """
    pleuvoir = rain : weather
    neiger = snow : weather
    """,
)
(LIVE,) = _verbs("state", "habiter = live : people")
(GO, STAY) = _verbs(
    "action",
    """
    aller+être = go/went : people
    rester+être = stay : people
    """,
)
(WANT, CAN, MUST) = _verbs(
    "state",
    """
    vouloir = want : people
    pouvoir = can/could : people
    devoir = must/must : people
    """,
)

NAMES: tuple[tuple[str, bool], ...] = tuple(  # name, feminine
    (name, feminine)
    for names, feminine in (
        ("Pierre Paul Thomas Antoine Henri Louis Nicolas Olivier", False),
        ("Marie Sophie Claire Julie Anne Emma Isabelle Camille", True),
    )
    for name in names.split()
)
CITIES = _pairs("""
    Paris = Paris, Londres = London, Rome = Rome, Bruxelles = Brussels, Genève = Geneva,
    Athènes = Athens, Lisbonne = Lisbon
""")
COUNTRIES: tuple[tuple[str, str, str], ...] = (  # in or to the country, its name, the English name
    ("en", "France", "France"),
    ("en", "Italie", "Italy"),
    ("en", "Espagne", "Spain"),
    ("en", "Allemagne", "Germany"),
    ("à le", "Portugal", "Portugal"),
    ("à le", "Canada", "Canada"),
    ("à le", "Japon", "Japan"),
    ("à les", "États-Unis", "the United States"),
)
NUMBERS = _pairs("""
    deux = two, trois = three, quatre = four, cinq = five, six = six, sept = seven, *huit = eight,
    neuf = nine, dix = ten, *onze = eleven, douze = twelve
""")
MONTHS = _pairs("""
    janvier = January, février = February, mars = March, avril = April, mai = May, juin = June,
    juillet = July, août = August, septembre = September, octobre = October, novembre = November,
    décembre = December
""")
DAYS = _pairs("""
    lundi = Monday, mardi = Tuesday, mercredi = Wednesday, jeudi = Thursday, vendredi = Friday,
    samedi = Saturday, dimanche = Sunday
""")
# When something happens, in words that never change.
WHEN: dict[Time, tuple[Expression, ...]] = {
    "past": (
        ("hier:1", "yesterday:1"),
        ("hier:1 soir:2", "yesterday:1 evening:2"),
        ("ce:1 matin:2", "this:1 morning:2"),
        ("la semaine:1 dernière:2", "last:2 week:1"),
        ("le|l' été:1 dernier:2", "last:2 summer:1"),
    ),
    "present": (
        ("maintenant:1", "now:1"),
        ("en:1 ce:2 moment:3", "at:1 the:2 moment:3"),
        ("aujourd'hui:1", "today:1"),
    ),
    "future": (
        ("demain:1", "tomorrow:1"),
        ("demain:1 matin:2", "tomorrow:1 morning:2"),
        ("ce:1 soir:2", "this:1 evening:2"),
        ("la semaine:1 prochaine:2", "next:2 week:1"),
        ("le|l' année:1 prochaine:2", "next:2 year:1"),
    ),
}
HABITS: tuple[Expression, ...] = (
    ("tous:1 les:1 jours:2", "every:1 day:2"),
    ("chaque:1 matin:2", "every:1 morning:2"),
    ("le:1 samedi:1", "on:1 Saturdays:1"),
    ("le:1 dimanche:1", "on:1 Sundays:1"),
)
FREQUENCY = _pairs("souvent = often, parfois = sometimes, rarement = rarely")
NEGATIONS = _pairs("pas = not, plus = no longer, jamais = never")
DEGREES = _pairs("très = very, trop = too, assez = quite")
# Avoir faim is to be hungry.
FEELINGS: dict[str, str] = {
    "faim": "hungry",
    "soif": "thirsty",
    "froid": "cold",
    "chaud": "hot",
    "peur": "afraid",
}
# What a feeling makes people do.
MOTIVES: dict[str, tuple[str, ...]] = {
    line.split(" : ")[0]: tuple(line.split(" : ")[1].split())
    for line in _lines("""
    dormir : fatigué malade
    reposer : fatigué malade chaud
    coucher : fatigué malade froid
    pleurer : triste fatigué peur inquiet
    rire : heureux
    chanter : heureux
    danser : heureux
    manger : faim
    courir : peur froid inquiet
    partir : fatigué malade triste peur
    """)
}
SURFACE_POSITIONS = _pairs("sur = on, sous = under")
POSITIONS = _pairs("devant = in front of, derrière = behind, près de|d' = near, à côté de|d' = next to")
