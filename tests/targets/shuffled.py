"""A deck of cards that numpy's generator, which Cython has compiled, shuffles all the time."""

import collections.abc

import numpy


class Deck(collections.abc.MutableSequence):
    def __init__(self):
        self.cards = list(range(500))

    def __len__(self):
        return len(self.cards)

    def __getitem__(self, place):
        return turned_up(self.cards[place])

    def __setitem__(self, place, card):
        self.cards[place] = card

    def __delitem__(self, place):
        del self.cards[place]

    def insert(self, place, card):
        self.cards.insert(place, card)


def turned_up(card):
    for _ in range(200):
        pass
    return card


def deal(generator, deck):
    generator.shuffle(deck)


def main():
    generator = numpy.random.default_rng(1)
    deck = Deck()
    print("ready", flush=True)
    while True:
        deal(generator, deck)


main()
