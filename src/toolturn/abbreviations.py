"""Words that carry a full stop without ending a sentence, by language.

Three kinds, since they are judged differently: ``never`` end a sentence (titles, "for example"), ``number`` words do
not before a number (``No. 5``, ``p. 12``) and may otherwise, ``may`` ones end it when a capital follows. Written in
lower case without their last stop. Shapes that need no list, such as initials and words without a vowel, are judged
in :mod:`toolturn.splitter`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Abbreviations(NamedTuple):
    """The words of a language, or of several.

    Args:
        never: After them a sentence always goes on.
        number: A number after them belongs to them.
        may: They end a sentence when a capital follows.
        acronym: As ``may``, but only when the capital begins a word that often begins a sentence.
        starters: Words that often begin a sentence.
    """

    never: frozenset[str]
    number: frozenset[str]
    may: frozenset[str]
    acronym: frozenset[str]
    starters: frozenset[str]


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text between blanks.

    Args:
        text: Words and blanks.
    """
    return frozenset(text.split())


# language: (never, number, may, acronym)
_WORDS: dict[str, tuple[str, str, str, str]] = {
    "en": (
        "mr mrs ms messrs mx dr prof st mt ft gen col maj capt cmdr lt sgt cpl adm brig rev hon sen rep gov pres supt "
        "asst assoc vs viz cf e.g i.e approx esp incl excl fr bros",
        "no nos fig figs eq eqs sec ch chap vol p pp pg art ver jan feb mar apr jun jul aug sep sept oct nov dec "
        "mon tue tues wed thu thur thurs fri sat sun ext ca c dept rm apt",
        "etc et.al al a.m p.m a.d b.c b.c.e c.e min max hr hrs mins secs ave blvd rd est",
        "inc ltd corp co llc jr sr esq ph.d m.d b.a m.a b.sc m.sc d.c",
    ),
    "de": (
        "hr hrn fr frl dr prof dipl dipl.-ing ing mag st bzw ggf evtl inkl exkl zzgl vgl bspw sog geb gest mio mrd z.b "
        "d.h u.a v.a i.d.r m.e o.ä u.ä z.t i.a u.u s.o s.u n.chr v.chr b.sc m.sc ehem kath evang bes insb jur med rer "
        "nat phil gem lt dgl ung dt engl frz röm griech lat allg österr schweiz a.d v z",
        "nr art abs abb kap bd s ca tel hausnr pos ziff lfd jan feb febr mär apr jun jul aug sep sept okt nov dez mo "
        "di mi do fr sa so aufl jg jh min std sek §",
        "usw etc u.s.w usf u.v.m str pl i.r u.a.m max",
        "",
    ),
    "fr": (
        "m mm mme mmes mlle mlles mgr dr drs pr prof me st ste sts stes cf env éd p.ex p.-ex c.-à-d c.à.d av apr j.-c "
        "hon gén col lt cdt cap ing bd boul",
        "p pp art fig vol chap no nos n t tél janv févr avr juil sept oct nov déc lun mar mer jeu ven sam dim §",
        "etc cie min max",
        "s.a s.a.r.l",
    ),
    "es": (
        "ee sr sra sres sras srta dr dra dres prof profa d da dña lic ing arq gral cnel tte capt sto sta p.ej ej vs "
        "aprox excmo excma ilmo ilma fdo pdte pbro mons rvdo ee hnos av avda",
        "núm nro n nº pág págs p pp art fig vol cap tel tfno c izq dcha ene feb mar abr may jun jul ago sep "
        "sept oct nov dic",
        "etc ud uds vd vds a.m p.m a.c d.c s.a.c máx mín",
        "ee.uu uu s.a s.l cía",
    ),
    "it": (
        "sig sigg sig.ra sig.na sig.re dott dott.ssa dr prof prof.ssa avv ing geom rag arch on mons gen col cap ten "
        "mar p.es es ad.es cfr vs gent egr spett ill s",
        "n nr num art pag pagg p pp fig vol cap tel ca v sec gen feb mar apr mag giu lug ago set sett ott nov dic",
        "ecc etc a.c d.c max min",
        "s.p.a s.r.l s.n.c",
    ),
    "pt": (
        "sr sra srs sras srta dr dra drs dras prof profa eng arq exmo exma ilmo ilma sto sta gen cel cap ten d p.ex "
        "ex vs aprox lic av",
        "n nº núm pág págs p pp art fig vol cap tel r jan fev mar abr mai jun jul ago set out nov dez",
        "etc a.c d.c máx mín a.m p.m",
        "ltda lda cia s.a e.u.a",
    ),
    "nl": (
        "dhr mevr mw mej mr mrs dr drs prof ir ing ds bijv bv o.a d.w.z m.b.t t.a.v t.o.v i.v.m m.a.w n.a.v z.g zgn "
        "evt incl excl resp vgl a.h.w o.l.v t.g.v st jhr",
        "nr nrs blz p pp art afb fig dl ca tel jan feb mrt apr mei jun jul aug sept okt nov dec ong",
        "enz etc e.d e.a a.u.b min max m.i",
        "n.v b.v",
    ),
    "pl": (
        "dr hab prof mgr inż lic lek ks św bł o br np m.in tzn tj tzw ul pl al os godz im ok woj pow gm hr red gen płk "
        "mjr kpt por kol ob p pp wg zob por",
        "nr str s rys tab art ust pkt t tel w r poz",
        "itd itp etc wiek zł gr r w tys mln mld n.e p.n.e cd i.in",
        "",
    ),
    "ru": (
        "г-н г-жа г-на г-ну гр тов акад проф доц д-р др.-инж инж им т.е т.к т.н т.о напр см ср ул пр пер пл пос дер "
        "св о стр-во обл респ нач зам ген полк кап лейт сокр букв греч лат англ нем фр итал",
        "№ стр с рис табл гл ст п пп т тт разд д кв корп тел янв февр фев апр авг сент сен окт нояб ноя дек ок",
        "т.д т.п др пр гг г в вв руб коп тыс млн млрд трлн н.э км кг мин сек ч",
        "",
    ),
    "uk": (
        "п пп акад проф доц інж ім т.зв напр див пор вул просп пл пров буд м с смт обл р-н св тобто гр ін",
        "№ стор с рис табл гл ст п т кв тел січ лют бер квіт трав черв лип серп вер жовт лист груд",
        "т.д т.п ін рр р ст грн коп тис млн млрд н.е км кг хв сек год",
        "",
    ),
    "cs": (
        "dr mudr judr phdr rndr ing mgr bc prof doc p pí sl sv např tj tzn tzv resp popř cca ul nám tř vč event angl "
        "něm lat gen plk kpt por",
        "č čís str s obr tab odst kap tel §",
        "atd apod aj mj kč mil tis mld r stol n.l př.n.l max min",
        "a.s s.r.o",
    ),
    "sv": (
        "dr prof doc t.ex bl.a d.v.s dvs s.k fr.o.m t.o.m f.d resp inkl exkl jfr kungl st fil",
        "nr s sid kap fig tel kl ca jan feb mar apr jun jul aug sep sept okt nov dec mån tis ons tors fre lör sön",
        "osv o.s.v m.m m.fl etc e.kr f.kr max min",
        "",
    ),
    "da": (
        "dr prof hr fr frk f.eks fx bl.a dvs d.v.s hhv inkl ekskl evt jf iht pga ang vedr cand mag st",
        "nr s kap fig tel kl ca jan feb mar apr jun jul aug sep sept okt nov dec",
        "osv m.m m.fl mv etc e.kr f.kr mio mia kr",
        "a/s",
    ),
    "nb": (
        "dr prof hr fr frk f.eks bl.a dvs d.v.s hhv inkl ekskl ev evt jf jfr pga ang vedr cand st",
        "nr s kap fig tlf kl ca jan feb mar apr jun jul aug sep sept okt nov des",
        "osv m.m m.fl mv etc e.kr f.kr mill mrd kr",
        "a/s",
    ),
    "fi": (
        "esim ks vrt toht prof dos hra rva nti tri mm ym ns eli ent synt k.o ts",
        "n nro no s ss luku kuva klo puh",
        "jne yms ym milj mrd eaa jaa",
        "",
    ),
    "hu": (
        "dr ifj özv id prof pl ún vö ill kb stb.-i szt gr br",
        "sz köt old évf tel jan febr márc ápr máj jún júl aug szept okt nov dec u",
        "stb kft rt zrt nyrt i.e i.sz",
        "",
    ),
    "ro": (
        "dl dlui dna d-na d-l d-ra dr prof ing av conf lect sf ex de.ex cca aprox resp str bd acad gen col",
        "nr art alin pag p fig vol cap tel ian feb mar apr iun iul aug sept oct noi nov dec",
        "etc ș.a ș.a.m.d d.hr î.hr mil mld",
        "s.a s.r.l",
    ),
    "tr": (
        "dr prof doç yrd av sn öğr arş gör uzm op müh alb gen bkz örn mah cad sok apt st hz",
        "no nr s sf sh böl şek tel cilt yy",
        "vb vs vd çev ed t.c m.ö m.s",
        "a.ş ltd şti",
    ),
    "el": (
        "κ κα κκ δρ καθ π.χ λ.χ δηλ βλ πρβλ αγ οσ αρχ λεωφ οδ",
        "αρ σελ σ τηλ κεφ εικ πιν τόμ ιαν φεβ μαρ απρ ιουν ιουλ αυγ σεπ οκτ νοε δεκ",
        "κ.λπ κλπ κ.ά κ.α μ.χ π.χρ π.μ μ.μ",
        "α.ε",
    ),
    "hi": ("डॉ डा श्री सुश्री प्रो पं मो कु स्व इंजी एड", "नं सं पृ", "", ""),
    "bn": ("ড ডা মো মোঃ মি প্রফেসর অধ্যাপক", "নং পৃ", "", ""),
    "ar": ("د أ م أ.د ا.د ص.ب ت", "ص ج رقم", "إلخ الخ", ""),
    "fa": ("د م", "ص ج", "الخ", ""),
    "he": ("פרופ גב מר", "מס עמ", "וכו", ""),
}
_WORDS["no"] = _WORDS["nn"] = _WORDS["nb"]

_STARTERS = {
    "en": "i i'm i'll i've he she it it's its they we you this that that's these those there here the a an my your his "
    "her our their who what when where why how which would could should can do does did is are was were will if in "
    "on at by for from after before since while although though but and so then now however also please let yes no "
    "not as some many most all both each every with without one two another next first finally meanwhile today",
    "de": "ich er sie es wir ihr der die das den dem ein eine einen dies diese dieser dieses das wer was wann wo warum "
    "wie welche kann soll darf möchten ist sind war wenn im in am an auf bei für von nach vor seit aber und so dann "
    "jetzt hier heute morgen ja nein auch bitte",
    "fr": "je il elle on nous vous ils elles le la les un une des ce cette ces c'est qui que quand où pourquoi comment "
    "si dans en au aux sur par pour après avant mais et alors maintenant ici oui non voulez",
    "es": "yo él ella ellos nosotros usted el la los las un una este esta esto eso es qué quién cuándo dónde cómo si "
    "en por para después antes pero y entonces ahora aquí sí no también",
    "it": "io lui lei noi voi loro il lo la i gli le un una questo questa è chi che cosa quando dove perché come se in "
    "nel per dopo prima ma e allora ora qui sì no anche",
    "pt": "eu ele ela nós você eles elas o a os as um uma este esta isto isso é quem que quando onde como se em no na "
    "por para depois antes mas e então agora aqui sim não também",
    "nl": "ik hij zij ze het we wij jullie u de een dit dat deze die wie wat wanneer waar waarom hoe als in op bij "
    "voor van na maar en dus dan nu hier ja nee ook",
}

# Words of one language that are common words of another: they count only where the language is known.
_ONLY_KNOWN = words_of(
    "me on arch es ill mar ten cap gen ad.es ex bes med nat gem ung lat o p br os im s r w i d m a id pl al por kol ob "
    "ts ns eli ent mm no n de.ex str bd hon cf v z c t u"
)
_WHERE_UNKNOWN = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "uk", "sv", "da", "el", "hi", "bn", "ar", "he")


@cache
def abbreviations(language: str | None) -> Abbreviations:
    """Return what is known of a language.

    Args:
        language: A lower-case two-letter code; where it is None or not known, the common words of many languages.
    """
    codes = (language,) if language in _WORDS else _WHERE_UNKNOWN
    kinds: list[set[str]] = [set(), set(), set(), set()]
    for code in codes:
        assert code is not None
        for kind, words in zip(kinds, _WORDS[code], strict=True):
            kind.update(words.split())
    never, number, may, acronym = kinds
    starters = {word for code in codes if code in _STARTERS for word in _STARTERS[code].split()}
    if len(codes) > 1:
        never -= _ONLY_KNOWN - set(_WORDS["en"][0].split())
        may -= _ONLY_KNOWN
    return Abbreviations(*(frozenset(words) for words in (never, number, may, acronym, starters)))
