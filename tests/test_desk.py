"""The desk: many clients, fair turns, common batches."""

import os
import signal
import time

import pytest

import regard
from regard.options.search import BeamOptions
from regard.server.desk import Desk
from regard.server.workers import TraceTask
from regard.starter import bundled
from regard.translate.queue import Queue
from regard.translate.request import Request

SHORT = ["Je suis étudiant.", "Il pleut.", "Où est la gare ?", "Merci beaucoup.", "Elle a deux chats."]
BOOK = " ".join(
    f"Le rapport numéro {n} a été adopté par le Parlement européen hier soir." for n in range(400)
)


@pytest.fixture(scope="module")
def desk():
    one = Desk({name: bundled()[name] for name in ("fr-en", "fr-en-rnn")}, 2)
    yield one
    one.drain(10)


def test_what_many_ask_at_once_is_what_the_library_says(desk):
    texts = [f"{text} {n}" for n in range(10) for text in SHORT]
    for model in ("fr-en", "fr-en-rnn"):
        tickets = [desk.submit(model, Request(text), f"client {n % 7}") for n, text in enumerate(texts)]
        wanted = [one.text for one in regard.load(model).translate(texts)]
        assert [ticket.future.result(60).text for ticket in tickets] == wanted


def test_blank_texts_and_wrong_ones_come_back_at_once(desk):
    assert desk.submit("fr-en", Request("  ")).future.result(10).text == ""
    ticket = desk.call(TraceTask("fr-en-rnn", "Oui.", {"record": ["no such name"]}))
    with pytest.raises(regard.RegardError):
        ticket.future.result(30)
    assert desk.num_waiting == 0


def test_a_book_lets_a_sentence_of_somebody_else_pass(desk):
    book = desk.submit("fr-en", Request(BOOK), "book")
    time.sleep(0.3)
    for text in SHORT:
        desk.submit("fr-en", Request(text), "me").future.result(30)
        assert not book.future.done()
    desk.leave(book)
    assert book.future.cancelled() or not book.future.done()


def test_what_nobody_waits_for_is_stopped_within_a_step(desk):
    text = BOOK[:4000]
    began = time.monotonic()
    desk.submit("fr-en", Request(text), "a").future.result(120)
    whole = time.monotonic() - began
    ticket = desk.submit("fr-en", Request(text), "a")
    time.sleep(whole / 4)
    desk.leave(ticket)
    began = time.monotonic()
    while desk.num_waiting or desk._running:
        assert time.monotonic() - began < max(0.5, whole / 3)
        time.sleep(0.005)


def test_words_are_told_in_the_order_of_the_sentences(desk):
    told = []
    request = Request("Il pleut beaucoup. Merci.", search=BeamOptions(beam_size=1))
    ticket = desk.submit("fr-en", request, tell=lambda place, text: told.append((place, text)))
    said = ticket.future.result(30).text
    last = dict(told)
    assert [place for place, _ in told] == sorted(place for place, _ in told)
    assert " ".join(last[place] for place in sorted(last)) == said and len(told) > 5
    assert len(desk._queues) == 2  # what was made for it is gone


def test_a_worker_killed_in_the_middle_costs_nobody_an_answer(desk):
    tickets = [desk.submit("fr-en", Request(f"{text} {n}"), "a") for n in range(30) for text in SHORT]
    time.sleep(0.1)
    os.kill(desk._workers[0]._process.pid, signal.SIGKILL)
    assert all(ticket.future.result(60).text for ticket in tickets)
    assert desk.is_healthy


def test_turns_are_shared_by_tokens_between_clients(desk):
    """What is taken is of the earliest round; one client's long text has later rounds than another's short one."""
    queue = Queue(desk.models["fr-en"], 512)
    turns = {"book": 0.0, "me": 0.0}

    def turn(client):
        def of(num_tokens):
            now = turns[client]
            turns[client] += num_tokens / 64
            return int(now)

        return of

    queue.put([(1, Request(BOOK))], turn("book"))
    queue.put([(2, Request(SHORT[0]))], turn("me"))
    first = queue.take()
    while 2 not in first.numbers:
        assert queue.first_round == 0  # still the first round
        first = queue.take()
    queue.drop(1)
    left = queue.take()
    assert left is None or left.numbers == {2}
