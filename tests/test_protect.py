import sys
import time
from itertools import pairwise

import pytest
import regex
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from regard.text.normalize import trace_normalize
from regard.text.protect import NUM_ATTEMPTS, items, missing, stand_ins, substitute, written

any_text = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=())),  # lone surrogates too
    st.text(alphabet="ab%s{}$()`<=[_0123.,:/ @h\u00a0\u0301👍🏽\u200d🇫🇷\ufe0f한만\ud83d\x00", max_size=100),
    st.lists(
        st.sampled_from(
            [
                "https://a.b/c",
                "me@a.org",
                "a_b",
                "`x`",
                "5 €",
                "%s",
                "{0}",
                "😀",
                "🇰🇷",
                "1 992,50",
                "25",
                "Tom",
                "X",
                "et",
            ]
        )
    ).map(" ".join),
)


def found(text, kind):
    assert all(item.text == text[slice(*item.span)] for item in items(text))
    return [item.text for item in items(text) if item.kind == kind]


def lost(source, target):
    return [item.text for item in missing(source, target)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "See https://a.b/c?d=e&f=1%20x#g. Or (http://x.org/), www.site.fr!",
            ["https://a.b/c?d=e&f=1%20x#g", "http://x.org/", "www.site.fr"],
        ),
        ("https://en.wikipedia.org/wiki/Foo_(bar), oui", ["https://en.wikipedia.org/wiki/Foo_(bar)"]),
        ("https://a.b/c에서 me@a.org으로", ["https://a.b/c", "me@a.org"]),
        ("Write to jürgen.o+x@mail.example.org.", ["jürgen.o+x@mail.example.org"]),
        ("a @ b, http:// and @name stay words", []),
    ],
)
def test_addresses_are_found_without_the_punctuation_after_them(text, expected):
    assert found(text, "address") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "%s %d, %i; %1$s %(name)d %.2f %05d %ld %@",
            ["%s", "%d", "%i", "%1$s", "%(name)d", "%.2f", "%05d", "%ld", "%@"],
        ),
        ("%s님, %d개, 48 %s", ["%s", "%d", "%s"]),
        (
            "{name} {0} {0:.2f} {} {user.name!r} {{name}} {{ name }}",
            ["{name}", "{0}", "{0:.2f}", "{}", "{user.name!r}", "{{name}}", "{{ name }}"],
        ),
        ("${VAR} $(VAR) %{count} #{x}", ["${VAR}", "$(VAR)", "%{count}", "#{x}"]),
        ("50% des gens, 50 %ige, 5 % d'eau, 100%.", []),
        ("{ a, b } and $(5) and {two words}", []),
    ],
)
def test_placeholders_are_found_and_percentages_are_none(text, expected):
    assert found(text, "placeholder") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Call :func:`open` with ``None`` or `x y`.", [":func:`open`", "``None``", "`x y`"]),
        (
            "os.path.join(), base.__index__ and call_soon().",
            ["os.path.join()", "base.__index__", "call_soon()"],
        ),
        ('a <b>bold</b> <a href="x">word</a>', ["<b>", "</b>", '<a href="x">', "</a>"]),
        ("Use --verbose or --v=5 (or $HOME).", ["--verbose", "--v=5", "$HOME"]),
        (
            "In /usr/bin/x, ~/a/b, C:\\Windows\\x and spam.py.",
            ["/usr/bin/x", "~/a/b", "C:\\Windows\\x", "spam.py"],
        ),
        ("onClick={run}, a[0], dict[str][str]: x == y", ["onClick={run}", "a[0]", "dict[str][str]", "=="]),
        (
            "useState in JavaScript, IPv4, UTF-8, C99, 0x03A0",
            ["useState", "JavaScript", "IPv4", "UTF-8", "C99", "0x03A0"],
        ),
        ("os_path를 spam.py를 run()을 x=5를", ["os_path", "spam.py", "run()", "x=5"]),
        ("fichier(s) et/ou 90 km/h, --dit-on-- [mot entre] etc.Puis l'été peut-être 2 + 3 = 5", []),
    ],
)
def test_code_is_found_and_prose_is_none(text, expected):
    assert found(text, "code") == expected


def test_amounts_are_found_with_their_currency_and_may_say_it_in_words():
    assert found("1 234,56 € or $5, US$ 12,000 and 3£.", "amount") == ["1 234,56 €", "$5", "$ 12,000", "3£"]
    assert (
        lost("Il coûte 1 234,56 €", "It costs €1,234.56") == lost("5 $ ou 3 £", "5 dollars or 3 pounds") == []
    )
    assert lost("Il coûte 1 234,56 €", "It costs 1,234.56") == ["1 234,56 €"]
    assert lost("12.5 or 1,992 at 14:30 for $3.25", "125 ou 1992 à 14 h 30 pour 325 $") == ["12.5", "$3.25"]
    assert lost("12.5 and 1.234", "12,5 et 1 234") == []
    assert found("-3,5 °C, 90° and 100°F", "amount") == ["3,5 °C", "90°", "100°F"]
    assert lost("20 °C", "20 degrees") == [] and lost("20 °C", "20 August") == ["20 °C"]


def test_backticks_are_seen_where_they_were_made_apostrophes():
    source = trace_normalize("Appelez  `open` l’ami", fold_quotes=True)
    assert source.text == "Appelez 'open' l'ami"
    assert written(source) == "Appelez `open` l'ami"


def test_emoji_are_found_whole():
    expected = ["😀", "👍🏽", "👨‍👩‍👧", "🇫🇷", "🇰🇷", "❤️", "❤", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "☀️"]
    assert found(" a".join(expected), "emoji") == expected
    assert found("🇫🇷🇰🇷1️⃣", "emoji") == ["🇫🇷", "🇰🇷", "1️⃣"]
    assert found("© ® ™ 1 # * → ½ 〰 ㊗ 한 é", "emoji") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1,992.50 or 1 992,50 or 1\u202f992,50 or 1\u00a0992 or 1'992",
            ["1,992.50", "1 992,50", "1\u202f992,50", "1\u00a0992", "1'992"],
        ),
        ("at 12:30, 3/4 of v2.13.0; 50%.", ["12:30", "3/4", "v2.13.0", "50"]),
        ("2017 300 and 12 3456", ["2017", "300", "12", "3456"]),
        ("2017년 5월, ٣٫٥ and １９９２", ["2017", "5", "٣٫٥", "１９９２"]),
        ("GPT4, x1.5 and H2O are names; 20th is not", ["20"]),
    ],
)
def test_numbers_are_found_with_the_separators_inside_them(text, expected):
    assert found(text, "number") == expected


@settings(deadline=None)
@given(text=any_text)
def test_items_are_in_order_and_never_overlap(text):
    result = items(text)
    assert all(left.span[1] <= right.span[0] for left, right in pairwise(result))
    assert all(item.text and item.text == text[slice(*item.span)] for item in result)


@settings(deadline=None)
@given(text=any_text)
def test_nothing_is_missing_from_the_text_itself(text):
    assert missing(text, text) == []


@settings(deadline=None)
@given(text=any_text)
def test_all_but_small_whole_numbers_is_missing_from_an_empty_translation(text):
    assume(not set("만억조万萬亿億兆千百천백") & set(text))
    small = [
        item for item in items(text) if item.text.isdecimal() and len(item.text) < 3 and int(item.text) <= 12
    ]
    assert missing(text, "") == [item for item in items(text) if item not in small]


def test_what_is_not_there_as_often_is_missing():
    assert lost("%s and %s 😀 me@a.org", "%s et 😀") == ["%s", "me@a.org"]
    assert missing("%s and %s", "%s et")[0].span == (7, 9)
    assert lost("See http://a.b", "Voir http://a.b/c") == ["http://a.b"]
    assert lost("👍🏽 100 and 100", "👍 100") == ["👍🏽", "100"]


@pytest.mark.parametrize(
    "number", ["1,992.50", "1 992,50", "1.992,50", "1992.50", "1'992.50", "١٬٩٩٢٫٥٠", "１９９２.５０"]
)
def test_numbers_may_be_written_as_the_language_writes_them(number):
    assert lost("It costs 1,992.50 euros", f"Cela coûte {number} euros") == []
    assert lost(f"Cela coûte {number} euros", "It costs 1,992.60 euros") == [number]


def test_a_number_in_parts_is_found_and_a_part_of_a_number_is_not():
    assert lost("at 14:30, 100 200 300", "à 14 h 30, 100, 200, 300") == []
    assert lost("992 and 50", "19992 and 150") == ["992", "50"]


def test_small_whole_numbers_may_become_words():
    assert lost("12 men, 3 dogs, 13 cats, 2.5 fish", "douze hommes, trois chiens") == ["13", "2.5"]


def test_numbers_may_be_counted_in_myriads():
    assert lost("3.5 billion people", "35억 명") == lost("120,000 people", "十二万人") == []
    assert lost("인구 120만", "1.2 million people") == []
    assert lost("Only 120,000 people", "나만 사람") == ["120,000"]  # 만 is also "only"
    assert lost("%s has 120,000", "12만") == ["%s"]


def test_a_replacement_stands_for_all_that_it_replaces():
    normalized = trace_normalize("  e\u0301crire  à me@a.org  vite")
    (item,) = items(normalized.text)
    edited = substitute(normalized, [(item.span, "Tom")])
    assert (edited.text, edited.original) == ("écrire à Tom vite", normalized.original)
    place = edited.text.index("Tom")
    for span in ((place, place + 1), (place + 1, place + 3), (place, place + 3)):
        assert normalized.original[slice(*edited.to_original(span))] == "me@a.org"
    assert normalized.original[slice(*edited.to_original((place + 4, place + 8)))] == "vite"
    assert normalized.original[slice(*edited.to_original((0, 1)))] == "e\u0301"


@settings(deadline=None)
@given(text=any_text, attempt=st.integers(0, NUM_ATTEMPTS - 1))
def test_stand_ins_can_be_put_in_and_taken_out_again(text, attempt):
    normalized = trace_normalize(text)
    protected = items(normalized.text)
    words = stand_ins(protected, normalized.text, attempt)
    edited = substitute(normalized, [(item.span, word) for item, word in zip(protected, words, strict=True)])
    assert len(edited.origin) == len(edited.text)
    back, shift = [], 0
    for item, word in zip(protected, words, strict=True):
        start = item.span[0] + shift
        span = (start, start + len(word))
        assert edited.text[slice(*span)] == word
        assert edited.to_original(span) == normalized.to_original(item.span)
        back.append((span, item.text))
        shift += len(word) - len(item.text)
    again = substitute(edited, back)
    assert again.text == normalized.text
    for item in protected:
        assert again.to_original(item.span) == normalized.to_original(item.span)


def test_an_empty_span_is_an_insertion_and_an_empty_replacement_a_removal():
    normalized = trace_normalize("a b c")
    edited = substitute(normalized, [((5, 5), "!"), ((2, 4), ""), ((0, 0), "<")])
    assert edited.text == "<a c!"
    assert edited.origin == ((0, 0), (0, 1), (1, 2), (4, 5), (5, 5))


@pytest.mark.parametrize("spans", [[(0, 2), (1, 3)], [(4, 9)], [(-1, 1)], [(3, 2)]])
def test_replacements_that_overlap_or_lie_outside_are_refused(spans):
    with pytest.raises(ValueError, match="overlaps another or lies outside"):
        substitute(trace_normalize("a b c"), [(span, "x") for span in spans])


@settings(deadline=None)
@given(text=any_text, attempt=st.integers(0, NUM_ATTEMPTS - 1))
def test_stand_ins_differ_do_not_occur_in_the_text_and_are_always_the_same(text, attempt):
    words = stand_ins(items(text), text, attempt)
    assert len(set(words)) == len(words) == len(items(text))
    assert not any(word in text for word in words)
    assert words == stand_ins(items(text), text, attempt)
    for item, word in zip(items(text), words, strict=True):
        assert word.isdecimal() or item.kind != "number"


def test_each_attempt_has_its_own_kind_of_stand_in():
    text = "%s a 48 ans, {0} en a 1 992"
    tries = [stand_ins(items(text), text, attempt) for attempt in range(NUM_ATTEMPTS)]
    for placeholder, number, *_ in tries:
        assert number.isdecimal() and len(number) == 2 and placeholder not in ("48", number)
    assert tries[0][0].isdecimal() and len(tries[0][0]) == 4
    assert tries[1][0].istitle() and tries[1][0].isalpha() and len(tries[1][0]) > 2
    assert tries[2][0].isupper() and len(tries[2][0]) == 1
    assert len({number for _, number, *_ in tries}) == NUM_ATTEMPTS


@pytest.mark.parametrize("attempt", range(NUM_ATTEMPTS))
def test_no_stand_in_is_part_of_another(attempt):
    text = "%s 48 " * 10
    words = stand_ins(items(text), "", attempt)
    assert len(words) == 20
    assert not any(one in other for one in words for other in words if one != other)


def test_there_are_stand_ins_for_any_number_of_items():
    text = "%s 48 " * 300
    assert len(set(stand_ins(items(text), text, 2))) == 600


HOSTILE = {
    "one word": "x" * 200_000,
    "spaces": " " * 100_000,
    "digits": "1" * 200_000,
    "groups": "123 " * 50_000 + "1234",
    "points": "1." * 100_000,
    "dots": "." * 200_000,
    "percent signs": "%" * 200_000,
    "braces": "{" * 200_000,
    "brackets": "http://" + "(" * 200_000,
    "addresses": "http://" * 30_000 + "!" * 100_000,
    "local parts": "a." * 100_000 + "@",
    "at signs": "a@" * 100_000,
    "hosts": "a@" + "b." * 100_000,
    "flags": "🇫" * 200_001,
    "joiners": "👍\u200d" * 100_000,
    "marks": "👍" + "\u0301" * 200_000,
    "placeholders": "%(" + "a" * 200_000,
    "vs": "v" * 200_000,
    "surrogates": "\ud83d" * 200_000,
    "nulls": "\x00" * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(name):
    text = HOSTILE[name]
    begin = time.process_time()
    assert missing(text, text) == []
    assert time.process_time() - begin < 10  # what is quadratic takes minutes


def test_a_small_number_may_be_a_word_but_not_another_number():
    assert missing("il y a 12 chiens", "there are twelve dogs") == []
    assert missing("il y a 12 chiens", "there are 12 dogs") == []
    assert [item.text for item in missing("il y a 12 chiens", "there are 20 dogs")] == ["12"]
    assert missing("3 chats en 1992", "three cats in 1992") == []
    assert missing("3 chats et 1 992,50 euros", "three cats and 1,992.50 euros") == []
    assert [item.text for item in missing("3 chats en 1992", "40 cats in 1992")] == ["3"]


def test_any_digit_and_a_sample_of_all_characters_can_be_compared():
    """`regex` has digits that Python's tables do not have; one of them once ended a whole job."""
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    digits = regex.findall(r"\p{Nd}", "".join(every))
    assert len(digits) > 600
    for character in [*digits, *every[::211]]:
        text = f"il pleut {character} {character}2{character}"
        assert all(text[slice(*item.span)] == item.text for item in items(text))
        assert missing(text, text) == []
        if character in digits:
            assert [item.text for item in missing(f"12{character}3", "x")] == [f"12{character}3"]
